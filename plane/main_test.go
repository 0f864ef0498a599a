package plane

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"fencepost.dev/process"
)

// The test binary also plays the other processes of a run, chosen by an environment variable. What they tell the test goes
// to standard output, a line each.
const playVariable = "FENCEPOST_PLANE_TEST"

func TestMain(m *testing.M) {
	if process.Role() == "client" {
		playClient()
		return
	}
	if play := os.Getenv(playVariable); play != "" {
		plays[play]()
		return
	}
	goleak.VerifyTestMain(m)
}

var plays = map[string]func(){
	"receiver": playReceiver,
	"agent":    playAgent,
	"clock":    playClock,
	"stalls":   playStalls,
	"crowd":    playCrowd,
}

func must[T any](v T, err error) T {
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	return v
}

// hub is a hub and a connection of the test's own to it, both closed when the test ends.
func hub(t testing.TB) (*Hub, *Conn) {
	t.Helper()
	h, err := Listen(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h, dial(t, h, t.Name())
}

func dial(t testing.TB, h *Hub, name string) *Conn {
	t.Helper()
	c, err := Dial(context.WithoutCancel(t.Context()), h.URL(), h.Token(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// child is a process that the test started to play a part. It lives until its standard input closes, or it is killed.
type child struct {
	*exec.Cmd
	stdin io.WriteCloser
	lines chan string // closed at the end of its output
}

func play(t *testing.T, part string, through []string, env ...string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	argv := append(append([]string{}, through...), self)
	c := &child{Cmd: exec.Command(argv[0], argv[1:]...), lines: make(chan string, 1000)}
	c.Env = append(append(os.Environ(), env...), playVariable+"="+part)
	c.Stderr = os.Stderr
	if c.stdin, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(c.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		c.stdin.Close()
		c.Process.Kill()
		for range c.lines {
		}
		<-read
		c.Wait()
	})
	return c
}

// line waits for the child's next line.
func (c *child) line(t *testing.T) string {
	t.Helper()
	select {
	case s, ok := <-c.lines:
		if !ok {
			t.Fatal("the child ended its output")
		}
		if strings.HasPrefix(s, "error:") {
			t.Fatal("the child says ", s)
		}
		return s
	case <-time.After(30 * time.Second):
		t.Fatal("the child says nothing")
	}
	return ""
}

func (c *child) decode(t *testing.T, v any) {
	t.Helper()
	s := c.line(t)
	if err := json.Unmarshal([]byte(s), v); err != nil {
		t.Fatalf("%v in %q", err, s)
	}
}

// playDial connects as the environment says.
func playDial() *Conn {
	return must(Dial(context.Background(), os.Getenv("PLANE_URL"), os.Getenv("PLANE_TOKEN"), "child"))
}

func at(h *Hub) []string { return []string{"PLANE_URL=" + h.URL(), "PLANE_TOKEN=" + h.Token()} }

// waitForStdin returns when the test lets go of the child.
func waitForStdin() { io.Copy(io.Discard, os.Stdin) }

// within waits until f holds.
func within(t *testing.T, d time.Duration, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(d); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", d, what)
		}
	}
}
