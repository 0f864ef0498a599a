// Package topology is what subjects talk to, run for them: stores as people run them, by provider.
package topology

import (
	"context"
	"log/slog"

	"fencepost.dev/faults"
	"fencepost.dev/topology/endpoint"
)

// Topology is one store that is up. Close ends it and removes all that it made.
type Topology interface {
	// Endpoint is what workers need to reach it.
	Endpoint() endpoint.Endpoint
	// Directory resolves targets within it ("primary", "0", "" for any).
	faults.Directory
	// Nodes names the nodes in the order of history.Operation.Node.
	Nodes() []string
	// Version is what the servers say they are, for the report's environment.
	Version() string
	// Watch reports nodes that answer again after they did not, until ctx ends. It is called once.
	Watch(ctx context.Context, answering func(node int))
	Close(context.Context) error
}

// Order is what to bring up.
type Order struct {
	Store     string // "valkey"
	Kind      string // "standalone"
	Provider  string // "process", "docker", "external"
	Options   map[string]any
	Dir       string // where temporary data may go
	Logs      string // where servers' logs are kept
	External  *endpoint.Endpoint
	Allow     bool // faults on external stores
	Namespace string
	Log       *slog.Logger
}
