package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// childVar is set for processes of ours that are started to be killed: it names one of children.
const childVar = "PAWL_BENCH_CHILD"

// children are the programs that are killed, with what they are called with.
var children = map[string]func(args []string) error{
	"flight": takeOff,
}

// child ends the process if it is one that another of ours started.
func child() {
	name := os.Getenv(childVar)
	if name == "" {
		return
	}
	err := errors.New("there is no such child")
	for _, of := range []map[string]func(args []string) error{children, rivalChildren} {
		if do, ok := of[name]; ok {
			err = do(os.Args[1:])
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: child %s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// childOf returns this program as that child, which is not started yet.
func childOf(name string, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), childVar+"="+name)
	c.Stderr = os.Stderr
	return c, nil
}
