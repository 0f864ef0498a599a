package faults_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"fencepost.dev/faults"
	"fencepost.dev/history"
	"fencepost.dev/scenarios"
)

func TestATrapCatchesTheWorkerThatSprangIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("w1", "w2", "w3")
		w.targets["w2"].delay = 20 * ms
		w.spring("holding", "w2", 3, 1500*ms)
		w.play(t, 6*s, scenarios.Fault{At: 1 * s, Do: "pause", On: "worker", For: 700 * ms, When: "holding"})
		// The client is let go only when the fault is in force.
		told(t, w, `
			1.5s journal fault pause w2
			1.52s pause w2
			1.52s released w2/c3
			2.24s resume w2
			2.24s undone pause w2`)
		got := w.events[0]
		if got.Point != "holding" || got.Client != "w2/c3" || got.Grant != 3 || got.Process != 1 || !got.Confirmed {
			t.Errorf("%+v", got)
		}
	})
}

func TestATrapOnOneWorkerIgnoresTheOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("w1", "w2")
		w.spring("holding", "w1", 0, 1*s)
		w.spring("holding", "w2", 0, 2*s)
		w.play(t, 6*s, scenarios.Fault{Do: "kill", On: "worker/w2", When: "holding"})
		if len(w.events) != 1 || w.events[0].Target != "w2" || w.events[0].At != int64(2*s) {
			t.Errorf("%+v", w.events)
		}
	})
}

func TestAnyClientSpringsATrapOnAStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("w1", "w2", "v0")
		w.spring("holding", "w2", 0, 2*s)
		w.play(t, 6*s, scenarios.Fault{Do: "restart", On: "valkey", When: "holding"})
		if got := w.events[0]; got.Target != "v0" || got.Node != 2 || got.Process != -1 || got.Client != "w2/c0" {
			t.Errorf("%+v", w.events)
		}
	})
}

func TestATrapIsMissedIfTheFaultComesTooLate(t *testing.T) {
	for name, miss := range map[string]func(*world){
		"in force after more than a second": func(w *world) { w.targets["w1"].delay = 1100 * ms },
		"the client had gone on":            func(w *world) { w.gone["w1/c0"] = true },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld("w1")
				miss(w)
				w.spring("holding", "w1", 0, 1*s)
				w.play(t, 6*s, scenarios.Fault{Do: "pause", On: "worker", For: 700 * ms, When: "holding"})
				if len(w.events) != 2 {
					t.Fatalf("%+v", w.events)
				}
				for _, event := range w.events {
					switch event.Kind {
					case history.EventTrapMissed:
						if event.Client != "w1/c0" || event.Point != "holding" || event.Process != 0 {
							t.Errorf("%+v", event)
						}
					case history.EventFault:
						// It was in force, but did not catch anybody.
						if !event.Confirmed || event.Client != "" || event.Point != "" {
							t.Errorf("%+v", event)
						}
					}
				}
			})
		})
	}
}

func TestATrapOnATargetUnderAnotherFaultIsMissedAfterASecond(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("w1", "v0")
		w.spring("holding", "w1", 0, 1*s)
		w.play(t, 6*s,
			scenarios.Fault{Do: "pause", On: "valkey", For: 5 * s},
			scenarios.Fault{Do: "kill", On: "valkey", When: "holding"})
		told(t, w, `
			0s journal fault pause v0
			0s pause v0
			2s released w1/c0
			5s resume v0
			5s undone pause v0`)
		if len(w.events) != 2 || w.events[1].Kind != history.EventTrapMissed {
			t.Errorf("%+v", w.events)
		}
	})
}

func TestTwoTrapsAtOnePointCatchTwoClients(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("w1", "w2")
		w.spring("holding", "w1", 0, 1*s)
		w.spring("holding", "w2", 0, 1*s)
		w.play(t, 6*s,
			scenarios.Fault{Do: "pause", On: "worker", For: 1 * s, When: "holding"},
			scenarios.Fault{Do: "kill", On: "worker", When: "holding"})
		if len(w.events) != 2 || w.events[0].Target == w.events[1].Target || w.events[0].Client == w.events[1].Client {
			t.Errorf("%+v", w.events)
		}
	})
}

func TestATrapThatNobodySpringsEndsWithTheLoad(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("w1")
		w.play(t, 6*s, scenarios.Fault{At: 1 * s, Do: "pause", On: "worker", When: "holding"})
		if len(w.events) != 0 || w.now() != int64(6*s) {
			t.Errorf("%+v at %v", w.events, time.Duration(w.now()))
		}
	})
}

// brokenTraps can't be armed.
type brokenTraps struct{}

func (brokenTraps) Arm(context.Context, string, []string) (faults.Sprung, error) {
	return faults.Sprung{}, errors.New("the plane is closed")
}

func TestATrapThatCanNotBeArmedIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld("w1")
		env := w.env(6 * s)
		for _, traps := range []faults.Traps{brokenTraps{}, nil} {
			env.Traps = traps
			err := faults.Play(t.Context(), []scenarios.Fault{{Do: "pause", On: "worker", When: "holding"}}, env)
			if err == nil || !strings.Contains(err.Error(), `"holding"`) {
				t.Errorf("with %T the error is %v", traps, err)
			}
		}
	})
}
