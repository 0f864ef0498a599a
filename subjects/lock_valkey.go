package subjects

import (
	"context"

	"fencepost.dev/models"
	"fencepost.dev/primitives/lock"
)

func init() {
	Register(Subject{
		Name:      "lock/valkey",
		Primitive: "lock",
		Summary:   "SET NX PX with a random owner; compare-and-delete, compare-and-extend",
		Contract:  models.Contract{AfterExpiry: models.Gone, Renews: models.RenewsClient, Refusals: models.Exact},
		Stores:    []string{"valkey"},
		New: func(ctx context.Context, env Env) (any, error) {
			store, err := openValkey(ctx, env)
			if err != nil {
				return nil, err
			}
			return newValkeyLock(store, lock.NewValkey(store, lock.Now(env.Now))), nil
		},
	})
}
