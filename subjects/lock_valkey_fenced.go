package subjects

import (
	"fencepost.dev/models"
	"fencepost.dev/primitives/lock"
)

func init() {
	Register(Subject{
		Name:      "lock/valkey-fenced",
		Primitive: "lock",
		Summary:   "the same, and each grant draws an increasing fencing token in the same step",
		Contract: models.Contract{
			AfterExpiry: models.Gone, Renews: models.RenewsClient, Refusals: models.Exact, Tokens: true,
		},
		Stores: []string{"valkey"},
		New:    onValkey(func(store valkey, env Env) locker { return lock.NewFenced(store, lock.Now(env.Now)) }),
	})
}
