package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// What a process of ours is for that was started to be killed.
const (
	childVar = "PAWL_BENCH_CHILD" // a key of children
	childDir = "PAWL_BENCH_DIR"   // of its store
)

// children are the programs that are killed.
var children = map[string]func(dir string) error{}

// child ends the process if it is one that another of ours started.
func child() {
	name := os.Getenv(childVar)
	if name == "" {
		return
	}
	do, ok := children[name]
	err := errors.New("there is no such child: " + name)
	if ok {
		err = do(os.Getenv(childDir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", name+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// childOf returns this program as that child, which is not started yet.
func childOf(name, dir string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), childVar+"="+name, childDir+"="+dir)
	c.Stderr = os.Stderr
	return c, nil
}
