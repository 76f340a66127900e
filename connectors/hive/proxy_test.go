//go:build services

package hive

import (
	"bytes"
	"encoding/binary"
	"net"
	"sync"
	"testing"
)

// proxy stands before a metastore and loses, on request, the next calls of a
// method or the answers to them.
type proxy struct {
	l      net.Listener
	target string

	mu     sync.Mutex
	method string
	answer bool // the answer is lost, the call is not
	left   int
	lost   int
	conns  map[net.Conn]bool
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, target: target, conns: map[net.Conn]bool{}}
	var done sync.WaitGroup
	done.Add(1)
	go func() {
		defer done.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			done.Add(1)
			go func() { defer done.Done(); p.connection(c) }()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		for c := range p.conns {
			c.Close()
		}
		p.mu.Unlock()
		done.Wait()
	})
	return p
}

func (p *proxy) uri() string { return "thrift://" + p.l.Addr().String() }

// lose makes the next n calls of a method, or their answers, go lost: the
// connection is reset.
func (p *proxy) lose(method string, answer bool, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.method, p.answer, p.left, p.lost = method, answer, n, 0
}

func (p *proxy) losses() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

func (p *proxy) connection(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		client.Close()
		return
	}
	p.mu.Lock()
	p.conns[client], p.conns[server] = true, true
	p.mu.Unlock()
	cut := make(chan struct{})
	var done sync.WaitGroup
	done.Add(2)
	go func() { // calls
		defer done.Done()
		defer server.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := client.Read(buf)
			if err != nil {
				return
			}
			lose, answer := p.due(buf[:n])
			if lose && !answer {
				reset(client)
				return
			}
			if lose {
				close(cut)
			}
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	go func() { // answers
		defer done.Done()
		defer client.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			select {
			case <-cut: // the metastore has done it
				reset(client)
				return
			default:
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	done.Wait()
	p.mu.Lock()
	delete(p.conns, client)
	delete(p.conns, server)
	p.mu.Unlock()
}

// due reports whether the call that begins here is one to be lost.
func (p *proxy) due(b []byte) (lose, answer bool) {
	// A call begins with the version, the length of its name and the name.
	const head = 8
	if len(b) < head || !bytes.Equal(b[:3], []byte{0x80, 1, 0}) {
		return false, false
	}
	n := int(binary.BigEndian.Uint32(b[4:]))
	if len(b) < head+n {
		return false, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == 0 || string(b[head:head+n]) != p.method {
		return false, false
	}
	p.left--
	p.lost++
	return true, p.answer
}

func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	c.Close()
}
