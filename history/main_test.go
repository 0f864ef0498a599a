package history

import (
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("HISTORY_TEST_VICTIM"); dir != "" {
		recordUntilKilled(dir)
	}
	goleak.VerifyTestMain(m)
}

func TestOperationIsOneCacheLine(t *testing.T) {
	if n := unsafe.Sizeof(Operation{}); n != 64 {
		t.Errorf("an Operation has %d bytes, want 64", n)
	}
	o := Operation{Kind: 1, Outcome: 2, Commit: 3, Flags: 4}
	if got := o.word().Load(); got != 0x04030201 {
		t.Errorf("Kind, Outcome, Commit and Flags read as %#x; segments need them in the last four bytes", got)
	}
}

var w1 = Process{Worker: "w1", Incarnation: 1, ClockError: 2000}

// resultsDir is a results directory with an empty history/ in it.
func resultsDir(t testing.TB) (dir, inside string) {
	dir = t.TempDir()
	inside = filepath.Join(dir, historyDir)
	if err := os.Mkdir(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir, inside
}

// must fails the test on an error.
func must(t interface {
	Helper()
	Fatal(...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
