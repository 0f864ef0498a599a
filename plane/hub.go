// Package plane is how the processes of a run talk: a hub in the coordinator, connections to it, the run's clock, and the
// agents that start and handle workers. It carries bytes and knows no workload.
//
//	coordinator ──────────────┐               ┌────────────── agent (the coordinator's own, or another machine's)
//	  Hub  Fleet  Clock       │   subjects    │                 starts, pauses, kills
//	                          ├──── Conn ─────┤                    │
//	  witness, traps, …       │  (over NATS)  │                 client process: Conn, JoinClock, the workload
//	──────────────────────────┘               └──────────────
//
// Messages are JSON. Nothing is persistent: a message reaches those who are subscribed, once or not at all.
package plane

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Options say how the hub listens.
type Options struct {
	// Addr is host:port; empty is a free port on loopback. "0.0.0.0:4222" lets other machines in, who need the token, which
	// then crosses the network unencrypted.
	Addr string
	// Token admits connections; empty makes a random one.
	Token string
}

// Limits of the hub. They are set so that a worker that is stopped for many seconds finds its connection kept, and what
// was sent to it delivered.
const (
	maxPayload = 8 << 20   // 100 ms of operations of a fast worker, with room
	maxPending = 512 << 20 // what may wait for one stopped connection
	// A stopped process is dropped when its socket has been full for this long; it then reconnects by itself. A sender that
	// fills a stopped process's socket (some megabytes) can be held up as long, others never.
	writeDeadline = 2 * time.Minute
	// Twenty pings a minute apart: nobody is dropped for being stopped. Whether a party lives is for the Fleet to say.
	pingInterval = time.Minute
	maxPings     = 20
	startTimeout = 20 * time.Second
)

// Hub is the place where a run's processes meet: a NATS server within the coordinator's process.
type Hub struct {
	server *server.Server
	conn   *Conn
	url    string
	token  string
	close  sync.Once
}

// Listen starts a hub and connects to it. The hub runs until Close or until ctx ends.
func Listen(ctx context.Context, o Options) (*Hub, error) {
	host, port, err := splitAddr(o.Addr)
	if err != nil {
		return nil, err
	}
	token := o.Token
	if token == "" {
		secret := make([]byte, 16)
		rand.Read(secret)
		token = hex.EncodeToString(secret)
	}
	log := &fatalLog{said: make(chan string, 1)}
	s, err := server.NewServer(&server.Options{
		ServerName:            "fencepost",
		Host:                  host,
		Port:                  port,
		Authorization:         token,
		AuthTimeout:           30, // seconds: an overloaded machine can be slow to say its token
		MaxPayload:            maxPayload,
		MaxPending:            maxPending,
		WriteDeadline:         writeDeadline,
		WriteTimeout:          server.WriteTimeoutPolicyRetry,
		NoFastProducerStall:   true,
		PingInterval:          pingInterval,
		MaxPingsOut:           maxPings,
		DisableShortFirstPing: true,
		NoSigs:                true,
		NoLog:                 true,
		NoSystemAccount:       true,
	})
	if err != nil {
		return nil, fmt.Errorf("plane: starting the hub: %w", err)
	}
	s.SetLoggerV2(log, false, false, false)
	go s.Start() // returns once it accepts
	h := &Hub{server: s, token: token}
	if err := h.ready(ctx, log, net.JoinHostPort(host, strconv.Itoa(port))); err != nil {
		h.Close()
		return nil, err
	}
	reach := host
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		reach = "127.0.0.1"
	}
	h.url = "nats://" + net.JoinHostPort(reach, strconv.Itoa(s.Addr().(*net.TCPAddr).Port))
	if h.conn, err = Dial(ctx, h.url, token, "coordinator"); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// ready waits until the server accepts connections, or has said why it can't.
func (h *Hub) ready(ctx context.Context, log *fatalLog, addr string) error {
	deadline := time.Now().Add(startTimeout)
	for !h.server.ReadyForConnections(20 * time.Millisecond) {
		select {
		case why := <-log.said:
			return fmt.Errorf("plane: the hub cannot listen on %s: %s", addr, why)
		case <-ctx.Done():
			return fmt.Errorf("plane: starting the hub: %w", ctx.Err())
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("plane: the hub did not start on %s within %v", addr, startTimeout)
		}
	}
	return nil
}

// splitAddr checks host:port, and that the port is free: the server's own complaint comes late and says less.
func splitAddr(addr string) (host string, port int, err error) {
	if addr == "" {
		return "127.0.0.1", server.RANDOM_PORT, nil
	}
	host, text, err := net.SplitHostPort(addr)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("plane: %q is no address to listen on: write HOST:PORT, such as 0.0.0.0:4222", addr)
	}
	probe, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return "", 0, fmt.Errorf("plane: %s is taken by another process: choose another port", addr)
	}
	if err != nil {
		return "", 0, fmt.Errorf("plane: cannot listen on %s: %w", addr, err)
	}
	probe.Close()
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

// URL is where processes of this machine reach the hub. Those of other machines put a routable host in its place.
func (h *Hub) URL() string { return h.url }

// Token is what admits a connection. It never goes into argv, a file or a log.
func (h *Hub) Token() string { return h.token }

// Conn is the coordinator's own connection. Close closes it.
func (h *Hub) Conn() *Conn { return h.conn }

// Close ends all connections and the server, and returns when both are gone.
func (h *Hub) Close() {
	h.close.Do(func() {
		if h.conn != nil {
			h.conn.Close()
		}
		h.server.Shutdown()
		h.server.WaitForShutdown()
	})
}

// fatalLog is a logger that keeps the first reason for which the server can't run, and drops the rest.
type fatalLog struct{ said chan string }

func (l *fatalLog) Fatalf(format string, v ...any) {
	select {
	case l.said <- fmt.Sprintf(format, v...):
	default:
	}
}
func (*fatalLog) Noticef(string, ...any) {}
func (*fatalLog) Warnf(string, ...any)   {}
func (*fatalLog) Errorf(string, ...any)  {}
func (*fatalLog) Debugf(string, ...any)  {}
func (*fatalLog) Tracef(string, ...any)  {}
