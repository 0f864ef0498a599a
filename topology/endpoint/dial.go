package endpoint

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// dialer makes connections the way the endpoint asks for: from the worker's own address, with TLS, and with a bound on how
// long unacknowledged bytes live. Its errors are NotSentErrors: without a connection nothing is sent.
func (e Endpoint) dialer(s settings) (func(ctx context.Context, network, address string) (net.Conn, error), error) {
	d := &net.Dialer{
		Timeout:         DialTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
		Control:         userTimeout(UserTimeout),
	}
	if source := e.Sources[s.worker]; source != "" {
		ip := net.ParseIP(source)
		if ip == nil {
			return nil, fmt.Errorf("endpoint: worker %s is to dial from %q, which is no IP address", s.worker, source)
		}
		d.LocalAddr = &net.TCPAddr{IP: ip}
	}
	if e.TLS == nil {
		return func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialed(d.DialContext(ctx, network, address))
		}, nil
	}
	config, err := e.TLS.config()
	if err != nil {
		return nil, err
	}
	// tls.Dialer takes the server's name from the address if the configuration has none.
	secure := &tls.Dialer{NetDialer: d, Config: config}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return dialed(secure.DialContext(ctx, network, address))
	}, nil
}

func dialed(conn net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, &NotSentError{Stage: "connect", err: err}
	}
	return conn, nil
}

// config loads the files that the settings name.
func (t *TLS) config() (*tls.Config, error) {
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.Insecure, // the user asked for it by name
	}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("endpoint: reading the certificate authority: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("endpoint: %s holds no PEM certificate", t.CAFile)
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return nil, errors.New("endpoint: a client certificate needs both its certificate and its key file")
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("endpoint: loading the client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
