//go:build amd64 || arm64

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// boundaries are the calls that change a directory, or say that it is to be on the disk.
var boundaries = map[uint64]struct {
	name  string
	where func(*systemCall) string // the path of what is changed, or of one of two
}{
	syscall.SYS_WRITE:     {"write", (*systemCall).file},
	syscall.SYS_PWRITE64:  {"pwrite64", (*systemCall).file},
	syscall.SYS_WRITEV:    {"writev", (*systemCall).file},
	syscall.SYS_PWRITEV:   {"pwritev", (*systemCall).file},
	syscall.SYS_FTRUNCATE: {"ftruncate", (*systemCall).file},
	syscall.SYS_FALLOCATE: {"fallocate", (*systemCall).file},
	syscall.SYS_FSYNC:     {"fsync", (*systemCall).file},
	syscall.SYS_FDATASYNC: {"fdatasync", (*systemCall).file},
	syscall.SYS_MSYNC:     {"msync", (*systemCall).mapping},
	syscall.SYS_OPENAT:    {"openat", (*systemCall).made},
	syscall.SYS_MKDIRAT:   {"mkdirat", (*systemCall).named},
	syscall.SYS_UNLINKAT:  {"unlinkat", (*systemCall).named},
	syscall.SYS_LINKAT:    {"linkat", (*systemCall).named},
	syscall.SYS_RENAMEAT:  {"renameat", (*systemCall).named},
}

// file is the path of the descriptor that is the first argument.
func (c *systemCall) file() string { return c.fd(0) }

// named is the path that follows the descriptor of a directory.
func (c *systemCall) named() string {
	path := c.text(1)
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.fd(0), path)
	}
	return path
}

// made is the path of a file that is opened so that it may come to be, or be emptied.
func (c *systemCall) made() string {
	if c.args[2]&(syscall.O_CREAT|syscall.O_TRUNC) == 0 {
		return ""
	}
	return c.named()
}

// mapping is the path of the file that is mapped, whole, where the first argument points.
func (c *systemCall) mapping() string {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", c.pid))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(maps)) {
		f := strings.Fields(line) // address-address rights offset device inode path
		if start, _, _ := strings.Cut(f[0], "-"); len(f) == 6 && f[2] == "00000000" {
			if at, err := strconv.ParseUint(start, 16, 64); err == nil && at == c.args[0] {
				return f[5]
			}
		}
	}
	return ""
}

// writtenThrough tells whether the call writes to a file that is opened so that each write is
// synced.
func (c *systemCall) writtenThrough() bool {
	switch c.number {
	case syscall.SYS_WRITE, syscall.SYS_PWRITE64, syscall.SYS_WRITEV, syscall.SYS_PWRITEV:
	default:
		return false
	}
	info, _ := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", c.pid, int32(c.args[0]))) // of what is closed there is none
	for line := range strings.Lines(string(info)) {
		if value, is := strings.CutPrefix(line, "flags:"); is {
			flags, err := strconv.ParseInt(strings.TrimSpace(value), 8, 64)
			return err == nil && flags&syscall.O_DSYNC != 0
		}
	}
	return false
}

// views are what may be on the disk when a run ends there, from what is most to what is least.
var views = []struct {
	name string
	of   func(*shadow) tree
}{
	{"killed", (*shadow).asItIs},
	{"power cut", (*shadow).synced},
	{"power cut with names lost", (*shadow).strictlySynced},
}

// A boundary is a run that is about to make a call.
type boundary struct {
	call  string
	path  string
	said  int    // bytes
	trees []tree // one for each view
}

// A recording is the life of a run, in one process or several.
type recording struct {
	t    *testing.T
	p    *patient
	disk *shadow
	out  *os.File // what is said
	tr   *tracer
	kill int // how many boundaries there are when the process is killed
	all  []boundary

	path    string // of the call that is made
	outline string // of the directory, after the call
}

// record records a run that is killed before calls with the numbers given, and then completes.
func record(t *testing.T, p *patient, kills ...int) *recording {
	t.Helper()
	began := time.Now()
	out, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	r := &recording{t: t, p: p, disk: newShadow(filepath.Dir(p.dir)), out: out}
	for _, n := range append(slices.Clone(kills), -1) {
		command := "start"
		if said, err := out.Stat(); err == nil && said.Size() > 0 {
			command = "resume"
		}
		cmd := p.command(command, gate...)
		cmd.Stdout, cmd.Stderr = out, t.Output()
		r.kill = n
		r.tr = &tracer{matters: r.matters, before: r.before, after: r.after}
		if status := r.tr.trace(t, cmd); status.Signaled() != (n > 0) || status.ExitStatus() > 0 {
			t.Fatalf("a process that was traced has ended with %#x", status)
		}
	}
	r.add("the end", ".")
	t.Logf("%d boundaries recorded in %v", len(r.all), time.Since(began))
	return r
}

func (r *recording) matters(c *systemCall) bool {
	b, known := boundaries[c.number]
	if known {
		r.path = b.where(c)
	}
	return known && r.disk.has(r.path)
}

func (r *recording) before(c *systemCall) {
	if r.add(boundaries[c.number].name, r.disk.name(r.path)); len(r.all) == r.kill {
		r.tr.kill()
	}
}

// after takes notice of what a call has synced: a file to which it only wrote, if it was opened so
// that it does, is one that nobody has mapped.
func (r *recording) after(c *systemCall, err error) {
	var errs []error
	switch {
	case err != nil:
	case c.number == syscall.SYS_MSYNC && !r.disk.within(r.path, int64(c.args[1])):
		errs = append(errs, fmt.Errorf("%d bytes of %s are synced, which is a part: that is not followed here", c.args[1], r.path))
	case c.writtenThrough():
		errs = append(errs, r.disk.look())
		r.disk.sync(r.path)
	case c.number == syscall.SYS_FSYNC, c.number == syscall.SYS_FDATASYNC, c.number == syscall.SYS_MSYNC:
		r.disk.sync(r.path)
	}
	r.outline, err = r.disk.outline()
	if err := errors.Join(append(errs, err)...); err != nil {
		r.t.Error(err)
	}
}

// add keeps what is there before a call. Since the call before, only mapped memory may have
// changed: if more has, a call is missing in boundaries.
func (r *recording) add(call, path string) {
	outline, err1 := r.disk.outline()
	said, err2 := r.out.Stat()
	if err := errors.Join(err1, err2, r.disk.look()); err != nil {
		r.t.Errorf("before %s of %s: %v", call, path, err)
		return
	}
	if len(r.all) > 0 && outline != r.outline {
		r.t.Errorf("before %s of %s a call that is no boundary has changed the directory from\n%sto\n%s", call, path, r.outline, outline)
	}
	b := boundary{call: call, path: path, said: int(said.Size())}
	for _, v := range views {
		b.trees = append(b.trees, v.of(r.disk))
	}
	r.all = append(r.all, b)
	r.outline = outline
}

// check opens what is there in a view of a boundary: the run is where it was acknowledged or
// further, all of it is as the reference has it, and it goes on to its end, without a visit that is
// durable.
func (r *recording) check(b boundary, files tree) {
	r.t.Helper()
	dir, err := os.MkdirTemp(r.t.TempDir(), "")
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := files.restore(dir); err != nil {
		r.t.Fatal(err)
	}
	said, err := os.ReadFile(r.out.Name())
	if err != nil {
		r.t.Fatal(err)
	}
	p := &patient{t: r.t, dir: filepath.Join(dir, filepath.Base(r.p.dir)), run: r.p.run, graph: r.p.graph, seed: r.p.seed, want: r.p.want}
	for line := range strings.Lines(string(said[:b.said])) {
		p.hear(&end{}, strings.Fields(line))
	}
	if err := p.examine(r.t.Context()); err != nil {
		r.t.Errorf("%v: %v: there are %q", p, err, slices.Sorted(maps.Keys(files)))
		return
	}
	p.heal()
}

// A run ends before any system call that changes its store's directory or syncs something in it, in
// opening, at work, when tables are written, in closing, and in opening what was left open. Whether
// the process is killed there or the power is cut, with or without the names that nobody had
// synced: the store opens, the run is where it was acknowledged or further, and goes on to its end
// without a visit that is durable. PAWL_EACH=1 takes each call, PAWL_EACH=2 every second one.
func TestEndedBeforeEverySystemCall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, graph string
		kills       []int
		from, short int // the first boundary that is tried, and how many in the short form
	}{
		{"line50", "line50", nil, 0, 8},
		{"leaf50", "leaf50", nil, 0, 3},
		// When its directory is made, at work, and when it is opened again.
		{"leaf50 killed", "leaf50", []int{2, 140, 160}, 139, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := record(t, newPatient(t, filepath.Join(t.TempDir(), "store"), "run", c.graph, 1), c.kills...)
			if k := c.kills; k != nil {
				said := func(kill int) int { return r.all[kill-1].said }
				if said(k[0]) > 0 || said(k[1]) == 0 || said(k[2]) != said(k[1]) {
					t.Errorf("behind the kills %v there are %d, %d and %d bytes said, want none, some, and no more",
						k, said(k[0]), said(k[1]), said(k[2]))
				}
			}
			all := r.all[c.from:]
			r.checkSome(all, count("PAWL_EACH", len(all)/c.short))
		})
	}
}

// checkSome checks one boundary in so many in all views. What is the same directory, behind the
// same words, is checked once.
func (r *recording) checkSome(all []boundary, each int) {
	r.t.Helper()
	tried, seen := 0, make(map[string]bool)
	kinds, opened := make(map[string]int), make(map[string]int)
	for i := dice(r.t).IntN(each); i < len(all); i += each {
		b := all[i]
		tried++
		kinds[b.call]++
		for v, files := range b.trees {
			key := fmt.Sprintf("%d %x", b.said, files.sum())
			if seen[key] {
				continue
			}
			seen[key] = true
			opened[views[v].name]++
			if r.check(b, files); r.t.Failed() {
				r.t.Fatalf("%s before call %d of %d, %s of %s", views[v].name, i, len(all), b.call, b.path)
			}
		}
	}
	r.t.Logf("%d of %d boundaries, %v: %d different directories opened, verified and resumed, %v; none refused",
		tried, len(all), kinds, len(seen), opened)
}
