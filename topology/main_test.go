package topology

import (
	"context"
	"maps"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"fencepost.dev/faults"
	"fencepost.dev/process"
	"fencepost.dev/topology/endpoint"
)

func TestMain(m *testing.M) {
	if process.Role() == "guard" {
		undo := Undo(Credentials{})
		maps.Copy(undo, faults.Undo())
		os.Exit(process.ServeGuard(undo))
	}
	if dir := os.Getenv(runnerDir); dir != "" {
		runner(dir)
	}
	state, err := os.MkdirTemp("", "topology-state-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_STATE_HOME", state)
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			code = 1
		}
	}
	os.RemoveAll(state)
	os.Exit(code)
}

// standaloneOrder is a server of its own for a test, with its journal.
func standaloneOrder(t *testing.T, options map[string]any) Order {
	t.Helper()
	journal, err := process.OpenJournal(filepath.Join(t.TempDir(), "run.journal"))
	if err != nil {
		t.Fatal(err)
	}
	return Order{
		Store: "valkey", Kind: "standalone", Options: options, Dir: t.TempDir(), Logs: t.TempDir(), Journal: journal,
	}
}

// up brings an order up, and when the test ends takes it down and checks that nothing is left of it.
func up(t *testing.T, order Order) Topology {
	t.Helper()
	topology, err := Up(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		addresses := topology.Endpoint().Addresses
		if err := topology.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
		nothingLeft(t, order)
		for _, address := range addresses {
			_, number, _ := net.SplitHostPort(address)
			if _, err := os.Stat(filepath.Join(process.StateDir(), "ports", number+".lock")); err == nil {
				t.Errorf("left behind: the reservation of port %s", number)
			}
		}
	})
	return topology
}

// nothingLeft checks that no directory and no journal entry, and so no process and no port, is left of an order.
func nothingLeft(t *testing.T, order Order) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(order.Dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if order.Journal != nil {
		if err := order.Journal.Close(); err != nil {
			t.Errorf("left behind: %v", err)
		}
	}
}

// client is one to the topology that waits for a reply no longer than it is told.
func client(t *testing.T, topology Topology, patience time.Duration) redis.UniversalClient {
	t.Helper()
	c, err := topology.Endpoint().Valkey(endpoint.WaitReply(patience))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// resolve gives the only target of a name.
func resolve(t *testing.T, topology Topology, name string) faults.Target {
	t.Helper()
	targets, err := topology.Resolve(t.Context(), name)
	if err != nil || len(targets) != 1 {
		t.Fatalf("%q stands for %v, %v", name, targets, err)
	}
	return targets[0]
}

func set(t *testing.T, c redis.UniversalClient, key string) {
	t.Helper()
	if err := c.Set(t.Context(), key, "kept", 0).Err(); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, c redis.UniversalClient, key string) string {
	t.Helper()
	value, err := c.Get(t.Context(), key).Result()
	if err != nil && err != redis.Nil {
		t.Fatal(err)
	}
	return value
}
