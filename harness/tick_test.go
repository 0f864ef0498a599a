package harness

import (
	"slices"
	"testing"
	"time"

	"fencepost.dev/history"
	"fencepost.dev/reports"
)

// TestFaultsAreToldAsTheyComeAndGo: each by its own times, and not one that did not come into force.
func TestFaultsAreToldAsTheyComeAndGo(t *testing.T) {
	const ms = int64(time.Millisecond)
	c := &coordinator{start: 1000 * ms, inForce: map[int]string{}}
	begun := history.Event{ID: 1, Kind: history.EventFault, Fault: "pause", Target: "w1", At: 1500 * ms, Confirmed: true}
	c.changed(begun)
	c.changed(history.Event{ID: 2, Kind: history.EventFault, Fault: "kill", Target: "w2", At: 1510 * ms})
	begun.End = 1520 * ms
	c.changed(begun)
	want := []reports.Change{
		{At: 500 * time.Millisecond, Fault: "pause w1"},
		{At: 520 * time.Millisecond, Fault: "pause w1", Ended: true, Lasted: 20 * time.Millisecond},
	}
	if !slices.Equal(c.changes, want) {
		t.Errorf("got %+v, want %+v", c.changes, want)
	}
	if _, still := c.inForce[1]; still {
		t.Error("a fault that has ended is in force")
	}
}
