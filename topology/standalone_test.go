package topology

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fencepost.dev/process"
)

func TestAStandaloneServerIsUpAndThenGone(t *testing.T) {
	order := standaloneOrder(t, nil)
	order.Namespace = "fencepost:test:"
	topology := up(t, order)
	reach := topology.Endpoint()
	if reach.Kind != "standalone" || reach.Namespace != order.Namespace || len(reach.Addresses) != 1 {
		t.Fatalf("endpoint %v", reach)
	}
	host, text, _ := net.SplitHostPort(reach.Addresses[0])
	if number, _ := strconv.Atoi(text); host != "127.0.0.1" || number < 20000 || number > 31999 {
		t.Errorf("it listens on %s", reach.Addresses[0])
	}
	if got := topology.Nodes(); len(got) != 1 || got[0] != "valkey/0" {
		t.Errorf("nodes %v", got)
	}
	if v := topology.Version(); !strings.HasPrefix(v, "valkey ") && !strings.HasPrefix(v, "redis ") {
		t.Errorf("version %q", v)
	}
	for _, name := range []string{"", "0", "primary"} {
		if got := resolve(t, topology, name).Name(); got != "valkey/0" {
			t.Errorf("%q is %s", name, got)
		}
	}
	_, err := topology.Resolve(t.Context(), "replica")
	if err == nil || err.Error() != "there is no valkey/replica; there are primary, valkey/0" {
		t.Errorf("replica: %v", err)
	}
	c := client(t, topology, time.Second)
	set(t, c, "k")
	if log, err := os.ReadFile(filepath.Join(order.Logs, "valkey-0.log")); err != nil || len(log) == 0 {
		t.Errorf("its log: %v", err)
	}
	// The cleanup of up checks that nothing is left.
}

func TestEachServerHasAPortOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for range 3 {
		order := standaloneOrder(t, nil)
		topology, err := Up(t.Context(), order)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			topology.Close(t.Context())
			order.Journal.Close()
		}()
		seen[topology.Endpoint().Addresses[0]] = true
	}
	if len(seen) != 3 {
		t.Errorf("addresses %v", seen)
	}
}

func TestTheConfigurationReachesTheServer(t *testing.T) {
	topology := up(t, standaloneOrder(t, map[string]any{
		"persistence": true,
		"config": map[string]any{
			"maxmemory-policy": "volatile-ttl", "maxmemory": uint64(64 << 20), "lazyfree-lazy-expire": true,
			"client-output-buffer-limit": []any{"normal 0 0 0", "pubsub 1mb 1mb 1"},
		},
	}))
	c := client(t, topology, time.Second)
	for directive, want := range map[string]string{
		"maxmemory-policy": "volatile-ttl", "maxmemory": "67108864", "lazyfree-lazy-expire": "yes",
		"appendonly": "yes", "appendfsync": "always", "save": "", "protected-mode": "no", "bind": "127.0.0.1",
		"repl-diskless-sync-delay": "0",
	} {
		got, err := c.ConfigGet(t.Context(), directive).Result()
		if err != nil || got[directive] != want {
			t.Errorf("%s is %v, not %q (%v)", directive, got, want, err)
		}
	}
}

func TestAWrongOrderIsOneSentence(t *testing.T) {
	for _, c := range []struct {
		change func(*Order)
		want   string
	}{
		{func(o *Order) { o.Kind = "standalon" },
			"there is no topology valkey standalon (process); there are valkey standalone (process), valkey standalone (external)"},
		{func(o *Order) { o.Options = map[string]any{"persistance": true} },
			`topology valkey: there is no option "persistance"; there are persistence, config`},
		{func(o *Order) { o.Options = map[string]any{"persistence": "yes"} },
			"topology valkey: option persistence is true or false, not yes"},
		{func(o *Order) { o.Options = map[string]any{"config": map[string]any{"port": 1}} },
			"topology valkey: config port is set by the topology: ports are found"},
		{func(o *Order) { o.Options = map[string]any{"config": map[string]any{"maxmemory": "1mb\ndir /"}} },
			"topology valkey: config maxmemory: a directive is a name with a word, a number, true, false, or a list of them"},
		{func(o *Order) { o.Options = map[string]any{"config": map[string]any{"maxmemory 1mb\ndir": "/"}} },
			"topology valkey: config maxmemory 1mb\ndir: a directive is a name with a word, a number, true, false, or a list of them"},
	} {
		order := Order{Store: "valkey", Kind: "standalone"}
		c.change(&order)
		if _, err := Targets(order); err == nil || err.Error() != c.want {
			t.Errorf("Targets: %v\nnot %s", err, c.want)
		}
		if _, err := Up(t.Context(), order); err == nil || err.Error() != c.want {
			t.Errorf("Up: %v\nnot %s", err, c.want)
		}
	}
}

func TestAMachineWithoutAServerIsToldWhatToDo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	order := standaloneOrder(t, nil)
	defer nothingLeft(t, order)
	if _, err := Targets(order); err != nil {
		t.Errorf("what there would be can't be told without it: %v", err)
	}
	_, err := Up(t.Context(), order)
	if !errors.Is(err, ErrNoServer) || !strings.Contains(err.Error(), "make setup") {
		t.Errorf("the error is %v", err)
	}
}

func TestAServerThatDoesNotStartSaysWhy(t *testing.T) {
	order := standaloneOrder(t, map[string]any{"config": map[string]any{"no-such-directive": 1}})
	_, err := Up(t.Context(), order)
	if err == nil || !strings.Contains(err.Error(), "ended at once (exit status 1)") || !strings.Contains(err.Error(), "no-such-directive") {
		t.Errorf("the error is %v", err)
	}
	nothingLeft(t, order)
}

func TestAServerThatNeverAnswersIsGivenUp(t *testing.T) {
	bin := t.TempDir()
	script := "#!/bin/sh\necho starting up\nexec /bin/sleep 60\n"
	if err := os.WriteFile(filepath.Join(bin, "valkey-server"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	order := standaloneOrder(t, nil)
	ctx, cancel := timeout(t, 500*time.Millisecond)
	defer cancel()
	_, err := Up(ctx, order)
	if err == nil || !strings.Contains(err.Error(), "did not get ready") || !strings.Contains(err.Error(), "starting up") {
		t.Errorf("the error is %v", err)
	}
	nothingLeft(t, order)
}

func TestAPortInUseOrReservedIsPassedOver(t *testing.T) {
	first, err := reservePort(nil)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := tryPort(nil, first.number); again != nil || err != nil {
		t.Errorf("a reserved port was reserved again: %v %v", again, err)
	}
	if err := first.release(); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", first.address())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if used, err := tryPort(nil, first.number); used != nil || err != nil {
		t.Errorf("a port in use was reserved: %v %v", used, err)
	}
	if left, _ := filepath.Glob(filepath.Join(process.StateDir(), "ports", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestALockFileThatIsRemovedIsNotHeldTwice has several take one lock whose owner removes the file when it lets go.
func TestALockFileThatIsRemovedIsNotHeldTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "20000.lock")
	var holders, held atomic.Int64
	var taking sync.WaitGroup
	for range 8 {
		taking.Go(func() {
			for range 300 {
				lock, err := lockFile(path)
				if err != nil {
					t.Error(err)
					return
				}
				if lock == nil {
					continue
				}
				held.Add(1)
				if n := holders.Add(1); n > 1 {
					t.Errorf("%d hold it", n)
				}
				runtime.Gosched()
				holders.Add(-1)
				if err := errors.Join(os.Remove(path), lock.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	taking.Wait()
	if held.Load() == 0 {
		t.Error("nobody ever held it")
	}
}

func TestAPortThatIsTakenAfterAllIsChangedForAnother(t *testing.T) {
	order := standaloneOrder(t, nil)
	order.Log = testLog(t)
	node, err := newServer(order, 0)
	if err != nil {
		t.Fatal(err)
	}
	var listener net.Listener
	node.reserve = func(journal *process.Journal) (*port, error) {
		reserved, err := reservePort(journal)
		if err == nil && listener == nil { // somebody is quicker
			if listener, err = net.Listen("tcp", reserved.address()); err == nil {
				go answer(listener)
			}
		}
		return reserved, err
	}
	topology := standalone(order, node)
	if err := topology.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if taken := listener.Addr().String(); topology.Endpoint().Addresses[0] == taken {
		t.Errorf("it claims to listen on %s, where we do", taken)
	}
	if err := topology.Close(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, order)
}

// answer says PONG to everybody, as a server that isn't ours would, until the listener is closed.
func answer(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			for text := make([]byte, 4096); ; {
				n, err := conn.Read(text)
				if err != nil {
					return
				}
				for _, command := range strings.Split(string(text[:n]), "*")[1:] { // each is an array
					reply := "+PONG\r\n"
					if strings.Contains(strings.ToUpper(command), "HELLO") {
						reply = "-ERR unknown command\r\n" // as a server before version 6
					}
					if _, err := conn.Write([]byte(reply)); err != nil {
						return
					}
				}
			}
		}()
	}
}

func TestOnlyOurOwnDirectoriesAreRemoved(t *testing.T) {
	parent := t.TempDir()
	ours, err := makeDir(nil, parent, "test")
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(parent, "fencepost-other")
	full := filepath.Join(parent, "fencepost-full")
	link := filepath.Join(parent, "fencepost-link")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(ours.path, "data"), 0o700), os.Mkdir(other, 0o700),
		os.WriteFile(filepath.Join(other, dirMarker), []byte("another word"), 0o600),
		os.MkdirAll(filepath.Join(full, "precious"), 0o700), os.Symlink(ours.path, link),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	word, _ := os.ReadFile(filepath.Join(ours.path, dirMarker))
	for _, entry := range []dirEntry{
		{Path: parent, Word: string(word)},
		{Path: other, Word: string(word)},
		{Path: full, Word: string(word)},
		{Path: link, Word: string(word)},
		{Path: ours.path + "/../" + filepath.Base(ours.path), Word: string(word)},
		{Path: ours.path, Word: "a guess"},
		{Path: ours.path},
	} {
		if err := undoDir(entry); err == nil {
			t.Errorf("%+v was removed", entry)
		}
	}
	for _, path := range []string{ours.path, other, filepath.Join(full, "precious"), link} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	for range 2 { // the second time there is nothing to do
		if err := undoDir(dirEntry{Path: ours.path, Word: string(word)}); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(ours.path); err == nil {
		t.Error("our own was not removed")
	}
	for _, entry := range []portEntry{{filepath.Join(other, dirMarker)}, {filepath.Join(parent, "x.lock")}} {
		if err := undoPort(entry); err == nil {
			t.Errorf("%v was taken for a port's file", entry)
		}
	}
}

func TestConfigValues(t *testing.T) {
	for value, want := range map[any]string{true: "yes", false: "no", "": `""`, "a b": "a b", 3: "3", 2.5: "2.5"} {
		if got, err := configValue(value); got != want || err != nil {
			t.Errorf("%v is %q, not %q (%v)", value, got, want, err)
		}
	}
	if _, err := configValue(fmt.Errorf("x")); err == nil {
		t.Error("an error is no value")
	}
}
