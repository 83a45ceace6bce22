// Package memory is a [checkpoint.Store] that forgets when the process ends. It is the
// executable meaning of Store: every rule of that contract can be read here, in the
// fewest lines, and package storetest holds other stores to it.
//
// It keeps what a durable store keeps, the sealed envelope of every append, and reads it
// back through the same checks. Nothing it says is durable outlives the process.
package memory
