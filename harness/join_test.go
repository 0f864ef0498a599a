package harness

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"fencepost.dev/plane"
)

// TestJoinWhenTheCoordinatorDies tells an agent that had nothing to do from one that had begun: only that ended a run.
func TestJoinWhenTheCoordinatorDies(t *testing.T) {
	for _, began := range []bool{false, true} {
		t.Setenv("XDG_STATE_HOME", t.TempDir())
		t.Setenv("TMPDIR", t.TempDir()) // Join sets it
		hub, err := plane.Listen(t.Context(), plane.Options{})
		if err != nil {
			t.Fatal(err)
		}
		fleet, err := plane.NewFleet(hub.Conn(), plane.NewClock(), Version())
		if err != nil {
			t.Fatal(err)
		}
		joined := make(chan error, 1)
		go func() { joined <- Join(context.WithoutCancel(t.Context()), hub.URL(), hub.Token(), "a1") }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := fleet.Wait(ctx, 1); err != nil {
			t.Fatal(err)
		}
		if began {
			if _, err := fleet.Launch(ctx, "a1", plane.Launch{Worker: "w1", Incarnation: 1, Assignment: json.RawMessage("{}")}); err != nil {
				t.Fatal(err)
			}
		}
		hub.Close()
		err = <-joined
		if !errors.Is(err, plane.ErrCoordinatorGone) || errors.Is(err, ErrUnproven) != began {
			t.Errorf("a worker was started: %v; the agent ended with %v, unproven %v", began, err, errors.Is(err, ErrUnproven))
		}
		fleet.Close()
	}
}
