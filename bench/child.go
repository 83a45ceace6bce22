package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// childVar is set for processes that are started by another one of ours: it names one of children.
const childVar = "PAWL_BENCH_CHILD"

// children are what such processes do with what they are called with: to be killed, but for bench.
var children = map[string]func(args []string) error{
	"bench":  run,
	"flight": takeOff,
}

// child ends the process if it is one that another of ours started.
func child() {
	name := os.Getenv(childVar)
	if name == "" {
		return
	}
	go terminated() // ends with the process
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

// terminated ends the process when standard input ends, which does when the process that started
// this one does. It is as if it had been told to: a bench clears away then.
func terminated() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(syscall.SIGTERM)
	}
	if err != nil {
		os.Exit(1)
	}
}

// childOf returns this program as that child, which is not started yet.
func childOf(name string, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command(self, args...)
	return c, asChild(c, name)
}

// asChild makes c a child of that name, which does not outlive this process.
func asChild(c *exec.Cmd, name string) error {
	c.Env = append(os.Environ(), childVar+"="+name)
	c.Stderr = os.Stderr
	_, err := c.StdinPipe() // nothing is written to it: it ends with Wait, or with this process
	return err
}
