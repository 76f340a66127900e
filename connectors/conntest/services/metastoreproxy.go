package services

import (
	"bytes"
	"encoding/binary"
	"net"
	"slices"
	"sync"
)

// MetastoreProxy stands before a metastore: it can lose the next calls of a method, or the
// answers to them, and tells of all that change something.
type MetastoreProxy struct {
	*relay
	// of mu:
	method string
	answer bool // the answer is lost, the call is not
	left   int
	lost   int
	watch  func(method string, answered bool)
}

// changingMetastoreCalls are those that Watch tells of.
var changingMetastoreCalls = []string{"create_table", "alter_table_with_environment_context", "add_partitions_req", "alter_partitions_with_environment_context", "alter_partitions"}

// NewMetastoreProxy listens on a free port for the metastore at backend.
func NewMetastoreProxy(backend string) (*MetastoreProxy, error) {
	r, err := newRelay("a metastore", backend)
	if err != nil {
		return nil, err
	}
	p := &MetastoreProxy{relay: r}
	go p.serve()
	return p, nil
}

// URI is where clients connect, as thrift://host:port.
func (p *MetastoreProxy) URI() string { return "thrift://" + p.Addr() }

// Lose makes the next n calls of a method, or their answers, go lost: the connection is
// reset.
func (p *MetastoreProxy) Lose(method string, answer bool, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.method, p.answer, p.left, p.lost = method, answer, n, 0
}

// Lost is how many were lost since.
func (p *MetastoreProxy) Lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// Watch calls f, from any goroutine, before a call that changes something is handed on,
// and again before its answer is.
func (p *MetastoreProxy) Watch(f func(method string, answered bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch = f
}

func (p *MetastoreProxy) tell(method string, answered bool) {
	p.mu.Lock()
	f := p.watch
	p.mu.Unlock()
	if f != nil && slices.Contains(changingMetastoreCalls, method) {
		f(method, answered)
	}
}

func (p *MetastoreProxy) serve() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.pass(c)
	}
}

// pass copies one connection. Calls follow one another: a client waits for the answer.
func (p *MetastoreProxy) pass(client net.Conn) {
	server, err := net.Dial("tcp4", p.backend)
	if err != nil {
		reset(client)
		return
	}
	defer p.forget(client, server)
	if !p.track(client, server) {
		return
	}
	var mu sync.Mutex
	call, cut := "", false
	go func() { // answers
		defer client.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			mu.Lock()
			answered, lose := call, cut
			call = ""
			mu.Unlock()
			p.tell(answered, true)
			if lose { // the metastore has done it
				reset(client)
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	defer server.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		method := calledMethod(buf[:n])
		p.tell(method, false)
		lose, answer := p.due(method)
		if lose && !answer {
			reset(client)
			return
		}
		mu.Lock()
		if method != "" {
			call = method
		}
		cut = cut || lose
		mu.Unlock()
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// calledMethod is the method of the call that begins here, if one does.
func calledMethod(b []byte) string {
	// A call begins with the version, the length of its name and the name.
	const head = 8
	if len(b) < head || !bytes.Equal(b[:3], []byte{0x80, 1, 0}) {
		return ""
	}
	n := int(binary.BigEndian.Uint32(b[4:]))
	if n < 0 || len(b)-head < n {
		return ""
	}
	return string(b[head : head+n])
}

// due reports whether this call is one to be lost, or its answer.
func (p *MetastoreProxy) due(method string) (lose, answer bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == 0 || method == "" || method != p.method {
		return false, false
	}
	p.left--
	p.lost++
	return true, p.answer
}
