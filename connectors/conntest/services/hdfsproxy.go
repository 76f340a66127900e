package services

import (
	"bytes"
	"net"
	"sync"
)

// Wrong says what a proxy that knows a server's calls does to one.
type Wrong int

const (
	// RequestLost: the request does not arrive, the connection is reset.
	RequestLost Wrong = iota
	// ReplyLost: it is carried out, then the connection is reset.
	ReplyLost
	// RequestHangs: nothing arrives and nothing comes back.
	RequestHangs
	// ReplyHangs: it is carried out and nothing comes back.
	ReplyHangs
	// RequestCut: a half of it arrives, and the connection ends. For a KafkaProxy alone.
	RequestCut
)

func (w Wrong) String() string {
	return [...]string{"request lost", "reply lost", "request hangs", "reply hangs", "request cut"}[w]
}

// HDFSProxy stands before a NameNode: it can spoil one call, and tells of all.
type HDFSProxy struct {
	*relay
	// of mu:
	method []byte // of the call to spoil
	nth    int    // spoil the n-th from now on, 0: none
	how    Wrong
	fired  bool
	watch  func(method string, answered bool)
}

// changingCalls are the calls of a NameNode that Watch tells of.
var changingCalls = []string{"create", "addBlock", "updateBlockForPipeline", "complete", "rename2", "mkdirs", "delete"}

// NewHDFSProxy listens on a free port for the NameNode at backend.
func NewHDFSProxy(backend string) (*HDFSProxy, error) {
	r, err := newRelay("a NameNode", backend)
	if err != nil {
		return nil, err
	}
	p := &HDFSProxy{relay: r}
	go p.serve()
	return p, nil
}

// Spoil arms the proxy for the n-th call of a method from now on, once.
func (p *HDFSProxy) Spoil(method string, nth int, how Wrong) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.method, p.nth, p.how, p.fired = inHeader(method), nth, how, false
}

// inHeader is a method's name as it stands in a request's header: with its
// length before it.
func inHeader(method string) []byte { return append([]byte{byte(len(method))}, method...) }

// Watch calls f, from any goroutine, before a call that changes something is
// handed on, and again before its answer is.
func (p *HDFSProxy) Watch(f func(method string, answered bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch = f
}

// Fired reports whether the call that was to be spoilt has come.
func (p *HDFSProxy) Fired() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fired
}

// tell calls the watcher.
func (p *HDFSProxy) tell(method string, answered bool) {
	p.mu.Lock()
	f := p.watch
	p.mu.Unlock()
	if f != nil && method != "" {
		f(method, answered)
	}
}

func changing(request []byte) string {
	for _, m := range changingCalls {
		if bytes.Contains(request, inHeader(m)) {
			return m
		}
	}
	return ""
}

// hit reports whether the request is the one.
func (p *HDFSProxy) hit(request []byte) (Wrong, bool) {
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

func (p *HDFSProxy) serve() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.pass(c)
	}
}

// pass copies one connection. A client sends a request in one write and waits
// for the reply, so what is read at once is one request.
func (p *HDFSProxy) pass(client net.Conn) {
	server, err := net.Dial("tcp4", p.backend)
	if err != nil {
		reset(client)
		return
	}
	if !p.track(client, server) {
		return
	}
	var mu sync.Mutex
	mute := false // replies go nowhere
	end := false  // and the connection is reset at the next one
	call := ""    // under way
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			mu.Lock()
			m, e, answered := mute, end, call
			call = ""
			mu.Unlock()
			if err == nil {
				p.tell(answered, true)
			}
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
		method := changing(buf[:n])
		p.tell(method, false)
		mu.Lock()
		call = method
		mu.Unlock()
		how, hit := p.hit(buf[:n])
		if hit {
			mu.Lock()
			mute, end = true, how == ReplyLost
			mu.Unlock()
			switch how {
			case RequestLost:
				reset(client)
				server.Close()
				return
			case RequestHangs:
				continue
			}
		}
		if _, err := server.Write(buf[:n]); err != nil {
			reset(client)
			return
		}
	}
}
