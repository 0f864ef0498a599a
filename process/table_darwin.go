package process

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// row is what the process table says of one process.
type row struct {
	pid, group, session int
	start               uint64 // microseconds since 1970
	state               int8   // as in sys/proc.h
}

// From sys/proc.h, which golang.org/x/sys/unix doesn't carry.
const (
	stopped = 4 // SSTOP
	zombie  = 5 // SZOMB
)

func (r row) ended() bool { return r.state == zombie }

func newRow(k *unix.KinfoProc) row {
	pid := int(k.Proc.P_pid)
	session, _ := unix.Getsid(pid)
	return row{
		pid: pid, group: int(k.Eproc.Pgid), session: session, state: k.Proc.P_stat,
		start: uint64(k.Proc.P_starttime.Sec)*1e6 + uint64(k.Proc.P_starttime.Usec),
	}
}

// lookup finds a process; fs.ErrNotExist if there is none of that number.
func lookup(pid int) (row, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err == unix.EIO { // what it says of an empty answer
		err = fs.ErrNotExist
	}
	if err != nil {
		return row{}, err
	}
	if int(k.Proc.P_pid) != pid {
		return row{}, fs.ErrNotExist
	}
	return newRow(k), nil
}

// members are the processes of a group that have not ended.
func members(group int) ([]row, error) {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", group)
	var found []row
	for i := range all {
		if r := newRow(&all[i]); !r.ended() {
			found = append(found, r)
		}
	}
	return found, err
}

// marked would be the processes whose environment had this entry; here nobody tells.
func marked(string) ([]row, error) { return nil, nil }

// threads says whether a process's threads are stopped, all of them or none, and whether the process has ended.
func threads(pid int) (is stopping, gone bool) {
	switch r, err := lookup(pid); {
	case err != nil || r.ended():
		return noneStopped, true
	case r.state == stopped:
		return allStopped, false
	default:
		return noneStopped, false
	}
}

// boot names this start of the machine.
func boot() string {
	id, _ := unix.Sysctl("kern.bootsessionuuid") // the boot time itself moves when the clock is set
	return id
}

// pidSpace names the set of process numbers that ours is from: there is one.
func pidSpace() string { return "" }

// ownGroup makes the child the leader of a new group. There is no parent-death signal here: the guard is the second line.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit returns when a child has ended, and leaves it to be reaped.
func awaitExit(pid int) {
	queue, err := unix.Kqueue()
	if err != nil {
		return // then os.Process.Wait waits
	}
	defer unix.Close(queue)
	var change unix.Kevent_t
	unix.SetKevent(&change, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	change.Fflags = unix.NOTE_EXIT
	events := make([]unix.Kevent_t, 1)
	for {
		if _, err := unix.Kevent(queue, []unix.Kevent_t{change}, events, nil); err != unix.EINTR {
			return
		}
	}
}
