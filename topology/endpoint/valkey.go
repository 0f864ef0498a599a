package endpoint

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// Settings of the reference client. They are stated here, not left to the library, because verdicts lean on them: which
// requests can be lost, for how long one can still arrive, and that nothing is sent twice.
const (
	// DialTimeout bounds one attempt to connect; there is one attempt to a command.
	DialTimeout = 1 * time.Second
	// ReadTimeout bounds the wait for a reply. It is longer than the pauses that scenarios inject into stores where they
	// want definite answers, and shorter than a turn that people would sit through.
	ReadTimeout = 2 * time.Second
	// WriteTimeout bounds handing a command to the kernel.
	WriteTimeout = 2 * time.Second
	// UserTimeout is TCP_USER_TIMEOUT (RFC 5482), where there is one: bytes that the peer has not acknowledged for so long
	// are given up together with the connection. Without it a request outlives its client in TCP's retransmission for
	// minutes; with it, what a client gave up soon can't arrive any more.
	UserTimeout = ReadTimeout
	// PoolSize is more than the clients of any one worker, so that none waits for another's connection. It is a bound:
	// connections are made when they are needed.
	PoolSize = 1024
	// bufferSize of a connection, each way: commands here are short.
	bufferSize = 4 << 10
)

// Option changes one setting of a client.
type Option func(*settings)

type settings struct {
	worker      string
	retries     int
	readTimeout time.Duration
}

// From dials from the address that Sources gives to the worker, if it gives one.
func From(worker string) Option { return func(s *settings) { s.worker = worker } }

// Retries lets the library repeat a command by itself up to n times, as it does 3 times by default. A client with retries
// can't tell whether a command was sent (NotSentError): its errors are all unknown, and a refusal may be of its own making.
// It exists for flawed subjects, to show just that.
func Retries(n int) Option { return func(s *settings) { s.retries = n } }

// WaitReply sets the read timeout instead of ReadTimeout.
func WaitReply(d time.Duration) Option { return func(s *settings) { s.readTimeout = d } }

// constructors is the table of kinds of Valkey topologies: a new kind is a function in a file of its own and a line here.
var constructors = map[string]func(Endpoint, settings) (redis.UniversalClient, error){
	"standalone": standalone,
}

// The library reports each failed dial to stderr by itself. Our callers get the same as an error, and say it where it
// belongs.
func init() { logging.Disable() }

// Valkey makes the reference client for the endpoint. It connects when first used; no error of it, and no error of the
// client, contains the password. The caller closes it.
//
// The client sends each command at most once, honours the context's deadline (a cancelled context ends the wait for a
// connection, not the wait for a reply), and marks with NotSentError what certainly never reached a server.
func (e Endpoint) Valkey(options ...Option) (redis.UniversalClient, error) {
	construct, known := constructors[e.Kind]
	if !known {
		return nil, fmt.Errorf("endpoint: no client for Valkey of kind %q; there are %s", e.Kind, strings.Join(kinds(), ", "))
	}
	if len(e.Addresses) == 0 {
		return nil, errors.New("endpoint: no address of a Valkey server was given")
	}
	s := settings{readTimeout: ReadTimeout}
	for _, option := range options {
		option(&s)
	}
	return construct(e, s)
}

func kinds() []string {
	var names []string
	for name := range constructors {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// standalone is one node: the first address.
func standalone(e Endpoint, s settings) (redis.UniversalClient, error) {
	return e.node(e.Addresses[0], s)
}

// node is the client of one node, the base of every kind.
func (e Endpoint) node(address string, s settings) (*redis.Client, error) {
	dial, err := e.dialer(s)
	if err != nil {
		return nil, err
	}
	retries := s.retries
	if retries == 0 {
		retries = -1 // the library's way of saying none; its 0 means 3
	}
	client := redis.NewClient(&redis.Options{
		Addr:     address,
		Username: e.Username,
		Password: e.Password,
		// RESP2 has no pushes: whatever arrives on a connection is the reply that is waited for.
		Protocol:              2,
		DisableIdentity:       true,
		Dialer:                dial,
		DialTimeout:           DialTimeout,
		DialerRetries:         1,
		ReadTimeout:           s.readTimeout,
		WriteTimeout:          WriteTimeout,
		ContextTimeoutEnabled: true,
		MaxRetries:            retries,
		PoolSize:              PoolSize,
		PoolTimeout:           s.readTimeout,
		ReadBufferSize:        bufferSize,
		WriteBufferSize:       bufferSize,
	})
	if s.retries == 0 {
		client.AddHook(notSent{})
	}
	return client, nil
}
