package topology

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"fencepost.dev/faults"
	"fencepost.dev/topology/endpoint"
)

// namespacePrefix begins every key that a run makes in a store that isn't ours, so that what is removed at its end is certain
// to have been made by a run.
const namespacePrefix = "fencepost"

// reachPatience bounds the first contact with an external store.
const reachPatience = 5 * time.Second

var standaloneExternal = Kind{
	Store: "valkey", Kind: "standalone", Provider: "external",
	Summary: "one server that is already there",
	assemble: func(order Order) (assembled, error) {
		if order.External == nil || len(order.External.Addresses) == 0 {
			return nil, errors.New("an external store needs its address: --valkey HOST:PORT")
		}
		if given := order.External.Addresses; len(given) > 1 {
			return nil, fmt.Errorf("an external standalone store is one server, and %d addresses are given: %s",
				len(given), strings.Join(given, ", "))
		}
		if len(order.Options) > 0 {
			return nil, errors.New("an external store is configured by whoever runs it: options of its topology have no effect")
		}
		return newExternal(order, standalone(order, newRemote(order, 0)))
	},
}

// external is a topology of nodes that others run. What we make there are keys.
type external struct {
	*nodes
	removed func() error // tells the journal that our keys are gone; nil: none were made
}

func newExternal(order Order, n *nodes) (*external, error) {
	if !strings.HasPrefix(order.Namespace, namespacePrefix) {
		return nil, fmt.Errorf("the namespace %q of an external store does not begin with %q", order.Namespace, namespacePrefix)
	}
	for _, address := range order.External.Addresses {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, fmt.Errorf("%q is no HOST:PORT", address)
		}
	}
	n.access = *order.External
	n.access.Addresses = nil
	return &external{nodes: n}, nil
}

// start checks that every node can be reached and used.
func (e *external) start(ctx context.Context) error {
	for i := range e.list {
		if err := reach(ctx, e.only(i)); err != nil {
			return err
		}
	}
	entry := keysEntry{Namespace: e.order.Namespace}
	for i := range e.list {
		entry.Nodes = append(entry.Nodes, onDisk(e.only(i)))
	}
	removed, err := begin(e.order.Journal, keysKind, entry)
	if err != nil {
		return fmt.Errorf("using %s: %w", strings.Join(e.order.External.Addresses, ", "), err)
	}
	e.removed = removed
	return e.nodes.start(ctx)
}

// Close removes the keys of the run. That walks through the whole key space of the server, a thousand at a time.
func (e *external) Close(ctx context.Context) error {
	if e.removed == nil {
		return nil
	}
	var errs []error
	for i := range e.list {
		errs = append(errs, removeKeys(ctx, e.only(i), e.order.Namespace))
	}
	if err := errors.Join(errs...); err != nil {
		return err // stays in the journal
	}
	return e.removed()
}

// reach asks the server at the endpoint for an answer. Its error says in one sentence what to do.
func reach(ctx context.Context, at endpoint.Endpoint) error {
	client, err := at.Valkey()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, reachPatience)
	defer cancel()
	err = client.Ping(ctx).Err()
	if err == nil {
		return nil
	}
	address := at.Addresses[0]
	var refused redis.Error
	var answered *net.OpError
	switch {
	case errors.As(err, &refused):
		return unreachable("%s refuses us: %s; give --username NAME if it wants one, and the password in $FENCEPOST_PASSWORD or --password-file",
			address, refused.Error())
	case errors.Is(err, syscall.ECONNREFUSED):
		return unreachable("cannot reach %s: connection refused; is the server running?", address)
	case at.TLS != nil && isCertificate(err):
		return unreachable("cannot reach %s over TLS: %v; is the authority that signed its certificate given (--tls-ca)?", address, err)
	case at.TLS != nil:
		return unreachable("cannot reach %s over TLS: %v; does the server speak TLS there?", address, err)
	case ctx.Err() != nil || isTimeout(err):
		return unreachable("cannot reach %s: it does not answer; is the address right, and is nothing in between?", address)
	case errors.As(err, &answered) && answered.Op == "dial":
		return unreachable("cannot reach %s: %v; is the address right?", address, answered.Err)
	default:
		return unreachable("cannot reach %s: %v; does the server want TLS (--tls)?", address, err)
	}
}

func isCertificate(err error) bool {
	var unverified *tls.CertificateVerificationError
	return errors.As(err, &unverified)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// unreachableError is ErrUnreachable in words of its own.
type unreachableError string

func unreachable(format string, args ...any) error {
	return unreachableError(fmt.Sprintf(format, args...))
}

func (e unreachableError) Error() string        { return string(e) }
func (e unreachableError) Is(target error) bool { return target == ErrUnreachable }

// remote is a node that others run.
type remote struct {
	order  Order
	number int
	pulse  pulse
}

func newRemote(order Order, n int) *remote { return &remote{order: order, number: n} }

func (r *remote) Name() string                { return fmt.Sprintf("%s/%d", r.order.Store, r.number) }
func (r *remote) Place() (process, node int)  { return -1, r.number }
func (r *remote) address() string             { return r.order.External.Addresses[r.number] }
func (r *remote) answering() *pulse           { return &r.pulse }
func (r *remote) start(context.Context) error { return nil }
func (r *remote) close(context.Context) error { return nil }

// Refuse keeps faults off a server that isn't ours, unless the user allowed them. What only its owner can do to it (pause its
// process) is refused in any case.
func (r *remote) Refuse(fault faults.Fault) error {
	if !fault.Supports(r) {
		return fmt.Errorf("%s is an external store: it cannot %s from here, only faults that a client can cause are possible on it",
			r.Name(), fault.Needs)
	}
	if !r.order.Allow {
		return fmt.Errorf("%s is an external store: the fault %q on it needs --allow-faults", r.Name(), fault.Name)
	}
	return nil
}
