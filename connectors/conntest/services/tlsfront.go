package services

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
)

// TLSFront speaks TLS with clients in place of a server that cannot: it hands on what
// they say.
type TLSFront struct{ l net.Listener }

// StartTLSFront listens on a free loopback port for the server at target, with the
// certificate of a PEM file and its key, for clients whose certificate the authority in
// ca has signed.
func StartTLSFront(target, cert, key, ca string) (*TLSFront, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of a TLS front: %w", err)
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("reading the authority of a TLS front: %w", err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(text)
	l, err := tls.Listen("tcp4", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert})
	if err != nil {
		return nil, fmt.Errorf("starting a TLS front: %w", err)
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go pass(client.(*tls.Conn), target)
		}
	}()
	return &TLSFront{l}, nil
}

// pass connects a client whose handshake succeeds with the server, until either ends.
func pass(client *tls.Conn, target string) {
	defer client.Close()
	if client.Handshake() != nil {
		return
	}
	server, err := dialTCP(target)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.CloseWrite()
	}()
	_, _ = io.Copy(client, server)
}

// Addr is where clients connect.
func (f *TLSFront) Addr() string { return f.l.Addr().String() }

// Close takes no more clients.
func (f *TLSFront) Close() { f.l.Close() }
