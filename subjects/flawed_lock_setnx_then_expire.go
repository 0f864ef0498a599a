package subjects

import (
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
		New:       onValkey(func(store valkey, env Env) locker { return flawed.NewSetNXThenExpire(store, env.Point, env.Now) }),
	})
}
