package plane

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"time"
)

// StallKind says what was late.
type StallKind string

const (
	// StallProcess: a thread of the process that asked to sleep 5 ms came back late. The process was stopped, or the machine
	// had no core for it, or Go had no processor for the thread.
	StallProcess StallKind = "process"
	// StallWake: bytes were ready in a descriptor, and the goroutine that waited for them ran late. That is how a client
	// learns of an answer, so it is what a client feels beyond StallProcess: Go's own queue of runnable goroutines.
	StallWake StallKind = "wake"
	// StallClock: the real-time clock moved against the monotonic one, by a step or by more than a thousandth.
	StallClock StallKind = "clock"
)

// Stall is one stretch of time in which the process did not get to run, or its real-time clock moved.
type Stall struct {
	Kind   StallKind
	At     int64         // when it began, on the run's clock
	Length time.Duration // how long it was
	Moved  time.Duration // StallClock only: how far real time got ahead of (behind, if negative) the monotonic clock meanwhile
}

func (s Stall) String() string {
	if s.Kind == StallClock {
		return fmt.Sprintf("the real-time clock moved by %v within %v", s.Moved, s.Length.Round(time.Microsecond))
	}
	return fmt.Sprintf("%s late by %v", s.Kind, s.Length.Round(time.Microsecond))
}

const (
	stallSample = 5 * time.Millisecond
	// Over a window of a second, a millisecond is the drift of a thousandth that verdicts allow for anyway.
	clockWindow = time.Second
	clockMoved  = time.Millisecond
	// A reading of the real-time clock that took longer than this between two of the monotonic one says too little.
	clockNarrow = 100 * time.Microsecond
)

// StartStalls watches how promptly this process is run, and emits each gap longer than threshold and each movement of the
// real-time clock. It samples 200 times a second with a thread of its own: Go's timers come up to a millisecond late here by
// themselves, the kernel's 60 µs. It costs well below a hundredth of a core.
//
// Two things are measured, because they have two causes and clients feel their sum: how late a sleeping thread runs
// (StallProcess), and how much later than the byte that wakes it a goroutine runs (StallWake). A client whose answer arrives
// while the process is stopped suffers the first, one in a crowd of runnable goroutines the second.
//
// emit is called by one goroutine at a time, and must not block. stop ends the sampling and waits for it.
func StartStalls(clock *Clock, threshold time.Duration, emit func(Stall)) (stop func(), err error) {
	return startStalls(clock, threshold, emit, func() int64 { return time.Now().UnixNano() })
}

func startStalls(clock *Clock, threshold time.Duration, emit func(Stall), wall func() int64) (stop func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("plane: watching for stalls: %w", err)
	}
	s := &stalls{clock: clock, threshold: threshold, wall: wall, pipe: w, stop: make(chan struct{})}
	s.emit = func(stall Stall) {
		s.mu.Lock()
		defer s.mu.Unlock()
		emit(stall)
	}
	var both sync.WaitGroup
	both.Go(func() {
		defer w.Close() // which ends the other
		s.sample()
	})
	both.Go(func() {
		defer r.Close()
		s.wake(r)
	})
	return sync.OnceFunc(func() {
		close(s.stop)
		both.Wait()
	}), nil
}

type stalls struct {
	clock     *Clock
	threshold time.Duration
	wall      func() int64 // real time, ns
	pipe      *os.File     // each sample's time goes to the goroutine that waits for it
	stop      chan struct{}
	mu        sync.Mutex // one emit at a time
	emit      func(Stall)
}

// sample sleeps and looks how late it is, until stopped.
func (s *stalls) sample() {
	sleep, done := preciseSleep()
	defer done()
	var since reading // what the real-time clock is compared with
	var word [8]byte
	for {
		select {
		case <-s.stop:
			return
		default:
		}
		began := s.clock.Now()
		sleep(stallSample)
		now := s.clock.Now()
		due := began + int64(stallSample)
		if late := time.Duration(now - due); late > s.threshold {
			s.emit(Stall{Kind: StallProcess, At: due, Length: late})
		}
		since = s.compare(since)
		binary.LittleEndian.PutUint64(word[:], uint64(s.clock.Now()))
		if _, err := s.pipe.Write(word[:]); err != nil {
			return
		}
	}
}

// wake reads what sample writes and looks how late it is.
func (s *stalls) wake(r *os.File) {
	var word [8]byte
	var until int64 // when the last one ended: what was sent before is late by the same cause
	for {
		// Eight bytes are written whole and read whole: below the pipe's atomic size.
		if n, err := r.Read(word[:]); err != nil || n != len(word) {
			return
		}
		sent, now := int64(binary.LittleEndian.Uint64(word[:])), s.clock.Now()
		if late := time.Duration(now - sent); late > s.threshold && sent >= until {
			s.emit(Stall{Kind: StallWake, At: sent, Length: late})
			until = now
		}
	}
}

// reading is what the real-time clock showed beside this process's own monotonic clock. The run's clock would not do: where it
// is measured it bends.
type reading struct {
	at    int64 // on the run's clock
	mono  int64
	ahead int64 // real time less mono
}

// compare looks how far the real-time clock has moved since the reading, and gives the one to compare with next: the same
// for a window's length, so that a slow slew adds up to something.
func (s *stalls) compare(since reading) reading {
	now, ok := s.read()
	if !ok {
		return since
	}
	if since == (reading{}) {
		return now
	}
	length, moved := time.Duration(now.mono-since.mono), time.Duration(now.ahead-since.ahead)
	if moved > clockMoved || moved < -clockMoved {
		s.emit(Stall{Kind: StallClock, At: since.at, Length: length, Moved: moved})
		return now
	}
	if length >= clockWindow {
		return now
	}
	return since
}

// read takes the real-time clock between two readings of the monotonic one, close together: being interrupted between them
// would look like a movement.
func (s *stalls) read() (reading, bool) {
	for range 5 {
		before := s.clock.own()
		wall := s.wall()
		after := s.clock.own()
		if after-before < int64(clockNarrow) {
			middle := before + (after-before)/2
			return reading{at: s.clock.Now(), mono: middle, ahead: wall - middle}, true
		}
	}
	return reading{}, false
}
