package main

import (
	"os"
	"testing"
)

// A directory is on what is mounted nearest above it, not on what only begins like it.
func TestMounted(t *testing.T) {
	const mounts = "overlay / overlay rw 0 0\ntmpfs /tmp tmpfs rw 0 0\nshort\n/dev/a /data ext4 rw 0 0\n/dev/b /data/deep xfs rw 0 0\n"
	for dir, want := range map[string]string{
		"/":                "overlay",
		"/home/x":          "overlay",
		"/tmp":             "tmpfs",
		"/tmp/pawl-bench-": "tmpfs",
		"/tmpfiles/x":      "overlay",
		"/database":        "overlay",
		"/data/x":          "ext4",
		"/data/deep/x":     "xfs",
		"/data/deeper":     "ext4",
	} {
		if got := mounted([]byte(mounts), dir); got != want {
			t.Errorf("%s is on %s, want %s", dir, got, want)
		}
	}
}

// A relative directory is on what its absolute path is on.
func TestFileSystemOfRelative(t *testing.T) {
	if _, err := os.Stat("/proc/mounts"); err != nil {
		t.Skip("there is no list of what is mounted")
	}
	t.Chdir(t.TempDir())
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fileSystem("."), fileSystem(dir); got != want || got == unknownFileSystem {
		t.Errorf("on %s, want %s, which is known", got, want)
	}
}
