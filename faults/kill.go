package faults

import (
	"context"
	"fmt"
)

var kill = Fault{
	Name:    "kill",
	Summary: "ends a process without warning; with a duration it is started again after it",
	Needs:   "be killed",
	Supports: func(target Target) bool {
		_, ok := target.(Killable)
		return ok
	},
	Inject: func(ctx context.Context, target Target, order Order) (func(context.Context) error, error) {
		victim := target.(Killable)
		if err := victim.Kill(ctx); err != nil {
			return nil, fmt.Errorf("killing %s: %w", target.Name(), err)
		}
		if order.For == 0 {
			return nil, nil // it stays dead
		}
		return starting(target, victim.Start), nil
	},
}

// starting is an undo that starts a killed target again.
func starting(target Target, start func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := start(ctx); err != nil {
			return fmt.Errorf("starting %s again: %w", target.Name(), err)
		}
		return nil
	}
}
