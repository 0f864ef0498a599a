package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"fencepost.dev/faults"
	"fencepost.dev/history"
	"fencepost.dev/topology"
	"fencepost.dev/topology/endpoint"
)

// order is what the scenario orders of one store.
func (c *coordinator) order(name string) (topology.Order, error) {
	store := c.scenario.Topology[name]
	order := topology.Order{
		Store: name, Kind: store.Kind, Provider: store.Provider, Options: store.Options,
		Logs: filepath.Join(c.Out, logsDir), Allow: c.AllowFaults, Namespace: "fencepost:" + c.id + ":",
		Journal: c.journal, Log: c.log.With("store", name),
	}
	external, given := c.External[name]
	switch {
	case given && store.Provider != externalProvider:
		return order, fmt.Errorf("--%s names a server that is already there: add --provider external", name)
	case !given && store.Provider == externalProvider:
		return order, fmt.Errorf("--provider external needs the address of the server: --%s HOST:PORT", name)
	case given:
		order.External = &external
	}
	return order, nil
}

// closePatience is how long a store may take to be taken down.
const closePatience = 20 * time.Second

// externalProvider is the provider of stores that are already there.
const externalProvider = "external"

// faultsFit refuses a schedule that the workers or the topology can't do, before anything is started.
func (c *coordinator) faultsFit(ctx context.Context) error {
	if len(c.scenario.Topology) > 0 {
		if err := connectionsFit(c.scenario.Load.Clients); err != nil {
			return err
		}
	}
	would := directory{crew: c.crew, stores: map[string]faults.Directory{}}
	for _, name := range sortedNames(c.scenario.Topology) {
		order, err := c.order(name)
		if err != nil {
			return err
		}
		if would.stores[name], err = topology.Targets(order); err != nil {
			return err
		}
	}
	if err := faults.Validate(ctx, c.scenario.Faults, would); err != nil {
		return &CannotError{err}
	}
	return nil
}

// connectionsFit refuses more clients to a worker than it has connections for: those beyond would wait for one until they gave up.
func connectionsFit(clients int) error {
	if clients <= endpoint.PoolSize {
		return nil
	}
	return fmt.Errorf("%d clients a worker are more than the %d connections that a worker may have to a store: give --clients %d or fewer, and more --workers instead",
		clients, endpoint.PoolSize, endpoint.PoolSize)
}

// bringUp starts the stores of the scenario.
func (c *coordinator) bringUp(ctx context.Context) error {
	for _, name := range sortedNames(c.scenario.Topology) {
		order, err := c.order(name)
		if err != nil {
			return err
		}
		up, err := topology.Up(ctx, order)
		if errors.Is(err, topology.ErrNoServer) {
			return &CannotError{err}
		} else if err != nil {
			return err
		}
		c.later(func() error {
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
			defer cancel()
			return up.Close(closing)
		})
		c.stores[name] = up
	}
	return nil
}

// endpoints are what workers need to reach the stores.
func (c *coordinator) endpoints() endpoint.Set {
	set := endpoint.Set{}
	for name, store := range c.stores {
		set[name] = store.Endpoint()
	}
	return set
}

// watchStores records when a store's node answers again, until ctx ends; wait returns when it has stopped.
func (c *coordinator) watchStores(ctx context.Context) (wait func()) {
	var watching sync.WaitGroup
	for name, store := range c.stores {
		watching.Go(func() {
			store.Watch(ctx, func(node int, silence time.Duration) {
				c.emit(history.Event{
					Kind: history.EventNodeAnswering, At: c.clock.Now(), Target: fmt.Sprintf("%s/%d", name, node),
					Process: -1, Node: node, Delay: silence,
				})
			})
		})
	}
	return watching.Wait
}

// deadNodes is an error for each store's node that has ended, and that no fault of the schedule ended.
func (c *coordinator) deadNodes(ctx context.Context) error {
	var errs []error
	for _, name := range sortedNames(c.stores) {
		targets, err := c.stores[name].Resolve(ctx, "")
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, target := range targets {
			mortal, ok := target.(faults.Mortal)
			if ok && !mortal.Alive() && !c.faulted(target.Name()) {
				errs = append(errs, fmt.Errorf("%s ended during the run, and no fault of ours ended it; its log in %s says why", target.Name(), logsDir))
			}
		}
	}
	return errors.Join(errs...)
}

// directory resolves fault targets: worker, worker/w1, and each store by its name.
type directory struct {
	crew   *crew
	stores map[string]faults.Directory
}

// directory resolves what faults are done to in this run.
func (c *coordinator) directory() faults.Directory {
	d := directory{crew: c.crew, stores: map[string]faults.Directory{}}
	for name, store := range c.stores {
		d.stores[name] = store
	}
	return d
}

// Resolve is faults.Directory.
func (d directory) Resolve(ctx context.Context, name string) ([]faults.Target, error) {
	kind, rest, _ := strings.Cut(name, "/")
	if kind == workerTarget {
		return d.crew.Resolve(ctx, name)
	}
	store, known := d.stores[kind]
	if !known {
		return nil, fmt.Errorf("there is no target %q; there are %s", name, strings.Join(append([]string{workerTarget}, sortedNames(d.stores)...), ", "))
	}
	return store.Resolve(ctx, rest)
}

// routable says whether workers on other machines can reach the store.
func routable(e endpoint.Endpoint) bool {
	for _, address := range e.Addresses {
		host, _, err := net.SplitHostPort(address)
		if err != nil || host == "localhost" {
			return false
		}
		if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
			return false
		}
	}
	return true
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
