package models

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fencepost.dev/history"
)

// What a load test of one key looks like to the engines: 8 clients that contend for a lock, most refused; now and then an
// answer that is very late, and a hold that expires.
func lockHistory(n int, keys int) []history.Operation {
	type lock struct {
		holder  history.GrantID
		client  int
		expires int64
	}
	const clients = 8
	locks := make([]lock, keys)
	grants := make([][clients]history.GrantID, keys)
	sequence := uint32(0)
	perKey := make([][]history.Operation, keys)
	for k := range keys {
		l := &locks[k]
		s := simulation{clients: clients, step: 50_000, late: 1, seed: uint64(k)}
		perKey[k] = s.run(n/keys, func(at int64, client int, r *rand.Rand) history.Operation {
			if l.holder != 0 && at >= l.expires {
				l.holder = 0
			}
			op := history.Operation{Key: uint32(k), Outcome: history.Refused}
			mine := &grants[k][client]
			if *mine != 0 && r.IntN(3) > 0 {
				op.Kind = history.Release
				op.SetGrant(*mine)
				if l.holder == *mine {
					op.Outcome, l.holder = history.OK, 0
				}
				*mine = 0
				return op
			}
			sequence++
			op.Kind = history.Acquire
			op.SetGrant(history.NewGrantID(0, uint16(client), sequence))
			op.SetTTL(10 * time.Millisecond)
			if l.holder == 0 {
				op.Outcome = history.OK
				*mine, l.holder, l.client, l.expires = op.Grant(), op.Grant(), client, at+10*msec
			}
			return op
		})
	}
	if keys == 1 {
		return perKey[0]
	}
	ops := slices.Concat(perKey...)
	slices.SortFunc(ops, func(a, b history.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return ops
}

func benchInput(t testing.TB) *Input {
	in, err := Prepare(&history.History{Names: history.Names{
		Keys: []string{""}, Errors: []string{""}, Workers: []history.Process{{Worker: "w1", Incarnation: 1}},
	}}, PrepareOptions{Primitive: "lock"})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// decideLock is the stream engine over one lock, with its expiries derived as they come.
func decideLock(in *Input, ops []history.Operation) decision {
	o := lockObject(in)
	s := newStream(context.Background(), o.spec, testBudget)
	to := func(op *history.Operation) { s.feed(op) }
	d := newLockDerivation(newLockExpiry(in))
	for i := range ops {
		d.add(&ops[i], to)
	}
	d.advance(never, to)
	return s.finish()
}

// cpu is the processor time that this process has used. On a busy machine it tells more than the wall clock.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cost is what a piece of work took.
type cost struct {
	cpu, wall time.Duration
	peak      int64 // bytes that the process had from the system at most, with what it had before
	grew      int64 // by how much that is more than before
}

// measured runs f and looks at the memory meanwhile, every two milliseconds.
func measured(f func()) cost {
	debug.FreeOSMemory()
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	held := func() int64 {
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64() - sample[1].Value.Uint64())
	}
	before := held()
	peak := before
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			peak = max(peak, held())
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	})
	c0, w0 := cpu(), time.Now()
	f()
	c := cost{cpu: cpu() - c0, wall: time.Since(w0)}
	close(done)
	watching.Wait()
	c.peak, c.grew = peak, peak-before
	return c
}

func (c cost) report(b *testing.B, n int) {
	b.ReportMetric(float64(n)/c.cpu.Seconds(), "ops/cpu-s")
	b.ReportMetric(float64(n)/c.wall.Seconds(), "ops/s")
	b.ReportMetric(float64(c.peak)/1e6, "peak-MB")
	b.ReportMetric(0, "ns/op")
}

func mustPass(b *testing.B, d decision) {
	if d.verdict != Pass {
		b.Fatal(d)
	}
}

func BenchmarkStreamLock(b *testing.B) {
	const n = 1_000_000
	ops := lockHistory(n, 1)
	in := benchInput(b)
	for b.Loop() {
		measured(func() { mustPass(b, decideLock(in, ops)) }).report(b, n)
	}
	runtime.KeepAlive(ops)
}

func BenchmarkStreamAgainstPorcupine(b *testing.B) {
	const n = 100_000
	in := benchInput(b)
	in.Operations = lockHistory(n, 1)
	spec := lockObject(in).spec
	ops := partitions(in, lockObject(in))[0].ops
	for b.Loop() {
		fast := measured(func() { mustPass(b, decideStream(context.Background(), spec, ops, testBudget)) })
		slow := measured(func() { mustPass(b, decidePorcupine(context.Background(), spec, ops, budget{8 << 30})) })
		b.ReportMetric(slow.cpu.Seconds()/fast.cpu.Seconds(), "times-faster")
		b.ReportMetric(float64(slow.grew)/float64(max(fast.grew, 1<<20)), "times-memory")
		b.ReportMetric(float64(slow.grew)/1e6, "porcupine-MB")
		b.ReportMetric(float64(fast.grew)/1e6, "stream-MB")
		b.ReportMetric(0, "ns/op")
	}
}

// A bucket that many clients share: each as busy as with 8 of them, so that ever more is refused; and, "same load", all
// together as busy as the 8, so that each waits longer.
func BenchmarkStreamBucket(b *testing.B) {
	for _, load := range []string{"", "same-load/"} {
		var with8 float64
		for _, clients := range []int{8, 60, 200} {
			b.Run(load+fmt.Sprint(clients), func(b *testing.B) {
				const n = 1_000_000
				step := int64(20_000)
				if load == "" {
					step = step * 8 / int64(clients)
				}
				ops := bucketHistory(simulation{clients: clients, step: step, seed: 1}, n, 100, 20_000)
				spec := toyBucket(100, 20_000, 0.001)
				for b.Loop() {
					c := measured(func() { mustPass(b, decideStream(context.Background(), spec, ops, testBudget)) })
					c.report(b, n)
					if clients == 8 {
						with8 = c.cpu.Seconds()
					}
					b.ReportMetric(c.cpu.Seconds()/with8, "times-8")
				}
			})
		}
	}
}

// From 1 to 10 million operations on one key.
func BenchmarkStreamGrowth(b *testing.B) {
	in := benchInput(b)
	const n = 1_000_000
	small := lockHistory(n, 1)
	large := lockHistory(10*n, 1)
	for b.Loop() {
		one := measured(func() { mustPass(b, decideLock(in, small)) })
		ten := measured(func() { mustPass(b, decideLock(in, large)) })
		b.ReportMetric(ten.cpu.Seconds()/one.cpu.Seconds()/10, "growth-per-op")
		b.ReportMetric(0, "ns/op")
	}
}

// A register with 16 clients of which one operation in a hundred times out, without a bound.
func BenchmarkStreamRegister(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			value := int64(0)
			ops := simulation{clients: 16, step: 20_000, unknown: 10, bound: never, seed: 1}.run(n, func(_ int64, _ int, r *rand.Rand) history.Operation {
				if r.IntN(2) == 0 {
					return history.Operation{Kind: toyRead, Outcome: history.OK, A: value}
				}
				value = r.Int64N(100)
				return history.Operation{Kind: toyWrite, Outcome: history.OK, A: value}
			})
			decidedAll := 1.0
			for b.Loop() {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				measured(func() {
					switch d := decideStream(ctx, registerSpec(), ops, testBudget); d.verdict {
					case Violation:
						b.Fatal("a right register is accused")
					case Inconclusive:
						decidedAll = 0
						b.Log(strings.TrimSpace(d.reason))
					}
				}).report(b, n)
				cancel()
			}
			b.ReportMetric(decidedAll, "decided")
		})
	}
}

// From the files of a run to its verdict: 1 million operations on 100 keys, and 10 million on 1,000.
//
// Nearly all of it is the engine: reading, decompressing and merging is less than a tenth of the processor time. What made it
// grow faster than the number of operations was memory's latency. When each operation was decided as it was read, every one
// went to another key, and found what the engine keeps of that key gone from the cache: 10 million took 37.9 CPU-seconds, twice
// as much an operation as 1 million. Decided key by key, 65,536 operations at a time, they take 25.4, and as much an
// operation as 1 million does (two cores shared with other work).
func BenchmarkStreamFromParquet(b *testing.B) {
	var first float64
	sizes := []int{1_000_000, 10_000_000}
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ops := lockHistory(n, n/10_000)
			r := record(b, b.TempDir(), ops, 2000)
			ops = nil
			runtime.GC()
			for b.Loop() {
				c := measured(func() {
					report, err := CheckRecord(context.Background(), r, PrepareOptions{Primitive: "lock", Limit: Limit{Time: 5 * time.Minute}})
					if err != nil || report.Verdict != Pass {
						b.Fatal(report, err)
					}
				})
				c.report(b, n)
				b.ReportMetric(c.wall.Seconds(), "s")
				b.ReportMetric(c.cpu.Seconds(), "cpu-s")
				per := c.cpu.Seconds() / float64(n)
				if n == sizes[0] {
					first = per
				} else if first > 0 {
					b.ReportMetric(per/first, "growth-per-op")
				}
			}
		})
	}
}
