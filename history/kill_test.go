package history

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// recordUntilKilled is the victim of TestSIGKILL: four clients that record as fast as they can, and a holder whose
// operations stay open for long. Each says on standard output what it has begun and ended, after the recorder has said so.
func recordUntilKilled(dir string) {
	r, err := NewRecorder(filepath.Join(dir, historyDir), "w1.1", RecorderOptions{Process: w1, SegmentSize: 500 * int(operationSize)})
	if err != nil {
		panic(err)
	}
	start := time.Now()
	var wg sync.WaitGroup
	for c := range 5 {
		wg.Go(func() {
			for n := 0; ; n++ {
				op := Operation{Kind: Acquire, Client: uint16(c), A: int64(n), Key: r.Key(fmt.Sprint("key", n/10)), Call: time.Since(start).Nanoseconds()}
				s := r.Begin(&op)
				said := fmt.Sprintf("begun %d %d\n", c, n)
				if n%16 == 0 || c == 4 {
					os.Stdout.WriteString(said)
				}
				if c == 4 {
					time.Sleep(20 * time.Millisecond)
				}
				op.Outcome, op.B, op.Return = OK, int64(n)*3, time.Since(start).Nanoseconds()
				r.End(s, &op)
				if n%16 == 0 || c == 4 {
					os.Stdout.WriteString(fmt.Sprintf("ended %d %d\n", c, n))
				}
			}
		})
	}
	wg.Wait()
}

// Whatever moment a process is killed at: every call that was committed is there, those that were answered with their
// answer, and at most one of each client without.
func TestSIGKILL(t *testing.T) {
	for round := range 10 {
		dir, _ := resultsDir(t)
		victim := exec.Command(os.Args[0])
		victim.Env = append(os.Environ(), "HISTORY_TEST_VICTIM="+dir)
		victim.Stderr = os.Stderr
		out, err := victim.StdoutPipe()
		must(t, err)
		must(t, victim.Start())
		timer := time.AfterFunc(time.Duration(50+rand.IntN(400))*time.Millisecond, func() { victim.Process.Kill() })
		begun, ended := map[int]int{}, map[int]int{}
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				if err != io.EOF {
					t.Error(err)
				}
				break
			}
			var c, n int
			if word, rest, _ := strings.Cut(line, " "); word == "begun" {
				fmt.Sscan(rest, &c, &n)
				begun[c] = n
			} else {
				fmt.Sscan(rest, &c, &n)
				ended[c] = n
			}
		}
		timer.Stop()
		victim.Wait()
		if len(begun) == 0 {
			t.Logf("round %d: killed before it recorded anything", round)
		}
		for _, when := range []string{"as it was left", "after Finish"} {
			if when == "after Finish" {
				must(t, Finish(dir))
				must(t, Finish(dir))
				if segments, _ := filepath.Glob(filepath.Join(dir, historyDir, "*[^t]")); len(segments) > 0 {
					t.Errorf("Finish left %v", segments)
				}
			}
			h, err := Load(dir)
			if errors.Is(err, ErrMissing) && len(begun) == 0 {
				break
			}
			must(t, err)
			next, open := map[int]int{}, map[int]int{}
			for _, o := range h.Operations {
				c, n := int(o.Client), int(o.A)
				if next[c] != n {
					t.Fatalf("round %d %s: client %d: number %d comes where %d should", round, when, c, n, next[c])
				}
				next[c]++
				if h.Names.Key(o.Key) != fmt.Sprint("key", n/10) {
					t.Fatalf("round %d: client %d, number %d has key %q", round, c, n, h.Names.Key(o.Key))
				}
				switch {
				case o.Commit == Completed && (o.Outcome != OK || o.B != o.A*3):
					t.Fatalf("round %d: a wrong answer: %+v", round, o)
				case o.Commit == Invoked && (o.Outcome != Unknown || o.Return < o.Call):
					t.Fatalf("round %d: an answer that nobody gave: %+v", round, o)
				case o.Commit == Invoked:
					open[c]++
				}
			}
			for c, n := range begun {
				if next[c] <= n {
					t.Errorf("round %d %s: client %d began number %d, but only %d operations were read", round, when, c, n, next[c])
				}
				if end, ok := ended[c]; ok && next[c]-open[c] <= end {
					t.Errorf("round %d %s: client %d ended number %d, but only %d answers were read", round, when, c, end, next[c]-open[c])
				}
				if open[c] > 1 {
					t.Errorf("round %d %s: client %d has %d operations open", round, when, c, open[c])
				}
			}
		}
	}
}
