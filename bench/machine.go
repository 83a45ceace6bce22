package main

import (
	"bytes"
	"os"
	"runtime"
	"strings"
)

// machine says what the figures were measured on.
func machine(s session) ([]row, error) {
	parts := []string{runtime.GOOS + "/" + runtime.GOARCH, runtime.Version()}
	if model := field("/proc/cpuinfo", "model name"); model != "" {
		parts = append(parts, model)
	}
	if memory := field("/proc/meminfo", "MemTotal"); memory != "" {
		parts = append(parts, "memory "+memory)
	}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		parts = append(parts, "kernel "+strings.TrimSpace(string(kernel)))
	}
	parts = append(parts, "stores on "+fileSystem(s.dir))
	cores := series{float64(runtime.GOMAXPROCS(0))}
	return []row{shown("machine", cores, "cores", "%s", strings.Join(parts, ", "))}, nil
}

// field returns what a file of lines "name : value" says of name first, "" if nothing.
func field(path, name string) string {
	text, _ := os.ReadFile(path)
	for line := range bytes.Lines(text) {
		key, value, ok := strings.Cut(string(line), ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// fileSystem returns the type of the file system that dir is on.
func fileSystem(dir string) string {
	mounts, _ := os.ReadFile("/proc/mounts")
	kind, at := "an unknown file system", ""
	for line := range bytes.Lines(mounts) {
		f := strings.Fields(string(line))
		if len(f) > 2 && strings.HasPrefix(dir, f[1]) && len(f[1]) >= len(at) {
			at, kind = f[1], f[2]
		}
	}
	return kind
}
