package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// row is what the process table says of one process.
type row struct {
	pid, group, session int
	start               uint64 // clock ticks after boot
	state               byte   // as in proc_pid_stat(5): R, S, D, T, Z …
}

func (r row) ended() bool { return r.state == 'Z' || r.state == 'X' }

// lookup finds a process; fs.ErrNotExist if there is none of that number.
func lookup(pid int) (row, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, syscall.ESRCH) { // it ended between open and read
		err = fs.ErrNotExist
	}
	if err != nil {
		return row{}, err
	}
	return parseStat(pid, stat)
}

// parseStat reads a line of /proc/PID/stat. The second field is the program's name, in parentheses and otherwise free, so
// fields count from the last closing one.
func parseStat(pid int, stat []byte) (row, error) {
	end := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[end+1:]))
	if end < 0 || len(fields) < 20 {
		return row{}, fmt.Errorf("/proc/%d/stat reads %q", pid, stat)
	}
	// fields[0] is field 3 of proc_pid_stat(5): state.
	r := row{pid: pid, state: fields[0][0]}
	var err1, err2, err3 error
	r.group, err1 = strconv.Atoi(fields[2])
	r.session, err2 = strconv.Atoi(fields[3])
	r.start, err3 = strconv.ParseUint(fields[19], 10, 64)
	return r, errors.Join(err1, err2, err3)
}

// members are the processes of a group that have not ended.
func members(group int) ([]row, error) {
	var found []row
	err := each(func(pid int) {
		if r, err := lookup(pid); err == nil && r.group == group && !r.ended() {
			found = append(found, r)
		}
	})
	return found, err
}

// marked are the processes, other than this one, whose environment at their start had this entry.
func marked(entry string) ([]row, error) {
	want := []byte("\x00" + entry + "\x00")
	var found []row
	err := each(func(pid int) {
		if pid == os.Getpid() {
			return
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil || !bytes.Contains(append([]byte{0}, env...), want) {
			return
		}
		if r, err := lookup(pid); err == nil && !r.ended() {
			found = append(found, r)
		}
	})
	return found, err
}

func each(do func(pid int)) error {
	dir, err := os.Open("/proc")
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			do(pid)
		}
	}
	return err
}

// threads says how many of a process's threads are stopped, and whether the process has ended.
func threads(pid int) (is stopping, gone bool) {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return noneStopped, true
	}
	stopped, running := 0, 0
	for _, task := range tasks {
		stat, err := os.ReadFile(dir + "/" + task.Name() + "/stat")
		if err != nil {
			continue // a thread that ended
		}
		switch r, err := parseStat(pid, stat); {
		case err != nil || r.ended():
		case r.state == 'T':
			stopped++
		default:
			running++
		}
	}
	switch {
	case stopped+running == 0:
		return noneStopped, true
	case running == 0:
		return allStopped, false
	case stopped == 0:
		return noneStopped, false
	default:
		return someStopped, false
	}
}

// boot names this start of the machine.
func boot() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

// pidSpace names the set of process numbers that ours is from: containers have their own.
func pidSpace() string {
	space, _ := os.Readlink("/proc/self/ns/pid")
	return space
}

// deathSignal is what the kernel sends to our children when we die. Tests of the guard turn it off.
var deathSignal = syscall.SIGKILL

// ownGroup makes the child the leader of a new group, to be killed when the thread that starts it ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: deathSignal}
}

// awaitExit returns when a child has ended, and leaves it to be reaped.
func awaitExit(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}
