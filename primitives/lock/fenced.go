package lock

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Fenced is a lock whose grants carry a fencing token: a number that is greater with every grant of a key. The resource that
// the lock protects must keep the greatest token it has seen, with reads as well as writes, and refuse what comes with a
// lower one. It is safe to use concurrently, for any number of keys.
//
// The tokens of a key are counted in a second key beside it, in the same hash slot, which never expires: a token repeated
// protects nothing. So each key that was ever locked leaves a counter behind. Let no eviction policy touch it (volatile-* and
// noeviction don't), and mind that it goes back to what survives when the server loses data.
//
// The counter of "k" is "{k}:fencing-token", that of "app:{k}" is "app:{k}:fencing-token": give keys a hash tag if all names
// must begin alike.
type Fenced struct{ held }

// counterSuffix ends the name of a key's counter.
const counterSuffix = ":fencing-token"

//go:embed fenced.lua
var fencedSource string

var fencedScript = redis.NewScript(fencedSource)

// NewFenced makes a lock on a client that does not repeat commands by itself.
func NewFenced(client redis.Scripter, list ...Option) *Fenced {
	return &Fenced{held{client: client, now: settings(list).now}}
}

// Acquire tries once to take the lock for ttl, and draws its token in the same step. ErrNotAcquired if somebody holds it.
// After any other error the lock may have been taken, by an owner that nobody knows, and a token with it.
//
// A key that contains "}" without a hash tag is an error, as no second key in its hash slot can be named.
func (l *Fenced) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	ttl, err := whole(ttl)
	if err != nil {
		return Lease{}, fmt.Errorf("lock: acquire %q: %w", key, err)
	}
	counter, err := counterOf(key)
	if err != nil {
		return Lease{}, fmt.Errorf("lock: acquire %q: %w", key, err)
	}
	lease := Lease{Key: key, Owner: newOwner(), Until: l.now().Add(ttl)}
	lease.Token, err = fencedScript.Run(ctx, l.client, []string{key, counter}, lease.Owner, ttl.Milliseconds()).Int64()
	if err != nil {
		return Lease{}, fmt.Errorf("lock: acquire %q: %w", key, err)
	}
	if lease.Token == 0 {
		return Lease{}, ErrNotAcquired
	}
	return lease, nil
}

// counterOf names the counter of a key, in the same hash slot: with the key's own hash tag if it has one, else with the whole
// key as the tag (Valkey and Redis cluster specification, "Hash tags").
func counterOf(key string) (string, error) {
	if strings.HasSuffix(key, counterSuffix) {
		return "", fmt.Errorf("keys that end with %q are counters", counterSuffix)
	}
	if _, after, found := strings.Cut(key, "{"); found && strings.Index(after, "}") > 0 {
		return key + counterSuffix, nil
	}
	if strings.Contains(key, "}") {
		return "", fmt.Errorf("it contains %q without being a hash tag", "}")
	}
	return "{" + key + "}" + counterSuffix, nil
}
