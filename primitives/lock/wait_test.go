package lock

import (
	"context"
	"errors"
	"testing"
	"time"
)

// tries is an Acquirer that answers as told, then grants.
type tries struct {
	answers []error
	made    int
	at      []time.Time
}

func (l *tries) Acquire(context.Context, string, time.Duration) (Lease, error) {
	l.at = append(l.at, time.Now())
	l.made++
	if l.made > len(l.answers) {
		return Lease{Key: "k", Token: int64(l.made)}, nil
	}
	return Lease{}, l.answers[l.made-1]
}

func TestWaitTriesUntilItIsTaken(t *testing.T) {
	const every = 20 * time.Millisecond
	l := &tries{answers: []error{ErrNotAcquired, ErrNotAcquired, ErrNotAcquired}}
	lease, err := Wait(t.Context(), l, "k", time.Second, every)
	if err != nil || lease.Token != 4 {
		t.Fatalf("%+v, %v; want the fourth try's lease", lease, err)
	}
	for i := 1; i < len(l.at); i++ {
		if gap := l.at[i].Sub(l.at[i-1]); gap < every/2 {
			t.Errorf("try %d came %v after the one before, want at least %v", i+1, gap, every/2)
		}
	}
}

func TestWaitEndsWithAnyOtherError(t *testing.T) {
	lost := errors.New("connection reset")
	l := &tries{answers: []error{ErrNotAcquired, lost}}
	if _, err := Wait(t.Context(), l, "k", time.Second, time.Millisecond); !errors.Is(err, lost) || l.made != 2 {
		t.Errorf("error %v after %d tries, want the reset after 2", err, l.made)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := &tries{answers: []error{ErrNotAcquired}}
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err := Wait(ctx, l, "k", time.Second, time.Hour)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrNotAcquired) {
		t.Errorf("error %v, want one that is both Canceled and ErrNotAcquired", err)
	}
	if l.made != 1 {
		t.Errorf("%d tries, want 1", l.made)
	}
	if _, err := Wait(t.Context(), l, "k", time.Second, 0); err == nil || l.made != 1 {
		t.Errorf("no pause between tries: %v", err)
	}
}
