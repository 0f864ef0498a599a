package plane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

var (
	// ErrNobody: a request found nobody who serves its subject. It was delivered to no one, so it had no effect.
	ErrNobody = errors.New("nobody serves it")
	// ErrUnsent: the message never left this process. It had no effect.
	ErrUnsent = errors.New("not sent")
	// ErrClosed: the connection is closed on this side. Alone, it does not tell whether that was before the message left.
	ErrClosed = errors.New("the connection is closed")
)

// Remote is an error that whoever served a request returned.
type Remote struct{ Text string }

func (e *Remote) Error() string { return e.Text }

const (
	errorHeader  = "Fencepost-Error"
	dialTimeout  = 10 * time.Second
	flushTimeout = 10 * time.Second
	// reconnectBuffer holds what is sent while the connection is down.
	reconnectBuffer = 32 << 20
	// What may wait on this side for one subscription before messages are dropped, which Err then reports.
	pendingMessages, pendingBytes = 1 << 20, 512 << 20
)

// Conn is one process's connection to the hub. It is safe for concurrent use. When it breaks it reconnects for ever, until
// Close or the end of the context that it was dialled with; what is published meanwhile waits.
type Conn struct {
	nats   *nats.Conn
	url    string
	token  string
	closed chan struct{} // closed by the library when the connection is closed for good
	stop   func() bool   // ends the watch over the dialling context
	failed atomic.Pointer[error]
}

// Dial connects to the hub at url. name tells the connection apart in errors. The connection lasts until Close or until ctx
// ends. A wrong token and an unreachable hub are errors of one sentence each; Dial does not retry.
func Dial(ctx context.Context, url, token, name string) (*Conn, error) {
	c := &Conn{url: url, token: token, closed: make(chan struct{})}
	closed := c.closed
	nc, err := nats.Connect(url,
		nats.Name(name),
		nats.Token(token),
		nats.Timeout(timeoutOf(ctx, dialTimeout)),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(50*time.Millisecond),
		nats.ReconnectJitter(50*time.Millisecond, 50*time.Millisecond),
		nats.ReconnectBufSize(reconnectBuffer),
		nats.IgnoreDiscoveredServers(), // the address that was given is the one that is routable
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(maxPings),
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.fail(err) }),
	)
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return nil, fmt.Errorf("plane: the hub at %s refuses this token: take the one the coordinator shows, in FENCEPOST_TOKEN", url)
	case err != nil:
		return nil, fmt.Errorf("plane: cannot reach a hub at %s: %w", url, err)
	}
	c.nats = nc
	c.stop = context.AfterFunc(ctx, nc.Close)
	return c, nil
}

// timeoutOf is what is left of ctx, and at most d.
func timeoutOf(ctx context.Context, d time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return max(min(d, time.Until(deadline)), time.Millisecond)
	}
	return d
}

// URL is the address that was dialled.
func (c *Conn) URL() string { return c.url }

// Closed is closed when the connection is closed for good.
func (c *Conn) Closed() <-chan struct{} { return c.closed }

// Connected says whether the hub can be reached at the moment.
func (c *Conn) Connected() bool { return c.nats.IsConnected() }

// Err is the first thing that went wrong in the background: messages dropped because a subscriber could not keep up, for
// one. Nil is the ordinary case; a broken and mended connection is no error.
func (c *Conn) Err() error {
	if err := c.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (c *Conn) fail(err error) {
	err = fmt.Errorf("plane: %w", err)
	c.failed.CompareAndSwap(nil, &err)
}

// Close sends what still waits, if the hub can be reached, and ends the connection. Calls that are being served go on; their
// cancel functions wait for them.
func (c *Conn) Close() {
	c.stop()
	if c.nats.IsConnected() {
		c.nats.FlushTimeout(time.Second)
	}
	c.nats.Close()
	<-c.closed
}

// Message is one that arrived.
type Message struct{ msg *nats.Msg }

// Subject is what it was sent to.
func (m Message) Subject() string { return m.msg.Subject }

// Data is the message as sent. It must not be modified.
func (m Message) Data() []byte { return m.msg.Data }

// Decode reads it into v, from JSON, or as it is if v is a *[]byte.
func (m Message) Decode(v any) error { return decode(m.msg.Subject, m.msg.Data, v) }

func decode(subject string, data []byte, v any) error {
	switch v := v.(type) {
	case nil:
		return nil
	case *[]byte:
		*v = data
		return nil
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("plane: reading a message on %s: %w", subject, err)
	}
	return nil
}

func encode(subject string, v any) ([]byte, error) {
	if raw, ok := v.([]byte); ok {
		return raw, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("plane: writing a message to %s: %w", subject, err)
	}
	return data, nil
}

// Publish sends v to whoever is subscribed to subject, and does not wait: nil says that it is on its way, not that it
// arrived. A []byte is sent as it is, anything else as JSON.
func (c *Conn) Publish(subject string, v any) error {
	data, err := encode(subject, v)
	if err != nil {
		return err
	}
	return c.explain(subject, c.nats.Publish(subject, data))
}

// Request sends v and waits for one answer until ctx ends. reply is a pointer, or nil if the answer holds nothing.
//
// ErrNobody and ErrUnsent mean that nobody got it. A *Remote error is the server's own answer. After any other error it is
// unknown whether the request took effect, or still will: it is never sent twice.
func (c *Conn) Request(ctx context.Context, subject string, v, reply any) error {
	data, err := encode(subject, v)
	if err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("plane: %s: %w: %w", subject, ErrUnsent, ctx.Err())
	case c.nats.IsClosed():
		return fmt.Errorf("plane: %s: %w: %w", subject, ErrUnsent, ErrClosed)
	}
	msg, err := c.nats.RequestWithContext(ctx, subject, data)
	if err != nil {
		return c.explain(subject, err)
	}
	if text := msg.Header.Get(errorHeader); text != "" {
		return &Remote{text}
	}
	return decode(subject, msg.Data, reply)
}

// explain gives a library error our words.
func (c *Conn) explain(subject string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrNoResponders):
		err = ErrNobody
	case errors.Is(err, nats.ErrConnectionClosed):
		err = ErrClosed
	}
	return fmt.Errorf("plane: %s: %w", subject, err)
}

// Subscribe calls f for each message to subject ("*" stands for one word of it), one after another in the order in which
// each sender sent them. When it returns, the hub knows of it. cancel stops it at the hub, lets f have what had been sent by
// then, and returns after the last call: it must not be called from within f.
func (c *Conn) Subscribe(subject string, f func(Message)) (cancel func(), err error) {
	s, err := c.nats.Subscribe(subject, func(m *nats.Msg) { f(Message{m}) })
	if err != nil {
		return nil, c.explain(subject, err)
	}
	ended := make(chan struct{}) // closed after the last call
	s.SetClosedHandler(func(string) { close(ended) })
	if !s.IsValid() { // closed before the handler was there to hear of it
		return nil, c.explain(subject, nats.ErrConnectionClosed)
	}
	cancel = func() {
		// Either fails only if the connection is closed, which ends the subscription too.
		if c.Connected() {
			s.Drain()
		} else {
			s.Unsubscribe()
		}
		<-ended
	}
	if err = s.SetPendingLimits(pendingMessages, pendingBytes); err == nil {
		err = c.nats.FlushTimeout(flushTimeout)
	}
	if err != nil {
		cancel()
		return nil, c.explain(subject, fmt.Errorf("subscribing: %w", err))
	}
	return cancel, nil
}

// Serve answers requests to subject with what f returns; an error travels to the requester as a *Remote. Calls run
// concurrently, each in a goroutine of its own. cancel is like Subscribe's: after it nobody serves the subject, and no request
// was left without a call. It also ends the context of the calls that are running, and waits for them.
func (c *Conn) Serve(subject string, f func(ctx context.Context, m Message) (reply any, err error)) (cancel func(), err error) {
	ctx, end := context.WithCancel(context.Background())
	var calls sync.WaitGroup
	cancelled, err := c.Subscribe(subject, func(m Message) {
		calls.Add(1)
		go func() {
			defer calls.Done()
			reply, err := f(ctx, m)
			c.respond(m, reply, err)
		}()
	})
	if err != nil {
		end()
		return nil, err
	}
	return func() {
		cancelled()
		end()
		calls.Wait()
	}, nil
}

func (c *Conn) respond(m Message, reply any, err error) {
	if m.msg.Reply == "" {
		return
	}
	answer := nats.NewMsg(m.msg.Reply)
	if err == nil {
		answer.Data, err = encode(m.Subject(), reply)
	}
	if err != nil {
		answer.Header.Set(errorHeader, oneLine(err.Error()))
	}
	if err := c.nats.PublishMsg(answer); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		c.fail(fmt.Errorf("answering %s: %w", m.Subject(), err))
	}
}

// oneLine makes a text fit for a header, and never empty.
func oneLine(s string) string {
	line := []rune(s)
	for i, r := range line {
		if r == '\r' || r == '\n' {
			line[i] = ' '
		}
	}
	if len(line) == 0 {
		return "error"
	}
	return string(line)
}
