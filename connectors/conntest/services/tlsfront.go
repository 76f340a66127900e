package services

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
)

// TLSFront speaks TLS with clients in place of a server that cannot: it hands on what
// they say.
type TLSFront struct{ l net.Listener }

// StartTLSFront listens on a free loopback port for the server at target.
func StartTLSFront(target string, config *tls.Config) (*TLSFront, error) {
	l, err := tls.Listen("tcp4", "127.0.0.1:0", config)
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
