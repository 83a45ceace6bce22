package badgerstore

import "syscall"

// yieldThread lets other threads run on this processor. Runs that were told of a commit become able
// to run on two of Go's processors, whose threads Linux may leave on one of the machine's while
// another one sleeps: in a virtual machine it takes a processor that sleeps for one that the host
// has taken away. Then half of the runs stand still beside a committer that looks for them.
func yieldThread() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
