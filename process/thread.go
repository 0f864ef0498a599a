package process

import (
	"runtime"
	"sync"
)

// spawner is where processes are started from.
var spawner thread

// thread runs functions one after another on an operating-system thread of its own, which lives for as long as it has
// users. The parent-death signal needs that: to the kernel the parent is the thread that forked, not its process, and a
// child would be killed whenever Go's runtime ends the thread that happened to start it.
type thread struct {
	mu    sync.Mutex
	users int
	work  chan func()
	ended chan struct{}
}

// join adds a user; the first starts the thread.
func (t *thread) join() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users++; t.users > 1 {
		return
	}
	work, ended := make(chan func()), make(chan struct{})
	t.work, t.ended = work, ended
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for f := range work {
			f()
		}
	}()
}

// leave removes a user; with the last one the thread ends.
func (t *thread) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users--; t.users > 0 {
		return
	}
	close(t.work)
	<-t.ended
}

// do runs f on the thread. Its caller has joined.
func (t *thread) do(f func() error) error {
	result := make(chan error, 1)
	t.work <- func() { result <- f() }
	return <-result
}
