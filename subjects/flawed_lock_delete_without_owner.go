package subjects

import (
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
		New:       onValkey(func(store valkey, env Env) locker { return flawed.NewDeleteWithoutOwner(store, lock.Now(env.Now)) }),
	})
}
