package subjects

import (
	"context"

	flawed "fencepost.dev/flawed/lock"
	"fencepost.dev/models"
	"fencepost.dev/primitives/lock"
)

func init() {
	Register(Subject{
		Name:      "flawed/lock/delete-without-owner",
		Primitive: "lock",
		Summary:   "releases with a plain DEL, whoever holds the lock by then",
		Contract:  models.Contract{AfterExpiry: models.Gone, Renews: models.RenewsClient, Refusals: models.Exact},
		Stores:    []string{"valkey"},
		Flawed:    true,
		New: func(ctx context.Context, env Env) (any, error) {
			store, err := openValkey(ctx, env)
			if err != nil {
				return nil, err
			}
			return newValkeyLock(store, flawed.NewDeleteWithoutOwner(store, lock.Now(env.Now))), nil
		},
	})
}
