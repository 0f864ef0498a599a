package faults

import (
	"context"
	"fmt"
	"time"
)

var pause = Fault{
	Name:    "pause",
	Summary: "stops a process whole, as a long garbage collection or a suspended machine does; it runs on afterwards",
	Needs:   "be paused",
	Supports: func(target Target) bool {
		_, ok := target.(Pausable)
		return ok
	},
	Inject: func(ctx context.Context, target Target, _ Order) (func(context.Context) error, error) {
		stopped := target.(Pausable)
		if err := stopped.Pause(ctx); err != nil {
			// It may have been stopped all the same, only not been seen to be.
			mend, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = stopped.Resume(mend)
			return nil, fmt.Errorf("pausing %s: %w", target.Name(), err)
		}
		return func(ctx context.Context) error {
			if err := stopped.Resume(ctx); err != nil && alive(target) { // what has died isn't stopped
				return fmt.Errorf("resuming %s: %w", target.Name(), err)
			}
			return nil
		}, nil
	},
	Heal: func(record Record) error { return record.resume() },
}
