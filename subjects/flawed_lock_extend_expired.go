package subjects

import (
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
		New:       onValkey(func(store valkey, env Env) locker { return flawed.NewExtendExpired(store, env.Now) }),
	})
}
