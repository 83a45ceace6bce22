//go:build rivals && !temporal

package main

import "errors"

func openTemporal(session) (*service, error) {
	return nil, errors.New("built without the tag temporal")
}
