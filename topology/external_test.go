package topology

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fencepost.dev/faults"
	"fencepost.dev/scenarios"
	"fencepost.dev/topology/endpoint"
)

// externalOrder is for a server that is already there.
func externalOrder(at endpoint.Endpoint) Order {
	return Order{Store: "valkey", Kind: "standalone", Provider: "external", External: &at, Namespace: "fencepost:x*[1]:"}
}

// foreign starts a server that stands for somebody else's.
func foreign(t *testing.T, config map[string]any) (Topology, string) {
	t.Helper()
	topology := up(t, standaloneOrder(t, map[string]any{"config": config}))
	return topology, topology.Endpoint().Addresses[0]
}

func TestAnExternalServerIsUsedAndLeftAsItWas(t *testing.T) {
	theirs, address := foreign(t, nil)
	c := client(t, theirs, 5*time.Second)
	set(t, c, "theirs")
	set(t, c, "fencepost:x12:theirs") // would match the namespace, were it a pattern
	order := externalOrder(endpoint.Endpoint{Addresses: []string{address}})
	topology, err := Up(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	reach := topology.Endpoint()
	if reach.Kind != "standalone" || reach.Namespace != order.Namespace || reach.Addresses[0] != address {
		t.Errorf("endpoint %v", reach)
	}
	if topology.Version() != theirs.Version() {
		t.Errorf("version %q", topology.Version())
	}
	for i := range 2500 { // more than one SCAN's worth
		if err := c.Set(t.Context(), order.Namespace+strings.Repeat("k", i%7)+time.Duration(i).String(), "", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := topology.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := c.DBSize(t.Context()).Val(); n != 2 || get(t, c, "theirs") != "kept" || get(t, c, "fencepost:x12:theirs") != "kept" {
		t.Errorf("%d keys are left", n)
	}
}

func TestAnExternalServerThatStopsIsWatchedToo(t *testing.T) {
	theirs, address := foreign(t, nil)
	topology, err := Up(t.Context(), externalOrder(endpoint.Endpoint{Addresses: []string{address}}))
	if err != nil {
		t.Fatal(err)
	}
	defer topology.Close(t.Context())
	reports := watched(t, topology)
	resume := inject(t, "pause", resolve(t, theirs, "0"), faults.Order{})
	time.Sleep(800 * time.Millisecond)
	drain(reports)
	before := time.Now()
	resume()
	report(t, reports, before, "a pause by its owner")
}

func TestFaultsOnAnExternalServerAreRefused(t *testing.T) {
	for _, allow := range []bool{false, true} {
		order := externalOrder(endpoint.Endpoint{Addresses: []string{"127.0.0.1:1"}})
		order.Allow = allow
		directory, err := Targets(order)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range []string{"pause", "kill", "restart"} {
			err := faults.Validate(t.Context(), []scenarios.Fault{{Do: fault, On: "primary"}}, directory)
			if err == nil || !strings.Contains(err.Error(), "valkey/0 is an external store: it cannot be") {
				t.Errorf("%s, allowed %v: %v", fault, allow, err)
			}
		}
	}
	// A fault that a client can cause is a matter of permission.
	flush := faults.Fault{Name: "flush", Needs: "be flushed", Supports: func(faults.Target) bool { return true }}
	node := &remote{order: Order{Store: "valkey"}}
	if err := node.Refuse(flush); err == nil || err.Error() != `valkey/0 is an external store: the fault "flush" on it needs --allow-faults` {
		t.Errorf("not allowed: %v", err)
	}
	node.order.Allow = true
	if err := node.Refuse(flush); err != nil {
		t.Errorf("allowed: %v", err)
	}
}

func TestAWrongExternalOrderIsOneSentence(t *testing.T) {
	for _, c := range []struct {
		change func(*Order)
		want   string
	}{
		{func(o *Order) { o.External = nil }, "an external store needs its address: --valkey HOST:PORT"},
		{func(o *Order) { o.External.Addresses = []string{"a:1", "b:2"} },
			"an external standalone store is one server, and 2 addresses are given: a:1, b:2"},
		{func(o *Order) { o.External.Addresses = []string{"localhost"} }, `"localhost" is no HOST:PORT`},
		{func(o *Order) { o.Options = map[string]any{"persistence": true} },
			"an external store is configured by whoever runs it: options of its topology have no effect"},
		{func(o *Order) { o.Namespace = "" }, `the namespace "" of an external store does not begin with "fencepost"`},
	} {
		order := externalOrder(endpoint.Endpoint{Addresses: []string{"127.0.0.1:1"}})
		c.change(&order)
		if _, err := Up(t.Context(), order); err == nil || err.Error() != c.want {
			t.Errorf("%v\nnot %s", err, c.want)
		}
	}
}

func TestAnExternalServerThatCanNotBeUsedIsOneSentence(t *testing.T) {
	_, open := foreign(t, nil)
	theirs, closed := foreign(t, nil)
	admin := client(t, theirs, 5*time.Second)
	for _, user := range []string{"app on >secret ~* &* +@all", "mute on >secret ~* +ping", "default off"} {
		command := []any{"ACL", "SETUSER"}
		for _, word := range strings.Fields(user) {
			command = append(command, word)
		}
		if err := admin.Do(t.Context(), command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, c := range []struct {
		name string
		at   endpoint.Endpoint
		want string
	}{
		{"nobody there", endpoint.Endpoint{Addresses: []string{"127.0.0.1:1"}},
			"cannot reach 127.0.0.1:1: connection refused; is the server running?"},
		{"no login", endpoint.Endpoint{Addresses: []string{closed}}, "refuses us: NOAUTH"},
		{"a wrong login", endpoint.Endpoint{Addresses: []string{closed}, Username: "app", Password: "guess"}, "refuses us: WRONGPASS"},
		{"no TLS there", endpoint.Endpoint{Addresses: []string{open}, TLS: &endpoint.TLS{}}, "does the server speak TLS there?"},
		{"no such host", endpoint.Endpoint{Addresses: []string{"no-such-host.invalid:6379"}}, "cannot reach no-such-host.invalid:6379: "},
		{"silence", endpoint.Endpoint{Addresses: []string{silent.Addr().String()}}, "it does not answer"},
		{"no such file", endpoint.Endpoint{Addresses: []string{open}, TLS: &endpoint.TLS{CAFile: "no-such-file.pem"}}, "no-such-file.pem"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Up(t.Context(), externalOrder(c.at))
			if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") ||
				strings.Contains(err.Error(), "guess") {
				t.Errorf("the error is %v", err)
			}
		})
	}
	for user, version := range map[string]string{"app": "", "mute": "unknown (INFO is refused: "} {
		topology, err := Up(t.Context(), externalOrder(endpoint.Endpoint{Addresses: []string{closed}, Username: user, Password: "secret"}))
		if err != nil {
			t.Fatalf("as %s: %v", user, err)
		}
		if !strings.HasPrefix(topology.Version(), version) {
			t.Errorf("as %s its version is %q", user, topology.Version())
		}
	}
}

func TestAnExternalServerOverTLS(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir)
	// "port" stays the plain one; TLS gets a port of its own.
	reserved, err := reservePort(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reserved.release()
	foreign(t, map[string]any{
		"tls-port": reserved.number, "tls-auth-clients": false,
		"tls-cert-file": filepath.Join(dir, "cert.pem"), "tls-key-file": filepath.Join(dir, "key.pem"),
		"tls-ca-cert-file": filepath.Join(dir, "cert.pem"),
	})
	at := endpoint.Endpoint{Addresses: []string{reserved.address()}, TLS: &endpoint.TLS{CAFile: filepath.Join(dir, "cert.pem")}}
	topology, err := Up(t.Context(), externalOrder(at))
	if err != nil {
		t.Fatal(err)
	}
	set(t, client(t, topology, 5*time.Second), "fencepost:k")
	if err := topology.Close(t.Context()); err != nil {
		t.Error(err)
	}
	at.TLS = &endpoint.TLS{}
	if _, err := Up(t.Context(), externalOrder(at)); err == nil || !strings.Contains(err.Error(), "is the authority that signed its certificate given") {
		t.Errorf("a certificate that nobody vouches for: %v", err)
	}
	at.TLS = nil
	if _, err := Up(t.Context(), externalOrder(at)); err == nil || !strings.Contains(err.Error(), "--tls") {
		t.Errorf("without TLS: %v", err)
	}
}

// certificate makes a certificate for 127.0.0.1 that vouches for itself.
func certificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "EC PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
