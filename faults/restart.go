package faults

import (
	"context"
	"fmt"
)

// RestartOptions are the options of restart.
type RestartOptions struct {
	// Persistence says what a store node has when it is back: true, what it had stored, and the node must be one that keeps
	// it; false, nothing, whatever it keeps; unset, what its configuration makes of it.
	Persistence *bool `yaml:"persistence" json:"persistence,omitempty"`
}

var restart = Fault{
	Name:      "restart",
	Summary:   "ends a process without warning and starts it again, at once or after a duration; persistence: false empties a store",
	Needs:     "be killed and started again",
	Momentary: true,
	Supports: func(target Target) bool {
		_, ok := target.(Killable)
		return ok
	},
	Options: func() any { return new(RestartOptions) },
	Inject: func(ctx context.Context, target Target, order Order) (func(context.Context) error, error) {
		options, _ := order.Options.(*RestartOptions)
		victim := target.(Killable)
		start := victim.Start
		if options != nil {
			if err := options.Fit(target); err != nil {
				return nil, err
			}
			if options.Persistence != nil && !*options.Persistence {
				start = target.(Forgetful).StartEmpty
			}
		}
		if err := victim.Kill(ctx); err != nil {
			return nil, fmt.Errorf("killing %s: %w", target.Name(), err)
		}
		return starting(target, start), nil
	},
}

// Fit refuses what the target can't remember or forget.
func (o *RestartOptions) Fit(target Target) error {
	if o.Persistence == nil {
		return nil
	}
	if !*o.Persistence {
		if _, ok := target.(Forgetful); !ok {
			return fmt.Errorf("%s cannot be started empty: persistence: false is for store nodes that we run", target.Name())
		}
		return nil
	}
	if keeper, ok := target.(Keeper); !ok || !keeper.Keeps() {
		return fmt.Errorf("%s keeps nothing when it is killed: restart with persistence: true needs a store with persistence: true "+
			"among its topology's options", target.Name())
	}
	return nil
}
