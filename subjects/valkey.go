package subjects

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"fencepost.dev/topology/endpoint"
)

// valkey is a subject's way to its store: the reference client, and the prefix of every key that the run may touch.
type valkey struct {
	redis.UniversalClient
	namespace string
}

// openValkey connects to the run's Valkey, and reports one that does not answer before the run begins.
func openValkey(ctx context.Context, env Env, options ...endpoint.Option) (valkey, error) {
	e, given := env.Endpoints["valkey"]
	if !given {
		return valkey{}, fmt.Errorf("subjects: the topology has no valkey store for the subject to use")
	}
	client, err := e.Valkey(append([]endpoint.Option{endpoint.From(env.Worker)}, options...)...)
	if err != nil {
		return valkey{}, fmt.Errorf("subjects: %w", err)
	}
	if err := client.Ping(ctx).Err(); err != nil {
		_ = client.Close()
		return valkey{}, fmt.Errorf("subjects: %v does not answer: %w", e, err)
	}
	return valkey{client, e.Namespace}, nil
}

// key is the name in the store of what the workload calls key.
func (v valkey) key(key string) string { return v.namespace + key }
