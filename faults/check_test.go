package faults_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"fencepost.dev/faults"
	"fencepost.dev/scenarios"
)

// stone is a target that nothing can be done to.
type stone struct{}

func (stone) Name() string { return "stone" }

// fragile is a worker: it can be killed and started, but is no store.
type fragile struct{ stone }

func (fragile) Kill(context.Context) error  { return nil }
func (fragile) Start(context.Context) error { return nil }

// place is a directory of one target, whatever it is asked for.
type place struct{ target faults.Target }

func (p place) Resolve(context.Context, string) ([]faults.Target, error) {
	return []faults.Target{p.target}, nil
}

// choosy refuses for a reason of its own.
type choosy struct{ fragile }

func (choosy) Refuse(fault faults.Fault) error {
	return errors.New(fault.Name + " is not allowed here")
}

func TestValidateRefusesInOneSentence(t *testing.T) {
	yes, no := true, false
	w := newWorld("v0", "v1")
	w.targets["v1"].keeps = true
	for _, c := range []struct {
		line   scenarios.Fault
		target faults.Target
		want   string // "" for none
	}{
		{scenarios.Fault{Do: "pause"}, w.targets["v0"], ""},
		{scenarios.Fault{Do: "pause"}, stone{}, `stone cannot be paused, so it can't take the fault "pause"`},
		{scenarios.Fault{Do: "pause"}, fragile{}, `stone cannot be paused, so it can't take the fault "pause"`},
		{scenarios.Fault{Do: "kill"}, fragile{}, ""},
		{scenarios.Fault{Do: "restart"}, stone{}, `stone cannot be killed and started again, so it can't take the fault "restart"`},
		{scenarios.Fault{Do: "kill"}, choosy{}, `kill is not allowed here`},
		{scenarios.Fault{Do: "pauze"}, stone{}, `there is no fault "pauze"; there are pause, kill, restart`},
		{scenarios.Fault{Do: "pause", For: -1}, w.targets["v0"], `the for of fault "pause" is negative`},
		{scenarios.Fault{Do: "pause", Options: &faults.RestartOptions{}}, w.targets["v0"], `fault "pause" has no options`},
		{scenarios.Fault{Do: "restart", Options: 3}, w.targets["v0"], `the options of fault "restart" are a int, not a *faults.RestartOptions`},
		{scenarios.Fault{Do: "restart", Options: &faults.RestartOptions{}}, fragile{}, ""},
		{scenarios.Fault{Do: "restart", Options: &faults.RestartOptions{Persistence: &no}}, w.targets["v0"], ""},
		{scenarios.Fault{Do: "restart", Options: &faults.RestartOptions{Persistence: &no}}, fragile{},
			"stone cannot be started empty: persistence: false is for store nodes that we run"},
		{scenarios.Fault{Do: "restart", Options: &faults.RestartOptions{Persistence: &yes}}, w.targets["v0"],
			"v0 keeps nothing when it is killed: restart with persistence: true needs a store with persistence: true among its topology's options"},
		{scenarios.Fault{Do: "restart", Options: &faults.RestartOptions{Persistence: &yes}}, w.targets["v1"], ""},
	} {
		got := ""
		if err := faults.Validate(t.Context(), []scenarios.Fault{c.line}, place{c.target}); err != nil {
			got = strings.TrimPrefix(err.Error(), "faults[0]: ")
		}
		if got != c.want {
			t.Errorf("%+v on %s: %q, not %q", c.line, c.target.Name(), got, c.want)
		}
	}
}

func TestValidateHoldsEveryLineAgainstItsTargets(t *testing.T) {
	w := newWorld("w1", "v0")
	good := scenarios.Fault{Do: "pause", On: "worker"}
	for _, c := range []struct {
		lines []scenarios.Fault
		want  string
	}{
		{[]scenarios.Fault{good, {Do: "kill", On: "valkey"}}, ""},
		{[]scenarios.Fault{good, {Do: "kill", On: "worker/w7"}}, "faults[1]: there is no worker/w7"},
		{[]scenarios.Fault{good, {Do: "explode", On: "worker"}}, `faults[1]: there is no fault "explode"; there are pause, kill, restart`},
	} {
		got := ""
		if err := faults.Validate(t.Context(), c.lines, w); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
}

func TestTheTableOfKindsIsComplete(t *testing.T) {
	for _, fault := range faults.All() {
		if fault.Name == "" || fault.Summary == "" || fault.Needs == "" || fault.Supports == nil || fault.Inject == nil {
			t.Errorf("%+v is incomplete", fault)
		}
		if found, ok := faults.Find(fault.Name); !ok || found.Summary != fault.Summary {
			t.Errorf("%s is not found", fault.Name)
		}
		if fault.Supports(stone{}) {
			t.Errorf("%s supports a stone", fault.Name)
		}
	}
}
