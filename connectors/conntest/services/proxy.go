package services

import (
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// FaultKind is what a Proxy does to a connection.
type FaultKind uint8

const (
	// LoseReply: what the client has sent arrives; the answer does not, and the
	// client sees its connection closed. The server sees nothing of it.
	LoseReply FaultKind = iota
	// CutRequest: the connection is closed on both sides in the middle of what the
	// client sends.
	CutRequest
	// Hang: what the client has sent arrives; the answer never does, and nothing
	// is closed.
	Hang
	// Swallow: what the client sends from then on does not arrive, the answer neither,
	// and nothing is closed.
	Swallow
)

// Fault befalls one connection, once it has sent After bytes in all.
type Fault struct {
	Kind  FaultKind
	After int64
}

// Proxy is a TCP proxy before a server: at the same address over all of the
// server's restarts, and with faults on request. The server never sees a
// connection that was reset.
type Proxy struct {
	target string
	l      net.Listener

	mu      sync.Mutex
	faults  []Fault
	struck  int
	changed chan struct{}
	open    map[*proxied]bool
	refuse  bool
	closed  bool
}

// StartProxy listens on a free loopback port.
func StartProxy(target string) (*Proxy, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting a proxy: %w", err)
	}
	p := &Proxy{target: target, l: l, open: map[*proxied]bool{}, changed: make(chan struct{})}
	go p.serve()
	return p, nil
}

// Addr is where clients connect.
func (p *Proxy) Addr() string { return p.l.Addr().String() }

// Break gives faults to the next connections that send enough, one each.
func (p *Proxy) Break(faults ...Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, faults...)
}

// Mend takes back the faults that have befallen nobody, and closes the connections
// that some have befallen.
func (p *Proxy) Mend() {
	p.mu.Lock()
	p.faults = nil
	p.mu.Unlock()
	p.CloseAll()
}

// Refuse closes all connections and takes no more until it is called with false.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	p.refuse = on
	p.mu.Unlock()
	if on {
		p.CloseAll()
	}
}

// Struck is how many faults have befallen connections, and a channel that is
// closed at the next one.
func (p *Proxy) Struck() (int, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.struck, p.changed
}

// CloseAll closes every connection.
func (p *Proxy) CloseAll() {
	p.mu.Lock()
	var open []*proxied
	for c := range p.open {
		open = append(open, c)
	}
	p.mu.Unlock()
	for _, c := range open {
		c.close()
	}
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.l.Close()
	p.CloseAll()
	return err
}

func (p *Proxy) serve() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		refuse := p.refuse || p.closed
		p.mu.Unlock()
		var server *net.TCPConn
		if !refuse {
			server, err = dialTCP(p.target)
		}
		if refuse || err != nil {
			client.Close()
			continue
		}
		c := &proxied{p: p, client: client, server: server}
		p.mu.Lock()
		p.open[c] = true
		p.mu.Unlock()
		go c.up()
		go c.down()
	}
}

func dialTCP(address string) (*net.TCPConn, error) {
	to, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		return nil, err
	}
	return net.DialTCP("tcp4", nil, to)
}

// proxied is one connection.
type proxied struct {
	p      *Proxy
	client net.Conn
	server *net.TCPConn

	mu    sync.Mutex
	sent  int64
	fault *Fault // that has befallen it
}

// close ends the connection for both. The server is told so by the end of what is
// sent to it and may still say something: closing with its bytes unread would be a
// reset, which is not the server's to see. down hears it out.
func (c *proxied) close() {
	c.client.Close()
	_ = c.server.CloseWrite()
	c.p.mu.Lock()
	delete(c.p.open, c)
	c.p.mu.Unlock()
}

// strike takes a fault for the connection when one is due.
func (c *proxied) strike(sent int64) *Fault {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	for i, f := range c.p.faults {
		if sent >= f.After {
			c.p.faults = append(c.p.faults[:i], c.p.faults[i+1:]...)
			c.p.struck++
			close(c.p.changed)
			c.p.changed = make(chan struct{})
			return &f
		}
	}
	return nil
}

// quiet is how long a client has sent nothing when all of a request has come: a
// server may say something before it has.
const quiet = 150 * time.Millisecond

// closeWhenQuiet closes the client's side once it waits for the answer.
func (c *proxied) closeWhenQuiet() {
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	for before := int64(-1); ; {
		<-tick.C
		c.mu.Lock()
		sent := c.sent
		c.mu.Unlock()
		if sent == before {
			c.client.Close()
			return
		}
		before = sent
	}
}

func (c *proxied) up() {
	buf := make([]byte, 32<<10)
	for {
		n, err := c.client.Read(buf)
		if n > 0 {
			c.mu.Lock()
			c.sent += int64(n)
			if c.fault == nil {
				c.fault = c.strike(c.sent)
			}
			f := c.fault
			c.mu.Unlock()
			if f != nil && f.Kind == CutRequest {
				c.close()
				return
			}
			if f != nil && f.Kind == Swallow {
				n = 0
			}
			if _, werr := c.server.Write(buf[:n]); werr != nil {
				c.close()
				return
			}
		}
		if err != nil {
			c.mu.Lock()
			f := c.fault
			c.mu.Unlock()
			// A server whose answer nobody hears goes on.
			if f == nil {
				c.close()
			}
			return
		}
	}
}

func (c *proxied) down() {
	// The last of both directions: up never closes the server's side.
	defer c.server.Close()
	defer c.close()
	buf := make([]byte, 32<<10)
	for {
		n, err := c.server.Read(buf)
		c.mu.Lock()
		f := c.fault
		c.mu.Unlock()
		switch {
		case n > 0 && f != nil && f.Kind == LoseReply:
			go c.closeWhenQuiet()
			_, _ = io.Copy(io.Discard, c.server)
			return
		case n > 0 && f != nil && (f.Kind == Hang || f.Kind == Swallow):
			_, _ = io.Copy(io.Discard, c.server)
			return
		case n > 0:
			if _, werr := c.client.Write(buf[:n]); werr != nil {
				c.close()
				_, _ = io.Copy(io.Discard, c.server)
				return
			}
		}
		if err != nil {
			return
		}
	}
}
