package topology

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"fencepost.dev/faults"
	"fencepost.dev/topology/endpoint"
)

// closePatience is how long the closing of a topology may take.
const closePatience = 10 * time.Second

// node is one server of a topology, whoever runs it. Its faults.Target is what faults are done to.
type node interface {
	faults.Target
	faults.Placed
	start(context.Context) error // returns when it answers
	close(context.Context) error // also if start failed or was never called
	address() string             // host:port; settled once start has returned
	answering() *pulse
}

// nodes are what every kind is made of. A kind embeds or wraps them, adds roles, and forms them into one after start.
type nodes struct {
	order   Order
	access  endpoint.Endpoint // how to reach them: all but the addresses
	list    []node
	version string
	// roles name nodes by what they are now ("primary").
	roles map[string]func(context.Context) ([]node, error)
}

// start brings all nodes up at once.
func (n *nodes) start(ctx context.Context) error {
	if err := n.each(func(one node) error { return one.start(ctx) }); err != nil {
		return err
	}
	var err error
	n.version, err = version(ctx, n.only(0))
	return err
}

// Close ends the nodes, the last first, and removes what they made.
func (n *nodes) Close(ctx context.Context) error {
	var errs []error
	for _, one := range slices.Backward(n.list) {
		errs = append(errs, one.close(ctx))
	}
	return errors.Join(errs...)
}

// Endpoint is what workers need.
func (n *nodes) Endpoint() endpoint.Endpoint {
	reach := n.access
	reach.Kind, reach.Namespace = n.order.Kind, n.order.Namespace
	for _, one := range n.list {
		reach.Addresses = append(reach.Addresses, one.address())
	}
	return reach
}

// only is how to reach one node by itself, as if it were alone.
func (n *nodes) only(i int) endpoint.Endpoint {
	reach := n.access
	reach.Kind, reach.Addresses = "standalone", []string{n.list[i].address()}
	return reach
}

// Nodes names them in the order of their numbers.
func (n *nodes) Nodes() []string {
	names := make([]string, len(n.list))
	for i, one := range n.list {
		names[i] = one.Name()
	}
	return names
}

// Version is what the first node says it is.
func (n *nodes) Version() string { return n.version }

// Resolve gives the nodes that a name stands for: "" all, "0" the first, a role those that have it now.
func (n *nodes) Resolve(ctx context.Context, name string) ([]faults.Target, error) {
	found := n.list
	if role, ok := n.roles[name]; ok {
		var err error
		if found, err = role(ctx); err != nil {
			return nil, fmt.Errorf("finding %s/%s: %w", n.order.Store, name, err)
		}
	} else if name != "" {
		number, err := strconv.Atoi(name)
		if err != nil || number < 0 || number >= len(n.list) {
			there := append(slices.Sorted(maps.Keys(n.roles)), n.Nodes()...)
			return nil, fmt.Errorf("there is no %s/%s; there are %s", n.order.Store, name, strings.Join(there, ", "))
		}
		found = n.list[number : number+1]
	}
	targets := make([]faults.Target, len(found))
	for i, one := range found {
		targets[i] = one
	}
	return targets, nil
}

// Watch follows each node on its own.
func (n *nodes) Watch(ctx context.Context, answering func(node int, silence time.Duration)) {
	var watching sync.WaitGroup
	for i, one := range n.list {
		watching.Go(func() {
			client, err := n.only(i).Valkey(endpoint.WaitReply(probePatience))
			if err != nil {
				n.order.Log.Error("the node can't be watched", "node", one.Name(), "error", err)
				return
			}
			defer client.Close()
			ping := func(ctx context.Context) error { return client.Ping(ctx).Err() }
			one.answering().watch(ctx, ping, func(silence time.Duration) { answering(i, silence) })
		})
	}
	watching.Wait()
}

// each does something to all nodes at once.
func (n *nodes) each(do func(node) error) error {
	errs := make([]error, len(n.list))
	var doing sync.WaitGroup
	for i, one := range n.list {
		doing.Go(func() { errs[i] = do(one) })
	}
	doing.Wait()
	return errors.Join(errs...)
}
