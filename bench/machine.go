package main

import (
	"bytes"
	"os"
	"path/filepath"
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
	dir, err := filepath.Abs(dir)
	if err != nil {
		return unknownFileSystem
	}
	return mounted(mounts, dir)
}

const unknownFileSystem = "an unknown file system"

// mounted returns the type of the one of mounts, as /proc/mounts has them, that the absolute dir is
// on.
func mounted(mounts []byte, dir string) string {
	kind, at := unknownFileSystem, ""
	for line := range bytes.Lines(mounts) {
		f := strings.Fields(string(line))
		if len(f) < 3 {
			continue
		}
		if root := strings.TrimSuffix(f[1], "/") + "/"; strings.HasPrefix(dir+"/", root) && len(root) >= len(at) {
			at, kind = root, f[2]
		}
	}
	return kind
}
