package process

import "strconv"

// Born is when a process started, as the machine's own table tells it: a text to compare with another of the same machine, and
// "" if there is no such process. With its number it names one process, however often the number is given out.
func Born(pid int) string {
	if pid <= 0 {
		return ""
	}
	r, err := lookup(pid)
	if err != nil {
		return ""
	}
	return strconv.FormatUint(r.start, 10)
}
