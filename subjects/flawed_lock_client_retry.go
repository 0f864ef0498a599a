package subjects

import (
	"context"

	flawed "fencepost.dev/flawed/lock"
	"fencepost.dev/history"
	"fencepost.dev/models"
	"fencepost.dev/primitives/lock"
	"fencepost.dev/topology/endpoint"
)

func init() {
	Register(Subject{
		Name:      "flawed/lock/client-retry",
		Primitive: "lock",
		Summary:   "the client library repeats SET NX by itself, and is refused by its own first try",
		Contract:  models.Contract{AfterExpiry: models.Gone, Renews: models.RenewsClient, Refusals: models.Exact},
		Stores:    []string{"valkey"},
		Flawed:    true,
		New: func(ctx context.Context, env Env) (any, error) {
			store, err := openValkey(ctx, env)
			if err != nil {
				return nil, err
			}
			retrying, err := openValkey(ctx, env, endpoint.Retries(flawed.Retries), endpoint.WaitReply(flawed.RetryAfter))
			if err != nil {
				_ = store.Close()
				return nil, err
			}
			l := newValkeyLock(store, flawed.NewClientRetry(retrying, store, lock.Now(env.Now)), retrying)
			l.acquired = classifyRetried
			return l, nil
		},
	})
}

// classifyRetried is what remains to be said of a client that repeats commands by itself. Its error is that of its last try;
// an earlier one may have had its effect. (So may it where the answer is a refusal. But that is what the client was told, and
// what the flaw is.)
func classifyRetried(err error) history.Outcome {
	if err == nil {
		return history.OK
	}
	return history.Unknown
}
