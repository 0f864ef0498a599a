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

// openValkey connects to the run's Valkey, one connection for each client of the worker, and reports one that does not answer
// before the run begins. A client that had to connect while a fault is in force would show what becomes of handshakes, which is
// not what the run is about.
func openValkey(ctx context.Context, env Env, options ...endpoint.Option) (valkey, error) {
	e, given := env.Endpoints["valkey"]
	if !given {
		return valkey{}, fmt.Errorf("subjects: the topology has no valkey store for the subject to use")
	}
	client, err := e.Valkey(append([]endpoint.Option{endpoint.From(env.Worker)}, options...)...)
	if err != nil {
		return valkey{}, fmt.Errorf("subjects: %w", err)
	}
	if err := connect(ctx, client, max(env.Clients, 1)); err != nil {
		_ = client.Close()
		return valkey{}, fmt.Errorf("subjects: %v does not answer: %w", e, err)
	}
	return valkey{client, e.Namespace}, nil
}

// connect makes n connections to the client's node and leaves them in its pool.
func connect(ctx context.Context, client redis.UniversalClient, n int) error {
	node, one := client.(*redis.Client)
	if !one {
		return client.Ping(ctx).Err()
	}
	for range n {
		conn := node.Conn() // has a connection to itself until it is closed
		defer conn.Close()
		if err := conn.Ping(ctx).Err(); err != nil {
			return err
		}
	}
	return nil
}

// key is the name in the store of what the workload calls key. It is a hash tag, so that whatever a subject keeps beside it
// can share both its slot in a cluster and the namespace, which an ACL may bound.
func (v valkey) key(key string) string { return v.namespace + "{" + key + "}" }
