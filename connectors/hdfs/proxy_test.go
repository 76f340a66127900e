//go:build services

package hdfs_test

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"testing"
)

// wrong says what a proxy does to a call.
type wrong int

const (
	// requestLost: the request does not arrive, the connection is reset.
	requestLost wrong = iota
	// replyLost: it is carried out, then the connection is reset.
	replyLost
	// requestHangs: nothing arrives and nothing comes back.
	requestHangs
	// replyHangs: it is carried out and nothing comes back.
	replyHangs
)

func (w wrong) String() string {
	return [...]string{"request lost", "reply lost", "request hangs", "reply hangs"}[w]
}

// proxy stands before a NameNode and spoils one call.
type proxy struct {
	listener net.Listener
	backend  string

	mu     sync.Mutex
	method []byte // of the call to spoil
	nth    int    // spoil the n-th from now on, 0: none
	how    wrong
	fired  bool
	conns  map[net.Conn]bool
}

func newProxy(t testing.TB, backend string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, backend: backend, conns: map[net.Conn]bool{}}
	go p.serve()
	t.Cleanup(p.close)
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// spoil arms the proxy.
func (p *proxy) spoil(method string, nth int, how wrong) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// The method's name in the request's header, with its length before it.
	p.method, p.nth, p.how, p.fired = append([]byte{byte(len(method))}, method...), nth, how, false
}

func (p *proxy) hasFired() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fired
}

// hit reports whether the request is the one.
func (p *proxy) hit(request []byte) (wrong, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nth == 0 || !bytes.Contains(request, p.method) {
		return 0, false
	}
	p.nth--
	if p.nth > 0 {
		return 0, false
	}
	p.fired = true
	return p.how, true
}

func (p *proxy) serve() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.pass(c)
	}
}

func (p *proxy) track(c net.Conn) {
	p.mu.Lock()
	p.conns[c] = true
	p.mu.Unlock()
}

// pass copies one connection. A client sends a request in one write and waits
// for the reply, so what is read at once is one request.
func (p *proxy) pass(client net.Conn) {
	server, err := net.Dial("tcp4", p.backend)
	if err != nil {
		reset(client)
		return
	}
	p.track(client)
	p.track(server)
	var mu sync.Mutex
	mute := false // replies go nowhere
	end := false  // and the connection is reset at the next one
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			mu.Lock()
			m, e := mute, end
			mu.Unlock()
			if err != nil || e {
				reset(client)
				server.Close()
				return
			}
			if !m {
				if _, err := client.Write(buf[:n]); err != nil {
					server.Close()
					return
				}
			}
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			server.Close()
			return
		}
		how, hit := p.hit(buf[:n])
		if hit {
			mu.Lock()
			mute, end = true, how == replyLost
			mu.Unlock()
			switch how {
			case requestLost:
				reset(client)
				server.Close()
				return
			case requestHangs:
				continue
			}
		}
		if _, err := server.Write(buf[:n]); err != nil {
			reset(client)
			return
		}
	}
}

// reset closes a connection with RST.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // best effort: a plain close is a failure, too
	}
	c.Close()
}

func (p *proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// TestSpoiledCalls loses the request, or the reply, of each kind of call, by a
// reset and by silence, and of each rename of a whole cycle.
func TestSpoiledCalls(t *testing.T) {
	p := newProxy(t, cluster.Addresses[0])
	spoilt := map[string]int{}
	for _, method := range []string{"rename2", "create", "addBlock", "updateBlockForPipeline", "complete", "getFileInfo", "mkdirs", "delete", "getListing", "getBlockLocations", "getServerDefaults"} {
		for _, how := range []wrong{requestLost, replyLost, requestHangs, replyHangs} {
			for nth := 1; ; nth++ {
				c := newCycle(t, "hdfs://"+p.addr()+newDir(), "hdfs.rpc-timeout", "400 ms", "hdfs.retry-timeout", "5 s")
				if method == "delete" {
					// A second attempt removes what the first one left.
					if err := c.once(nil); err != nil {
						t.Fatal(err)
					}
				}
				p.spoil(method, nth, how)
				what := fmt.Sprintf("%s %d: %s", method, nth, how)
				_ = c.once(nil) // whatever it says, nothing may be lost or doubled
				fired := p.hasFired()
				c.finish(what)
				if !fired {
					break
				}
				spoilt[method]++
				// Renames decide what is visible: each of them. Others: a few.
				if method != "rename2" && (nth == 2 || how >= requestHangs) {
					break
				}
			}
		}
	}
	t.Logf("calls spoilt: %v", spoilt)
	for _, method := range []string{"rename2", "create", "addBlock", "complete", "getFileInfo", "mkdirs", "delete"} {
		if spoilt[method] == 0 {
			t.Errorf("no call of %s was spoilt", method)
		}
	}
}
