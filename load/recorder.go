package load

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"fencepost.dev/history"
)

// Bin is the length of an interval. Intervals begin at whole multiples of it on the run's clock, in every worker, so that
// those of several workers merge one to one.
const Bin = 100 * time.Millisecond

// Outcomes counts operations by their history.Outcome.
type Outcomes [history.Failed + 1]int64

// Operations is all of them.
func (o Outcomes) Operations() int64 {
	return o[history.Unknown] + o[history.OK] + o[history.Refused] + o[history.Failed]
}

// Errors are those that failed, and those whose outcome is unknown. A refusal is an answer.
func (o Outcomes) Errors() int64 { return o[history.Unknown] + o[history.Failed] }

func (o *Outcomes) add(other Outcomes) {
	for i, n := range other {
		o[i] += n
	}
}

// Interval is what a worker's clients did in one Bin: the operations that returned in it. It travels in progress messages.
type Interval struct {
	From int64 `json:"from_ns"` // run time; it ends a Bin later
	// Since is when the earliest of its operations was due, for telling what a fault touched.
	Since int64 `json:"since_ns"`
	// Kinds by the operation's name: "acquire".
	Kinds map[string]KindInterval `json:"kinds"`
}

// KindInterval is one kind of operation in an Interval.
type KindInterval struct {
	Outcomes Outcomes `json:"outcomes"`
	// Latency has every operation, whatever its outcome: leaving out those that timed out would flatter.
	Latency Latencies `json:"latency"`
}

// Recorder measures the operations of one worker. Record costs an append under a lock that a client shares with none but
// Take, which does the rest; it should be called every Bin, since until then each operation is kept by itself.
type Recorder struct {
	shards []shard // by client

	mutex sync.Mutex // of what follows; taken before any shard's
	bins  map[binKey]*bin
	spare []sample // becomes the next emptied shard's buffer
}

type shard struct {
	mutex   sync.Mutex
	samples []sample
	_       [32]byte // keeps neighbours' locks off this cache line
}

type sample struct {
	returned int64
	latency  int64
	kind     history.Kind
	outcome  history.Outcome
}

type binKey struct {
	from int64
	kind history.Kind
}

type bin struct {
	outcomes  Outcomes
	since     int64
	latencies []int64
}

// NewRecorder makes the recorder of a worker's clients, numbered from 0.
func NewRecorder(clients int) *Recorder {
	return &Recorder{shards: make([]shard, max(1, clients)), bins: map[binKey]*bin{}}
}

// Record counts an operation that has returned. since is when it was due, or its Call for all but the first of a turn: its
// latency is what lies between that and its Return. It is safe to call concurrently.
func (r *Recorder) Record(client int, op *history.Operation, since int64) {
	s := &r.shards[client%len(r.shards)]
	s.mutex.Lock()
	s.samples = append(s.samples, sample{op.Return, op.Return - since, op.Kind, op.Outcome})
	s.mutex.Unlock()
}

// gather sorts a shard's samples into bins. r.mutex is held.
func (r *Recorder) gather(s *shard) {
	s.mutex.Lock()
	samples := s.samples
	s.samples = r.spare[:0]
	s.mutex.Unlock()
	r.spare = samples
	var key binKey
	var b *bin
	for _, x := range samples {
		if at := (binKey{x.returned - x.returned%int64(Bin), x.kind}); b == nil || at != key {
			key, b = at, r.bins[at]
			if b == nil {
				b = &bin{since: x.returned}
				r.bins[at] = b
			}
		}
		if int(x.outcome) < len(b.outcomes) {
			b.outcomes[x.outcome]++
		}
		b.since = min(b.since, x.returned-x.latency)
		b.latencies = append(b.latencies, x.latency)
	}
}

// Take gives the intervals that ended before an instant of the run's clock and have not been given yet, by time. An
// operation that is recorded late makes another interval with the same From; Log adds them up. It is safe to call
// concurrently.
func (r *Recorder) Take(before int64) []Interval {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for i := range r.shards {
		r.gather(&r.shards[i])
	}
	intervals := map[int64]*Interval{}
	for key, b := range r.bins {
		if key.from+int64(Bin) > before {
			continue
		}
		at, ok := intervals[key.from]
		if !ok {
			at = &Interval{From: key.from, Since: b.since, Kinds: map[string]KindInterval{}}
			intervals[key.from] = at
		}
		at.Since = min(at.Since, b.since)
		at.Kinds[key.kind.String()] = KindInterval{Outcomes: b.outcomes, Latency: pack(b.latencies)}
		delete(r.bins, key)
	}
	list := make([]Interval, 0, len(intervals))
	for _, at := range intervals {
		list = append(list, *at)
	}
	slices.SortFunc(list, func(a, b Interval) int { return cmp.Compare(a.From, b.From) })
	return list
}

// All is every instant: Take(All) empties the recorder.
const All = int64(1<<63 - 1)
