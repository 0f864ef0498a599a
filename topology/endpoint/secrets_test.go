package endpoint

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"fencepost.dev/internal/valkeytest"
)

const secret = "correct-horse-battery"

// However an endpoint is printed or logged, its password is not there.
func TestAnEndpointKeepsItsPasswordToItself(t *testing.T) {
	e := Endpoint{Kind: "standalone", Addresses: []string{"h:1"}, Username: "u", Password: secret}
	set := Set{"valkey": e}
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	logger.Info("m", "endpoint", e, "set", set, "pointer", &e)
	logger = slog.New(slog.NewTextHandler(&log, nil))
	logger.Info("m", "endpoint", e, "set", set, "pointer", &e)
	texts := []string{
		log.String(), e.String(), fmt.Sprint(e), fmt.Sprintf("%v %+v %#v %s %q %x", e, e, e, e, e, e), fmt.Sprintf("%v %+v %#v", &e, &e, &e),
		fmt.Sprintf("%v %+v %#v", set, set, set), fmt.Sprintf("%+v", struct{ Set Set }{set}), fmt.Errorf("no: %w; %v", errors.New("x"), e).Error(),
	}
	for _, text := range texts {
		if strings.Contains(text, secret) {
			t.Errorf("the password is in %q", text)
		}
		if !strings.Contains(text, "h:1") {
			t.Errorf("the address is not in %q", text)
		}
	}
}

// A server with TLS, client certificates and an ACL user.
func TestTLSAndACL(t *testing.T) {
	dir := t.TempDir()
	pool, pair := certificates(t, dir)
	file := func(name string) string { return filepath.Join(dir, name) }
	// Plain is off; the TLS port is the one that the server picked, so give it as both by turning the plain one into TLS.
	port := valkeytest.Unused(t)
	_, number, _ := net.SplitHostPort(port)
	valkeytest.StartWith(t, redis.Options{
		Addr: port, Password: secret,
		TLSConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, ServerName: "127.0.0.1"},
	}, "--tls-port", number, "--tls-cert-file", file("cert.pem"), "--tls-key-file", file("key.pem"),
		"--tls-ca-cert-file", file("cert.pem"), "--requirepass", secret,
		"--user", "bench", "on", ">"+secret+"-bench", "~fp:*", "+@all")
	good := TLS{CAFile: file("cert.pem"), CertFile: file("cert.pem"), KeyFile: file("key.pem")}
	for name, test := range map[string]struct {
		tls                *TLS
		username, password string
		key                string
		unsent             bool
		want               string // of the error; "": none
	}{
		"the default user":       {&good, "", secret, "k", false, ""},
		"an ACL user":            {&good, "bench", secret + "-bench", "fp:k", false, ""},
		"a key that it may not":  {&good, "bench", secret + "-bench", "k", false, "NOPERM"},
		"a wrong password":       {&good, "bench", secret, "fp:k", true, "WRONGPASS"},
		"no password":            {&good, "", "", "k", false, "NOAUTH"},
		"an unknown authority":   {&TLS{CertFile: good.CertFile, KeyFile: good.KeyFile}, "", secret, "k", true, "certificate"},
		"an authority unchecked": {&TLS{CertFile: good.CertFile, KeyFile: good.KeyFile, Insecure: true}, "", secret, "k", false, ""},
		"another name":           {&TLS{CAFile: good.CAFile, CertFile: good.CertFile, KeyFile: good.KeyFile, ServerName: "x.test"}, "", secret, "k", true, "x.test"},
		"no TLS":                 {nil, "", secret, "k", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t, Endpoint{Addresses: []string{port}, TLS: test.tls, Username: test.username, Password: test.password})
			err := c.Set(context.Background(), test.key, "v", 0).Err()
			if e := (*NotSentError)(nil); errors.As(err, &e) != test.unsent {
				t.Errorf("marked as not sent is %v, want %v: %v", !test.unsent, test.unsent, err)
			}
			if (err == nil) != (test.want == "" && !test.unsent) || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the password is in %q", err)
			}
		})
	}
}

// certificates makes one certificate for 127.0.0.1 that is its own authority.
func certificates(t *testing.T, dir string) (*x509.CertPool, tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fencepost test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	for name, data := range map[string][]byte{"cert.pem": cert, "key.pem": keyPEM} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	pair, err := tls.X509KeyPair(cert, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return pool, pair
}
