package witness

import (
	"context"
	"fmt"
	"sync"

	"fencepost.dev/history"
)

// Registers is the register itself, kept in memory by the coordinator: one version per key, from 0. It implements Register
// and is safe for concurrent use.
//
// Fenced, a key's fence is the highest token that it has seen, under the grant that it came with. An attempt, read or write,
// is refused
//   - with a lower token than the fence;
//   - with the fence's own token under another grant: two holders were given the same token, and one of them is no holder;
//   - without a token: it can't show that it is not stale, and one such write would undo what the fence is for.
//
// Every other attempt is accepted, and its token becomes the fence. A refused attempt changes nothing. Neither kind compares
// a Write's base with the present version: that an accepted write was based on a stale one is for the lost-update check to
// find, not for the register to prevent.
type Registers struct {
	fenced bool
	now    func() int64
	log    func(key string, op history.Operation)
	keys   sync.Map // string → *register
}

type register struct {
	mu       sync.Mutex
	version  int64
	sequence int64
	fence    int64
	holder   history.GrantID // the grant that the fence's token came with
}

// NewRegisters makes an empty resource. now is the run's clock. log is told of every attempt, refused ones too, in the order
// in which it was decided for its key, with a time taken in between: it is called under the key's lock, concurrently for
// different keys. The operation lacks only its Key, as the log knows how names are numbered.
func NewRegisters(fenced bool, now func() int64, log func(key string, op history.Operation)) *Registers {
	return &Registers{fenced: fenced, now: now, log: log}
}

// Attempt decides one attempt. It fails only on an attempt that makes no sense or whose ctx has ended, and then it neither
// decided nor logged anything.
func (r *Registers) Attempt(ctx context.Context, a Attempt) (Decision, error) {
	if a.Kind != history.Read && a.Kind != history.Write {
		return Decision{}, fmt.Errorf("witness: a resource can be read or written, not asked for kind %d", a.Kind)
	}
	if err := ctx.Err(); err != nil {
		return Decision{}, fmt.Errorf("witness: %w", err)
	}
	k, _ := r.keys.LoadOrStore(a.Key, &register{})
	key := k.(*register)
	key.mu.Lock()
	defer key.mu.Unlock()
	d := key.decide(a, r.fenced)
	op := history.Operation{
		Call:    r.now(),
		Worker:  a.Process,
		Client:  a.Client,
		Node:    history.NoNode,
		Kind:    a.Kind,
		Outcome: history.Refused,
		Commit:  history.Completed,
	}
	op.Return = op.Call
	op.SetToken(a.Token)
	op.SetGrant(a.Grant)
	op.SetSequence(d.Sequence)
	if d.Accepted {
		op.Outcome = history.OK
	}
	switch {
	case a.Kind == history.Write:
		op.SetVersion(a.Version)
	case d.Accepted:
		op.SetVersion(d.Version)
	}
	r.log(a.Key, op)
	return d, nil
}

// decide applies one attempt. mu is held.
func (k *register) decide(a Attempt, fenced bool) Decision {
	k.sequence++
	d := Decision{Sequence: k.sequence}
	if fenced {
		if a.Token == 0 || a.Token < k.fence || a.Token == k.fence && a.Grant != k.holder {
			return d
		}
		k.fence, k.holder = a.Token, a.Grant
	}
	if a.Kind == history.Write {
		k.version++
	}
	d.Accepted, d.Version = true, k.version
	return d
}
