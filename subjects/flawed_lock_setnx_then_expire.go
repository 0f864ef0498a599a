package subjects

import (
	"context"

	flawed "fencepost.dev/flawed/lock"
	"fencepost.dev/models"
)

func init() {
	Register(Subject{
		Name:      "flawed/lock/setnx-then-expire",
		Primitive: "lock",
		Summary:   "takes the lock with one command and gives it its time-to-live with another",
		Contract:  models.Contract{AfterExpiry: models.Gone, Renews: models.RenewsClient, Refusals: models.Exact},
		Stores:    []string{"valkey"},
		Flawed:    true,
		Points:    []string{flawed.BetweenCommands},
		New: func(ctx context.Context, env Env) (any, error) {
			store, err := openValkey(ctx, env)
			if err != nil {
				return nil, err
			}
			return newValkeyLock(store, flawed.NewSetNXThenExpire(store, env.Point, env.Now)), nil
		},
	})
}
