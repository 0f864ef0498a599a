// Package topology is what subjects talk to, run for them: stores as people run them, by provider.
//
// A kind (standalone.go, …) composes nodes and says what their roles are; a provider says what a node is: a server that we
// run (server.go), or one that is already there (external.go). The table of kinds has a line for each pair.
package topology

import (
	"context"
	"log/slog"
	"time"

	"fencepost.dev/faults"
	"fencepost.dev/process"
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
	// Watch reports nodes that answer again after they did not, until ctx ends, and returns then. It is called once. A report
	// is never early: a question that was asked after the node was seen, or made, not to answer has been answered. An outage
	// that was not made by faults on our own nodes can go unnoticed if it is shorter than 250 ms. The silence is the longest for
	// which the node may not have answered.
	Watch(ctx context.Context, answering func(node int, silence time.Duration))
	Close(context.Context) error
}

// Order is what to bring up.
type Order struct {
	Store     string             // "valkey"
	Kind      string             // "standalone"
	Provider  string             // "process" (also if empty), "docker", "external"
	Options   map[string]any     // of the kind; for servers that we run see server_options.go
	Dir       string             // where temporary data may go; empty: the system's directory for it
	Logs      string             // where servers' logs are kept; empty: with the data, and gone with it
	External  *endpoint.Endpoint // addresses, TLS, user and password of an external store
	Allow     bool               // faults on external stores
	Namespace string             // prefix of the keys of the run; an external store's must begin with "fencepost"
	Journal   *process.Journal   // what is made is written here before it is, for the guard; nil: nowhere
	Log       *slog.Logger       // may be nil
}
