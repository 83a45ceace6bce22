package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a store refuses is one line and status 1, in every mode.
var modes = map[string][]string{
	"run":     {labyrinth},
	"json":    {"-json", labyrinth},
	"resume":  {"-resume"},
	"history": {"-history"},
}

func TestStoreThatAnotherProcessHasOpen(t *testing.T) {
	dir := t.TempDir()
	ask(t, dir, "-cancel-at", "search/rank").exits(t, 3)
	store := openStore(t, dir)
	for _, args := range modes {
		archivist(t, append([]string{"-store", dir}, args...)...).complains(t, 1, "locked by another process", dir)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	archivist(t, "-store", dir, "-json", "-resume").exits(t, 0)
}

func TestStoreThatCantBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "no directory")
	for _, args := range modes {
		archivist(t, append([]string{"-store", file}, args...)...).complains(t, 1, file)
	}
	archivist(t, "-store", filepath.Join(file, "below"), labyrinth).complains(t, 1, file)
	if text, err := os.ReadFile(file); err != nil || string(text) != "no directory" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

func TestDirectoryThatIsNoStore(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "thesis.txt"), "years of work")
	for _, args := range modes {
		archivist(t, append([]string{"-store", dir}, args...)...).complains(t, 1, dir)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}

func TestStoreOfANewerFormat(t *testing.T) {
	dir := t.TempDir()
	ask(t, dir).exits(t, 0)
	name := filepath.Join(dir, "pawl.json")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(text), `"format":3`, `"format":7`, 1)
	if newer == string(text) {
		t.Fatalf("there is no format in %s", text)
	}
	write(t, name, newer)
	for _, args := range modes {
		archivist(t, append([]string{"-store", dir}, args...)...).complains(t, 1, "version", "7")
	}
}

func TestStoreThatIsDamaged(t *testing.T) {
	dir := t.TempDir()
	ask(t, dir).exits(t, 0)
	tables, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("no tables: %v", err)
	}
	for _, table := range tables {
		text, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		text[len(text)/2] ^= 0x40
		write(t, table, string(text))
	}
	for _, args := range modes {
		archivist(t, append([]string{"-store", dir}, args...)...).complains(t, 1, "damaged")
	}
}

// A run of another version of the graph is refused, and says so.
func TestRunOfAnotherGraph(t *testing.T) {
	dir := t.TempDir()
	openAsOther(t, dir, "old")
	archivist(t, "-store", dir, "-run", "old", labyrinth).complains(t, 1, "graph has changed")
	archivist(t, "-store", dir, "-run", "old", "-resume").complains(t, 1, "graph has changed")
	ask(t, dir).exits(t, 0) // and others don't mind it
}
