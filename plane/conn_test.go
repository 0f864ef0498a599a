package plane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

type note struct {
	N    int    `json:"n"`
	Text string `json:"text"`
}

func TestMessagesArriveInOrder(t *testing.T) {
	h, c := hub(t)
	got := make(chan note, 1000)
	cancel, err := h.Conn().Subscribe("notes.*", func(m Message) {
		var n note
		if err := m.Decode(&n); err != nil {
			t.Error(err)
		}
		got <- n
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if err := c.Publish("notes.a", note{i, "é"}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1000 {
		if n := <-got; n != (note{i, "é"}) {
			t.Fatalf("got %v at place %d", n, i)
		}
	}
	cancel()
	c.Publish("notes.a", note{})
	c.Request(t.Context(), "flush", nil, nil) // goes the same way, and comes back after the note
	if len(got) != 0 {
		t.Error("a cancelled subscription got a message")
	}
}

func TestBytesArePassedRaw(t *testing.T) {
	h, c := hub(t)
	batch := make([]byte, 7<<20) // a large batch, not JSON
	batch[5] = 0xff
	cancel, err := h.Conn().Serve("batch", func(_ context.Context, m Message) (any, error) {
		var raw []byte
		return raw, errors.Join(m.Decode(&raw), func() error {
			if len(raw) != len(batch) || raw[5] != 0xff {
				return fmt.Errorf("got %d bytes", len(raw))
			}
			return nil
		}())
	})
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	if err := c.Request(t.Context(), "batch", batch, nil); err != nil {
		t.Error(err)
	}
}

func TestRequests(t *testing.T) {
	h, c := hub(t)
	var together atomic.Int32
	all := make(chan struct{})
	cancel, err := h.Conn().Serve("twice", func(ctx context.Context, m Message) (any, error) {
		var n int
		if err := m.Decode(&n); err != nil {
			return nil, err
		}
		if n < 0 {
			return nil, errors.New("less than\nnothing")
		}
		if together.Add(1) == 8 {
			close(all)
		}
		select { // each call waits for the others: they must run concurrently
		case <-all:
		case <-ctx.Done():
		}
		return 2 * n, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			var twice int
			if err := c.Request(t.Context(), "twice", i, &twice); err != nil || twice != 2*i {
				t.Errorf("%d doubled is %d, %v", i, twice, err)
			}
		})
	}
	group.Wait()

	var remote *Remote
	if err := c.Request(t.Context(), "twice", -1, nil); !errors.As(err, &remote) || remote.Text != "less than nothing" {
		t.Errorf("an error came back as %v", err)
	}
	if err := c.Request(t.Context(), "twice", "x", nil); !errors.As(err, &remote) {
		t.Errorf("a message that can't be read came back as %v", err)
	}
	cancel()
	if err := c.Request(t.Context(), "twice", 1, nil); !errors.Is(err, ErrNobody) {
		t.Errorf("a request to nobody: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := c.Request(ended, "twice", 1, nil); !errors.Is(err, ErrUnsent) {
		t.Errorf("a request whose context has ended: %v", err)
	}
	c.Close()
	if err := c.Request(t.Context(), "twice", 1, nil); !errors.Is(err, ErrUnsent) || !errors.Is(err, ErrClosed) {
		t.Errorf("a request on a closed connection: %v", err)
	}
}

// A lost answer is neither ErrNobody nor ErrUnsent: it must be unknown to the caller.
func TestLostAnswer(t *testing.T) {
	h, c := hub(t)
	reached := make(chan struct{})
	cancel, err := h.Conn().Serve("slow", func(ctx context.Context, _ Message) (any, error) {
		close(reached)
		<-ctx.Done()
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	ctx, end := context.WithCancel(t.Context())
	go func() { <-reached; end() }()
	err = c.Request(ctx, "slow", nil, nil)
	var remote *Remote
	if err == nil || errors.Is(err, ErrNobody) || errors.Is(err, ErrUnsent) || errors.As(err, &remote) {
		t.Errorf("a lost answer is told as %v", err)
	}
}

func TestErrorsAreOneSentence(t *testing.T) {
	h, _ := hub(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	listen := func(addr string) error {
		h, err := Listen(t.Context(), Options{Addr: addr})
		if err == nil {
			h.Close()
		}
		return err
	}
	dial := func(url, token string) error {
		c, err := Dial(t.Context(), url, token, "x")
		if err == nil {
			c.Close()
		}
		return err
	}
	for _, c := range []struct {
		name string
		err  error
		says string
	}{
		{"port taken", listen(taken.Addr().String()), "is taken by another process"},
		{"no port", listen("localhost"), "write HOST:PORT"},
		{"not ours", listen("192.0.2.1:4222"), "cannot listen on 192.0.2.1:4222"},
		{"wrong token", dial(h.URL(), "guess"), "refuses this token"},
		{"no token", dial(h.URL(), ""), "refuses this token"},
		{"nobody there", dial("nats://"+free.Addr().String(), "x"), "cannot reach a hub at"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) || strings.Contains(c.err.Error(), "\n") {
			t.Errorf("%s: %v", c.name, c.err)
		}
	}
}

func TestListenElsewhere(t *testing.T) {
	h, err := Listen(t.Context(), Options{Addr: "0.0.0.0:0", Token: "known"})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if !strings.HasPrefix(h.URL(), "nats://127.0.0.1:") || h.Token() != "known" {
		t.Errorf("it is reached at %s with %q", h.URL(), h.Token())
	}
}

func TestDialledContextEndsTheConnection(t *testing.T) {
	h, _ := hub(t)
	ctx, end := context.WithCancel(t.Context())
	c, err := Dial(ctx, h.URL(), h.Token(), "x")
	if err != nil {
		t.Fatal(err)
	}
	end()
	<-c.Closed()
	c.Close()
}

// What is published while the hub is away is delivered when it is back.
func TestReconnect(t *testing.T) {
	first, err := Listen(t.Context(), Options{Token: "same"})
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, first, "x")
	addr := strings.TrimPrefix(first.URL(), "nats://")
	first.Close()
	within(t, 10*time.Second, "the connection is seen to be down", func() bool { return !c.Connected() })
	second, err := Listen(t.Context(), Options{Addr: addr, Token: "same"})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	got := make(chan struct{}, 1)
	cancel, err := second.Conn().Subscribe("notes", func(Message) { got <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	if err := c.Publish("notes", note{}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-got:
	case <-time.After(20 * time.Second):
		t.Error("it did not find its way back")
	}
}

// playReceiver counts what it is sent, and says so on request; a note of the number 0 ends it.
func playReceiver() {
	c := playDial()
	var mu sync.Mutex
	next, bad := 1, 0
	must(c.Subscribe("flood", func(m Message) {
		mu.Lock()
		defer mu.Unlock()
		var n note
		must(0, m.Decode(&n))
		if n.N != next {
			bad++
		}
		next++
	}))
	must(c.Serve("count", func(context.Context, Message) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		return []int{next - 1, bad}, nil
	}))
	fmt.Println("ready")
	waitForStdin()
	os.Exit(0)
}

// A worker that is really stopped for seconds keeps its connection, gets all that was sent meanwhile, more than any socket
// buffer holds, and holds up nobody but the one who sent so much.
func TestStoppedProcess(t *testing.T) {
	pause := 3 * time.Second
	if testing.Short() {
		pause = 500 * time.Millisecond
	}
	h, c := hub(t)
	other := dial(t, h, "other")
	cancel, err := other.Serve("echo", func(context.Context, Message) (any, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	worker := play(t, "receiver", nil, at(h)...)
	worker.line(t)
	if err := worker.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	const messages = 2000
	text := strings.Repeat("x", 16<<10) // 32 MB in all
	var slowest time.Duration
	flooder := dial(t, h, "flooder")
	for i := range messages {
		if err := flooder.Publish("flood", note{i + 1, text}); err != nil {
			t.Fatal(err)
		}
	}
	for began := time.Now(); time.Since(began) < pause; time.Sleep(20 * time.Millisecond) {
		asked := time.Now()
		if err := c.Request(t.Context(), "echo", nil, nil); err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(asked))
	}
	if slowest > pause/2 {
		t.Errorf("others were held up by %v", slowest)
	}
	if err := worker.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	var count [2]int
	within(t, 30*time.Second, "all that was sent arrives", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := c.Request(ctx, "count", nil, &count); err != nil {
			t.Fatal(err)
		}
		return count[0] >= messages
	})
	if count != [2]int{messages, 0} {
		t.Errorf("%d arrived, %d out of place; %d were sent", count[0], count[1], messages)
	}
	if err := flooder.Err(); err != nil {
		t.Error(err)
	}
	t.Logf("slowest echo beside the stopped process: %v", slowest)
}

func BenchmarkRequest(b *testing.B) {
	h, c := hub(b)
	cancel, err := h.Conn().Serve("echo", func(_ context.Context, m Message) (any, error) {
		var n note
		return n, m.Decode(&n)
	})
	if err != nil {
		b.Fatal(err)
	}
	defer cancel()
	for b.Loop() {
		var n note
		if err := c.Request(context.Background(), "echo", note{1, "one"}, &n); err != nil {
			b.Fatal(err)
		}
	}
}
