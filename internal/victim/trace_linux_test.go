package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/pawlgo/pawl/internal/lacking"
)

// A systemCall is one that a thread is about to make.
type systemCall struct {
	pid    int
	number uint64
	args   [6]uint64
}

// fd is the path that a descriptor is of, with which the call is made.
func (c *systemCall) fd(arg int) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", c.pid, int32(c.args[arg]))) // of what is closed it is ""
	return path
}

// text is the path that an argument points to.
func (c *systemCall) text(arg int) string {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", c.pid))
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	b := make([]byte, 4096)
	n, _ := f.ReadAt(b, int64(c.args[arg])) // what lies behind may be nothing
	path, _, _ := bytes.Cut(b[:n], []byte{0})
	return string(path)
}

// A tracer runs a process in which calls that matter are made one at a time, while no other thread
// runs: what its files are before and after each is all that they ever are, but for what it stores
// in mapped memory. The fields are of the one thread of the system that may trace.
type tracer struct {
	matters func(*systemCall) bool   // asked of every call that begins
	before  func(*systemCall)        // called when nothing runs
	after   func(*systemCall, error) // called when the call is made, with the error it returned
	pid     int
	runs    map[int]bool // by thread: false if it stands
	stops   []stop       // of threads that stand
	status  syscall.WaitStatus
}

// A stop is why a thread stands.
type stop struct {
	thread int
	status syscall.WaitStatus
}

// What package syscall does not have of ptrace(2) and wait(2).
const (
	ptraceSeize          = 0x4206
	ptraceInterrupt      = 0x4207
	ptraceGetSyscallInfo = 0x420e
	ptraceExitKill       = 0x100000
	waitAll              = 0x40000000
	waitNoThread         = 0x20000000
	syscallStop          = syscall.SIGTRAP | 0x80
)

// gate makes a shell wait for a line before it becomes the program.
var gate = []string{"sh", "-c", `read -r line && exec "$0" "$@"`}

// trace runs a process, which was made with gate, to its end, and returns how it has ended. The
// test is skipped where that can't be done.
func (tr *tracer) trace(t *testing.T, cmd *exec.Cmd) syscall.WaitStatus {
	t.Helper()
	runtime.LockOSThread() // for the goroutine's life: the thread has children that only it may wait for
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	open, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	tr.pid = cmd.Process.Pid
	tr.runs = map[int]bool{tr.pid: true}
	options := uintptr(syscall.PTRACE_O_TRACESYSGOOD | syscall.PTRACE_O_TRACECLONE | ptraceExitKill)
	if err := ptrace(ptraceSeize, tr.pid, 0, options); err != nil {
		_ = open.Close()
		_ = cmd.Wait()
		lacking.Skip(t, "to stop a process before its system calls needs ptrace: ", err)
	}
	_ = ptrace(ptraceInterrupt, tr.pid, 0, 0)
	_, err = open.Write([]byte("\n"))
	if err := errors.Join(err, tr.run()); err != nil {
		tr.kill()
		if errors.Is(err, syscall.EIO) {
			lacking.Skip(t, "to know a system call needs Linux 5.3, with PTRACE_GET_SYSCALL_INFO: ", err)
		}
		t.Fatal("tracing: ", err)
	}
	_ = cmd.Wait() // its end was waited for; this frees what the process had here
	return tr.status
}

func (tr *tracer) kill() { _ = syscall.Kill(tr.pid, syscall.SIGKILL) }

// run deals with one stop after the other, until no thread is left.
func (tr *tracer) run() error {
	for len(tr.runs) > 0 {
		if len(tr.stops) == 0 {
			if err := tr.wait(); err != nil {
				return err
			}
			continue
		}
		s := tr.stops[0]
		tr.stops = tr.stops[1:]
		if err := tr.deal(s); err != nil && !errors.Is(err, syscall.ESRCH) { // it was killed
			return err
		}
	}
	return nil
}

// wait waits until one thread more stands, or has ended. The process is a group of its own.
func (tr *tracer) wait() error {
	var status syscall.WaitStatus
	thread, err := syscall.Wait4(-tr.pid, &status, waitAll|waitNoThread, nil)
	switch {
	case errors.Is(err, syscall.EINTR):
		return nil
	case err != nil:
		return err
	case status.Stopped():
		tr.runs[thread] = false
		tr.stops = append(tr.stops, stop{thread, status})
		return nil
	}
	delete(tr.runs, thread)
	if thread == tr.pid {
		tr.status = status
	}
	return nil
}

// deal lets a thread go on. It stands at the beginning or end of a call, at a signal, or because of
// what the tracer did.
func (tr *tracer) deal(s stop) error {
	if _, lives := tr.runs[s.thread]; !lives {
		return nil
	}
	switch {
	case s.status.StopSignal() == syscallStop:
		if err := tr.dealCall(s.thread); err != nil {
			return err
		}
	case s.status>>16 == 0:
		return tr.goOn(s.thread, s.status.StopSignal())
	}
	return tr.goOn(s.thread, 0)
}

func (tr *tracer) goOn(thread int, signal syscall.Signal) error {
	err := ptrace(syscall.PTRACE_SYSCALL, thread, 0, uintptr(signal))
	if _, lives := tr.runs[thread]; lives {
		tr.runs[thread] = true
	}
	return err
}

// dealCall lets a thread make the call that it is about to make, alone if it matters.
func (tr *tracer) dealCall(thread int) error {
	info, err := callInfo(thread)
	if err != nil || info.op != callEntry {
		return err
	}
	c := &systemCall{tr.pid, info.values[0], [6]uint64(info.values[1:])}
	if !tr.matters(c) {
		return nil
	}
	if err := tr.halt(); err != nil {
		return err
	}
	tr.before(c)
	if err := tr.goOn(thread, 0); err != nil {
		return err
	}
	for tr.runs[thread] { // no other does
		if err := tr.wait(); err != nil {
			return err
		}
	}
	if _, lives := tr.runs[thread]; !lives {
		return nil
	}
	tr.stops = dropStop(tr.stops, thread)
	if info, err = callInfo(thread); err != nil || info.op != callExit {
		return errors.Join(err, fmt.Errorf("a thread did not end its call but stands at %d", info.op))
	}
	var failed error
	if n := int64(info.values[0]); n < 0 {
		failed = syscall.Errno(-n)
	}
	tr.after(c, failed)
	return nil
}

// dropStop takes out the stop of a thread, of which there is one.
func dropStop(stops []stop, thread int) []stop {
	for i, s := range stops {
		if s.thread == thread {
			return append(stops[:i:i], stops[i+1:]...)
		}
	}
	return stops
}

// halt returns when no thread runs.
func (tr *tracer) halt() error {
	for thread, runs := range tr.runs {
		if runs {
			_ = ptrace(ptraceInterrupt, thread, 0, 0) // what has ended is waited for all the same
		}
	}
	for tr.anyRuns() {
		if err := tr.wait(); err != nil {
			return err
		}
	}
	return nil
}

func (tr *tracer) anyRuns() bool {
	for _, runs := range tr.runs {
		if runs {
			return true
		}
	}
	return false
}

// A callState is a struct ptrace_syscall_info. Its values are, when a call begins, its number and
// arguments, and when it ends what it returns.
type callState struct {
	op     uint8
	_      [23]byte
	values [8]uint64
}

const callEntry, callExit = 1, 2

func callInfo(thread int) (info callState, err error) {
	_, _, errno := syscall.Syscall6(syscall.SYS_PTRACE, ptraceGetSyscallInfo, uintptr(thread),
		unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 {
		err = errno
	}
	return info, err
}

func ptrace(request, thread int, addr, data uintptr) error {
	if _, _, errno := syscall.Syscall6(syscall.SYS_PTRACE, uintptr(request), uintptr(thread), addr, data, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
