package topology

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"fencepost.dev/faults"
	"fencepost.dev/topology/endpoint"
)

// pair is a primary and its replica: a second kind, to show that kinds are made of the same nodes. It forms them into one
// after they are up, and its roles are what the servers say they are.
type pair struct{ *nodes }

func newPair(order Order) (assembled, error) {
	n := &nodes{order: order}
	for i := range 2 {
		one, err := newServer(order, i)
		if err != nil {
			return nil, err
		}
		n.list = append(n.list, one)
	}
	role := func(want string) func(context.Context) ([]node, error) {
		return func(ctx context.Context) ([]node, error) {
			var found []node
			for i, one := range n.list {
				fields, err := replication(ctx, n.only(i))
				if err == nil && fields["role"] == want {
					found = append(found, one)
				}
			}
			if len(found) == 0 {
				return nil, fmt.Errorf("no node says that it is %s", want)
			}
			return found, nil
		}
	}
	n.roles = map[string]func(context.Context) ([]node, error){"primary": role("master"), "replica": role("slave")}
	return &pair{n}, nil
}

func replication(ctx context.Context, at endpoint.Endpoint) (map[string]string, error) {
	client, err := at.Valkey(endpoint.WaitReply(300 * time.Millisecond))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return info(ctx, client, "replication")
}

func (p *pair) start(ctx context.Context) error {
	if err := p.nodes.start(ctx); err != nil {
		return err
	}
	client, err := p.only(1).Valkey()
	if err != nil {
		return err
	}
	defer client.Close()
	host, port, err := net.SplitHostPort(p.list[0].address())
	if err != nil {
		return err
	}
	return client.Do(ctx, "REPLICAOF", host, port).Err()
}

func TestAPairOfNodesIsAKindLikeAnyOther(t *testing.T) {
	kinds = append(kinds, Kind{Store: "valkey", Kind: "pair", Provider: "process", assemble: newPair})
	defer func() { kinds = kinds[:len(kinds)-1] }()
	order := standaloneOrder(t, nil)
	order.Kind = "pair"
	topology := up(t, order)
	if addresses := topology.Endpoint().Addresses; len(addresses) != 2 || addresses[0] == addresses[1] {
		t.Errorf("addresses %v", addresses)
	}
	if primary, replica := resolve(t, topology, "primary").Name(), resolve(t, topology, "replica").Name(); primary != "valkey/0" || replica != "valkey/1" {
		t.Errorf("the primary is %s, the replica %s", primary, replica)
	}
	if second := resolve(t, topology, "1").Name(); second != "valkey/1" {
		t.Errorf("1 is %s", second)
	}
	if all, err := topology.Resolve(t.Context(), ""); len(all) != 2 || err != nil {
		t.Errorf("all are %v, %v", all, err)
	}

	answering := make(chan int, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		topology.Watch(ctx, func(node int, _ time.Duration) { answering <- node })
	}()
	defer func() { cancel(); <-done }()
	start := inject(t, "kill", resolve(t, topology, "replica"), faults.Order{For: time.Second})
	start()
	for {
		select {
		case node := <-answering:
			if node == 1 {
				return
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the replica was not reported")
		}
	}
}
