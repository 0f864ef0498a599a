package models

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"fencepost.dev/history"
)

// porcupineDir is where Porcupine's module is; its test data are not copied here.
func porcupineDir(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/anishathalye/porcupine").Output()
	if err != nil {
		t.Fatalf("go list -m: %v", err)
	}
	return strings.TrimSpace(string(out))
}

var (
	jepsenLine    = regexp.MustCompile(`^INFO\s+jepsen\.util\s+-\s+(\d+)\s+:(\w+)\s+:(\w+)\s+(.*)$`)
	publishedLine = regexp.MustCompile(`checkJepsen\(t, (\d+), (true|false)\)`)
)

// absent is a register's value before the first write.
const absent = int64(-1)

// publishedSpec is a register with compare-and-set that begins absent.
func publishedSpec() Spec[int64] {
	spec := registerSpec()
	spec.Init = func() int64 { return absent }
	return spec
}

// readJepsen reads a register's history as Jepsen logs it: a line for each call and each return, in order; the line's number is
// the instant. An operation whose answer never came may take effect at any time after its call. A read that failed says nothing.
func readJepsen(path string) ([]history.Operation, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var ops []history.Operation
	open := map[string]int{} // by process
	number := func(s string) int64 {
		if s == "nil" {
			return absent
		}
		n, err2 := strconv.ParseInt(s, 10, 64)
		if err2 != nil && err == nil {
			err = err2
		}
		return n
	}
	lines := bufio.NewScanner(f)
	for at := int64(1); lines.Scan(); at++ {
		m := jepsenLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue // what the nemesis did
		}
		process, what, kind, value := m[1], m[2], m[3], strings.Fields(strings.Trim(m[4], "[]"))
		if what == "invoke" {
			op := maybe(history.Operation{Call: at, Return: never})
			switch kind {
			case "read":
				op.Kind = toyRead
			case "write":
				op.Kind, op.A = toyWrite, number(value[0])
			case "cas":
				op.Kind, op.A, op.B = toySwap, number(value[0]), number(value[1])
			default:
				return nil, fmt.Errorf("%s:%d: %q is no operation of a register", path, at, kind)
			}
			open[process] = len(ops)
			ops = append(ops, op)
			continue
		}
		i, known := open[process]
		if !known {
			return nil, fmt.Errorf("%s:%d: process %s has nothing open", path, at, process)
		}
		timedOut := strings.Contains(m[4], "timed-out")
		if what == "info" || timedOut && kind != "read" {
			continue // it stays open
		}
		delete(open, process)
		op := &ops[i]
		if timedOut {
			continue // an unknown read is optional for ever
		}
		op.Return, op.Flags, op.Outcome = at, 0, history.OK
		if what == "fail" {
			op.Outcome = history.Refused
		}
		if kind == "read" {
			op.A = number(value[0])
		}
	}
	if err == nil {
		err = lines.Err()
	}
	return ops, err
}

// The histories of etcd that Porcupine publishes, recorded by Jepsen, are judged as its own tests say.
func TestPublishedHistories(t *testing.T) {
	dir := porcupineDir(t)
	tests, err := os.ReadFile(filepath.Join(dir, "porcupine_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	judged := map[bool]int{}
	took := map[Engine]time.Duration{}
	for _, m := range publishedLine.FindAllStringSubmatch(string(tests), -1) {
		n, _ := strconv.Atoi(m[1])
		want := m[2] == "true"
		ops, err := readJepsen(filepath.Join(dir, "test_data", "jepsen", fmt.Sprintf("etcd_%03d.log", n)))
		if err != nil {
			t.Fatal(err)
		}
		for _, engine := range []Engine{EngineStream, EnginePorcupine} {
			if engine == EnginePorcupine && n%8 != 0 {
				continue // it takes half a minute for all of them
			}
			started := time.Now()
			d := decide(context.Background(), engine, publishedSpec(), ops, testBudget)
			took[engine] += time.Since(started)
			if d.reason != "" || (d.verdict == Pass) != want {
				t.Errorf("etcd_%03d, %d operations: %s says %v, published is %v", n, len(ops), engine, d, want)
			}
		}
		judged[want]++
	}
	if judged[true] < 20 || judged[false] < 20 {
		t.Errorf("only %v histories were judged", judged)
	}
	t.Log(judged, took)
}
