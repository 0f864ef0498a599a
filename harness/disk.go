package harness

import (
	"fmt"

	"golang.org/x/sys/unix"

	"fencepost.dev/history"
)

// roomFor is an error if the results directory's disk lacks the room that the run reserves when it begins: a segment for each
// worker on this machine, and one for the witness. A run that goes on for long takes more. Where the room can't be told
// nothing is wrong yet.
func roomFor(o Options) error {
	records := int64(1)
	if o.Remote == 0 {
		records += int64(o.Scenario.Load.Workers)
	}
	var disk unix.Statfs_t
	if unix.Statfs(o.Out, &disk) != nil || disk.Blocks == 0 {
		return nil
	}
	left, need := int64(disk.Bavail)*int64(disk.Bsize), records*history.DefaultSegmentSize
	if left >= need {
		return nil
	}
	return fmt.Errorf("the disk of the results directory %s has %d MB left, and this run begins with %d MB: free some, or choose a directory on another disk with --out",
		o.Out, left>>20, (need+1<<20-1)>>20)
}
