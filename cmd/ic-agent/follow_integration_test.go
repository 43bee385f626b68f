//go:build integration && linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What strace does not do: count the calls of a process, whichever thread makes
// them. strace counts by thread, and Go moves its work between threads, so that
// "the fifth fsync" would be another place in each run.
const (
	followAt  = "IC_FOLLOW_AT"  // kill the process before this change, counted from 1; 0: never
	followIn  = "IC_FOLLOW_IN"  // of a file below this folder
	followLog = "IC_FOLLOW_LOG" // one line for each change that was begun
)

// changing are the calls that change files, by the place of the path or file that
// they change among their arguments.
var changing = map[uint64]struct {
	name   string
	path   int
	opened bool // it is a file that is open, not a path
}{
	unix.SYS_OPENAT: {"openat", 1, false}, unix.SYS_MKDIRAT: {"mkdirat", 1, false}, unix.SYS_UNLINKAT: {"unlinkat", 1, false},
	unix.SYS_RENAMEAT: {"renameat", 1, false}, unix.SYS_RENAMEAT2: {"renameat2", 1, false}, unix.SYS_LINKAT: {"linkat", 3, false},
	unix.SYS_FCHMODAT: {"fchmodat", 1, false},
	unix.SYS_WRITE:    {"write", 0, true}, unix.SYS_PWRITE64: {"pwrite64", 0, true}, unix.SYS_WRITEV: {"writev", 0, true},
	unix.SYS_FSYNC: {"fsync", 0, true}, unix.SYS_FDATASYNC: {"fdatasync", 0, true}, unix.SYS_FTRUNCATE: {"ftruncate", 0, true},
	unix.SYS_FCHMOD: {"fchmod", 0, true},
}

// The test binary follows another program when the environment says so. A tracer
// has to be one thread, which only this early is the first.
func init() {
	if os.Getenv(followAt) == "" {
		return
	}
	runtime.LockOSThread()
	if err := follow(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "follow:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func follow(argv []string) error {
	at, err := strconv.Atoi(os.Getenv(followAt))
	if err != nil {
		return err
	}
	log, err := os.Create(os.Getenv(followLog))
	if err != nil {
		return err
	}
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Env: []string{"HOME=" + os.Getenv("HOME")}, Files: []*os.File{nil, nil, os.Stderr}, Sys: &syscall.SysProcAttr{Ptrace: true},
	})
	if err != nil {
		return err
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(p.Pid, &status, 0, nil); err != nil {
		return err
	}
	const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_EXITKILL
	if err := errors.Join(unix.PtraceSetOptions(p.Pid, options), unix.PtraceSyscall(p.Pid, 0)); err != nil {
		return err
	}
	made, known := 0, map[int]bool{p.Pid: true}
	for {
		thread, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECHILD):
			return nil // it has ended
		case err != nil:
			return err
		case !status.Stopped():
			continue
		}
		signal := 0
		switch stop := status.StopSignal(); {
		case stop == unix.SIGTRAP|0x80:
			if change := changeOf(thread, os.Getenv(followIn)); change != "" {
				made++
				fmt.Fprintln(log, change)
				if made == at {
					return unix.Kill(p.Pid, unix.SIGKILL) // the call is never made
				}
			}
		case stop == unix.SIGTRAP: // a thread is born
		case stop == unix.SIGSTOP && !known[thread]: // and this is it
		default:
			signal = int(stop)
		}
		known[thread] = true
		if err := unix.PtraceSyscall(thread, signal); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
}

// changeOf names the change that a stopped thread is about to make, "" if it is none
// or lies elsewhere.
func changeOf(thread int, folder string) string {
	const getSyscallInfo, entry = 0x420e, 1
	var info struct { // ptrace_syscall_info
		op   uint8
		_    [3]uint8
		arch uint32
		_    [2]uint64
		nr   uint64
		args [6]uint64
		_    [2]uint64
	}
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, getSyscallInfo, uintptr(thread), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0); errno != 0 || info.op != entry {
		return ""
	}
	call, ok := changing[info.nr]
	if !ok || info.nr == unix.SYS_OPENAT && info.args[2]&unix.O_ACCMODE == unix.O_RDONLY {
		return ""
	}
	path := textAt(thread, info.args[call.path])
	if call.opened {
		path, _ = os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", thread, info.args[0]))
	}
	if !strings.HasPrefix(path, folder) {
		return ""
	}
	return call.name + " " + strings.TrimPrefix(path, folder)
}

// textAt reads a path from the memory of a thread.
func textAt(thread int, at uint64) string {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", thread))
	if err != nil {
		return ""
	}
	defer f.Close()
	text := make([]byte, unix.PathMax)
	n, _ := f.ReadAt(text, int64(at)) // shorter at the end of a page is long enough
	if end := bytes.IndexByte(text[:n], 0); end >= 0 {
		return string(text[:end])
	}
	return ""
}

// followed is what a log of follow says.
func followed(t *testing.T, log string) []string {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}
