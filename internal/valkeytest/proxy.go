package valkeytest

import (
	"bytes"
	"net"
	"sync"
	"testing"
)

// Break is where in a command's way a connection breaks. The client's handshake passes, except at Connect and Handshake.
type Break string

const (
	Nowhere    Break = ""
	Connect    Break = "connect"     // accepted, and cut at once
	Handshake  Break = "handshake"   // cut when the first command of the handshake comes
	Before     Break = "before"      // the command comes, and is not forwarded
	MidRequest Break = "mid-request" // half of it is forwarded
	Unanswered Break = "unanswered"  // forwarded whole, answered, and the answer is not passed on
	MidReply   Break = "mid-reply"   // half of the answer is passed on
	Unread     Break = "unread"      // no more than the command's beginning is read: a long one can't be written
)

// End is how a connection ends where it breaks.
type End string

const (
	FIN     End = "fin"     // closed in order
	RST     End = "rst"     // reset, by closing with a linger time of 0
	Silence End = "silence" // it stays open, and nothing comes any more
)

// Proxy forwards connections to a server, and breaks them.
type Proxy struct {
	Address string
	target  string
	listen  net.Listener

	mu    sync.Mutex
	where Break
	how   End
	open  map[net.Conn]struct{}
	done  bool
	wait  sync.WaitGroup
}

// NewProxy runs a proxy to the server until the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Address: l.Addr().String(), target: target, listen: l, open: map[net.Conn]struct{}{}}
	p.wait.Go(p.accept)
	t.Cleanup(p.Close)
	return p
}

// Set says where connections break from now on, and how.
func (p *Proxy) Set(where Break, how End) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.where, p.how = where, how
}

// Drop closes all connections on both sides, in order.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
}

// Close ends the proxy and waits for its goroutines.
func (p *Proxy) Close() {
	_ = p.listen.Close()
	p.mu.Lock()
	p.done = true
	p.mu.Unlock()
	p.Drop()
	p.wait.Wait()
}

func (p *Proxy) now() (Break, End) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.where, p.how
}

// hold keeps a connection for Drop; it reports false, and closes it, when the proxy is done.
func (p *Proxy) hold(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		_ = c.Close()
		return false
	}
	p.open[c] = struct{}{}
	return true
}

func (p *Proxy) free(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

func (p *Proxy) accept() {
	for {
		client, err := p.listen.Accept()
		if err != nil {
			return
		}
		if p.hold(client) {
			p.wait.Go(func() {
				defer p.free(client)
				p.serve(client)
			})
		}
	}
}

// serve passes one command after the other: a client here has one in flight on a connection. A read is taken for a whole
// command or answer, which holds for short ones on loopback.
func (p *Proxy) serve(client net.Conn) {
	if where, how := p.now(); where == Connect {
		p.end(client, how)
		return
	}
	server, err := net.Dial("tcp", p.target)
	if err != nil || !p.hold(server) {
		return
	}
	defer p.free(server)
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		request := bytes.Clone(buffer[:n])
		where, how := p.now()
		shaking := bytes.Contains(request, []byte("hello")) || bytes.Contains(request, []byte("auth"))
		if shaking != (where == Handshake) {
			where = Nowhere
		}
		switch where {
		case Handshake, Before:
			p.end(client, how)
			return
		case Unread:
			if how == Silence {
				p.idle(server) // until Drop: nobody reads what the client writes
			} else {
				p.end(client, how)
			}
			return
		case MidRequest:
			_, _ = server.Write(request[:n/2])
			p.end(client, how)
			return
		}
		if _, err := server.Write(request); err != nil {
			return
		}
		if n, err = server.Read(buffer); err != nil {
			return
		}
		switch where {
		case Unanswered:
			p.end(client, how)
			return
		case MidReply:
			_, _ = client.Write(buffer[:n/2])
			p.end(client, how)
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// end breaks the client's side.
func (p *Proxy) end(client net.Conn, how End) {
	switch how {
	case RST:
		_ = client.(*net.TCPConn).SetLinger(0)
	case Silence:
		p.idle(client)
	}
	_ = client.Close()
}

// idle returns when the other side, or Drop, has closed the connection.
func (p *Proxy) idle(c net.Conn) {
	buffer := make([]byte, 4<<10)
	for {
		if _, err := c.Read(buffer); err != nil {
			return
		}
	}
}
