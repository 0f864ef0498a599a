package topology

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"fencepost.dev/faults"
)

// Kind is one thing that can be brought up.
type Kind struct {
	Store, Kind, Provider string
	Summary               string
	// assemble checks the order and puts the topology together, with nothing running yet.
	assemble func(Order) (assembled, error)
}

// assembled is a topology that is not up yet.
type assembled interface {
	Topology
	// start brings it up. If it fails, Close must still be called.
	start(context.Context) error
}

// kinds is the table of what there is: one line each. The first kind of a store is its default, and so is a kind's first
// provider.
var kinds = []Kind{
	standaloneProcess,
	standaloneExternal,
}

// Kinds lists what can be brought up.
func Kinds() []Kind { return append([]Kind(nil), kinds...) }

// Errors that callers decide on.
var (
	// ErrNoServer: the machine lacks the program that a node would run.
	ErrNoServer = errors.New("no server program is installed")
	// ErrUnreachable: an external store does not answer, or not us.
	ErrUnreachable = errors.New("the external store can't be used")
)

// Up brings up what is ordered, and returns when it is ready. If it can't, nothing of it is left, and the error says what to
// do in one sentence.
func Up(ctx context.Context, order Order) (Topology, error) {
	topology, err := assemble(order)
	if err != nil {
		return nil, err
	}
	if err := topology.start(ctx); err != nil {
		// ctx may be what ended it.
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
		defer cancel()
		return nil, errors.Join(err, topology.Close(closing))
	}
	return topology, nil
}

// Targets checks an order without bringing anything up, and gives the directory that it would have, so that a scenario's
// faults can be held against it (faults.Validate) before anything runs. Nothing must be done to the targets.
func Targets(order Order) (faults.Directory, error) { return assemble(order) }

func assemble(order Order) (assembled, error) {
	if order.Provider == "" {
		order.Provider = "process"
	}
	if order.Log == nil {
		order.Log = slog.New(slog.DiscardHandler)
	}
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		if kind.Store == order.Store && kind.Kind == order.Kind && kind.Provider == order.Provider {
			return kind.assemble(order)
		}
		names[i] = kind.String()
	}
	asked := Kind{Store: order.Store, Kind: order.Kind, Provider: order.Provider}
	return nil, fmt.Errorf("there is no topology %v; there are %s", asked, strings.Join(names, ", "))
}

// String is how messages call it: "valkey standalone (process)".
func (k Kind) String() string { return fmt.Sprintf("%s %s (%s)", k.Store, k.Kind, k.Provider) }
