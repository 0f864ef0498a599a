package reports

import (
	"bytes"
	"testing"
)

func terminal(t *testing.T, m Material, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Terminal(&b, m, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestTerminalGolden(t *testing.T) {
	golden(t, "lock-pause.txt", terminal(t, lockPause(false), Options{Dir: "results/lock-pause-20260314-092653"}))
	golden(t, "lock-pause-80.txt", terminal(t, lockPause(false), Options{Width: 80}))
	golden(t, "lock-pause-color.txt", terminal(t, lockPause(false), Options{Color: true}))
	golden(t, "lock-pause-fenced.txt", terminal(t, lockPause(true), Options{}))
}
