package endpoint

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

func TestConnectionsHaveAUserTimeout(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dial, err := Endpoint{}.dialer(settings{})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var got int
	if err := raw.Control(func(fd uintptr) {
		got, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	}); err != nil {
		t.Fatal(err)
	}
	if err != nil || int64(got) != UserTimeout.Milliseconds() {
		t.Errorf("TCP_USER_TIMEOUT is %d ms, want %d: %v", got, UserTimeout.Milliseconds(), err)
	}
}
