package services

import (
	"fmt"
	"net"
	"sync"
)

// relay is what proxies that know a server's calls have in common: a free port, the
// server behind it, and the connections of both sides.
type relay struct {
	listener net.Listener
	backend  string

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]bool
}

// newRelay listens on a free port; server says, in errors, whose proxy it is.
func newRelay(server, backend string) (*relay, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting a proxy of %s: %w", server, err)
	}
	return &relay{listener: l, backend: backend, conns: map[net.Conn]bool{}}, nil
}

// Addr is where clients connect.
func (r *relay) Addr() string { return r.listener.Addr().String() }

// track notes connections that closeAll has to end; it ends them where Close has come.
func (r *relay) track(both ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range both {
		if r.closed {
			c.Close()
			continue
		}
		r.conns[c] = true
	}
	return !r.closed
}

// forget takes connections back that have ended.
func (r *relay) forget(both ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range both {
		delete(r.conns, c)
	}
}

// closeAll ends all connections.
func (r *relay) closeAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		c.Close()
	}
}

// Close ends the proxy and its connections.
func (r *relay) Close() {
	r.listener.Close()
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.closeAll()
}

// reset closes a connection with RST.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // best effort: a plain close is a failure, too
	}
	c.Close()
}
