package subjects

import (
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
		New:       onValkey(func(store valkey, env Env) locker { return lock.NewValkey(store, lock.Now(env.Now)) }),
	})
}
