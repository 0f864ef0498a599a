package subjects

import (
	"context"

	flawed "fencepost.dev/flawed/lock"
	"fencepost.dev/models"
)

func init() {
	Register(Subject{
		Name:      "flawed/lock/extend-expired",
		Primitive: "lock",
		Summary:   "extends by setting the key again, so that an expired hold comes back",
		Contract:  models.Contract{AfterExpiry: models.Gone, Renews: models.RenewsClient, Refusals: models.Exact},
		Stores:    []string{"valkey"},
		Flawed:    true,
		New: func(ctx context.Context, env Env) (any, error) {
			store, err := openValkey(ctx, env)
			if err != nil {
				return nil, err
			}
			return newValkeyLock(store, flawed.NewExtendExpired(store, env.Now)), nil
		},
	})
}
