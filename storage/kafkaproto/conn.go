package kafkaproto

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/millrace/millrace/storage/vfs"
)

// maxPipeline is how many requests of a connection may wait for their answers.
const maxPipeline = 32

// controlWeight is how many times its size a control request counts against the
// budget: decoding small elements into structures takes up to half of that more
// memory, list in list not counted.
const controlWeight = 64

// maxPooledBuffer is the largest request buffer kept for use again: of a client with
// thousands of partitions at hand, too. The next but one garbage collection takes what
// is not used.
const maxPooledBuffer = 8 << 20

// Before a client has logged in its requests are small ones, and share a budget of
// their own: strangers take nothing away from clients. The smallest, such as those
// of a login, take none of it: they are bounded by the number of connections.
const (
	maxLobbyBytes  = 64 << 10
	lobbyBudget    = 8 << 20
	freeLobbyBytes = 4 << 10
)

// serveConn reads and handles the requests of a connection until its end.
func (s *Server) serveConn(c net.Conn) {
	defer s.remove(c)
	p, err := s.meet(c)
	if err != nil {
		s.opts.Logger.Debug("connection refused", "client", c.RemoteAddr().String(), "error", err)
		c.Close()
		return
	}
	replies := make(chan *reply, maxPipeline)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		s.send(c, replies)
	}()
	err = s.receive(c, p, replies)
	close(replies)
	<-sent
	c.Close()
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), s.ctx.Err() != nil:
	case errors.Is(err, errMalformed), errors.Is(err, errOversized):
		s.opts.Logger.Warn("connection closed for a request that cannot be served", "client", c.RemoteAddr().String(), "error", err)
	default:
		s.opts.Logger.Debug("connection ended", "client", c.RemoteAddr().String(), "error", err)
	}
}

// receive reads requests until one is malformed, the client ends, or draining
// starts.
func (s *Server) receive(c net.Conn, p *peer, replies chan<- *reply) (err error) {
	defer func() {
		// A fault in one handler must not take the log and the other clients away.
		if p := recover(); p != nil {
			s.opts.Logger.Error("handling a request failed", "client", c.RemoteAddr().String(), "panic", p, "stack", string(debug.Stack()))
			err = errMalformed
		}
	}()
	src := bufio.NewReaderSize(c, 4<<10)
	clients, strangers := limits{produce: s.opts.MaxProduceBytes, control: s.opts.MaxControlBytes}, limits{produce: maxLobbyBytes, control: maxLobbyBytes}
	var l limits
	for {
		if !s.unmute(p) || !s.deadline(c, s.patience(p, s.opts.IdleTimeout)) {
			return nil
		}
		if p.raw {
			message, err := readToken(src)
			if err != nil {
				return err
			}
			r, err := s.token(p, message)
			if err != nil {
				return err
			}
			r.release = func() {}
			replies <- r
			continue
		}
		if l = strangers; !p.pending {
			l = clients
		}
		f, err := readFrame(src, l)
		if err != nil {
			return err
		}
		if err := s.mayAsk(p, f.key); err != nil {
			return err
		}
		r, err := s.handle(c, p, src, f)
		if err != nil {
			return err
		}
		last := r.last
		replies <- r
		if last {
			return nil
		}
	}
}

// deadline sets when reading gives up; false says that draining has started.
func (s *Server) deadline(c net.Conn, d time.Duration) bool {
	c.SetReadDeadline(time.Now().Add(d))
	// Shutdown sets a deadline in the past after it has ended ctx or before: in
	// either order one of the two is seen.
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.SetReadDeadline(time.Unix(1, 0))
		return false
	}
	return true
}

// handle reads a request's body and dispatches it. The budget it takes is given
// back when its reply is released.
func (s *Server) handle(c net.Conn, p *peer, src io.Reader, f frame) (*reply, error) {
	weight := int64(f.size)
	if f.key != apiProduce {
		weight *= controlWeight
	}
	budget := s.budget
	if p.pending {
		budget, weight = s.lobby, int64(f.size)
		if f.size <= freeLobbyBytes {
			weight = 0
		}
	}
	taken := budget.take(weight)
	if taken < 0 {
		return nil, net.ErrClosed
	}
	var pooled *[]byte
	var once sync.Once
	settled := func() { once.Do(func() { budget.give(taken) }) }
	release := func() {
		settled()
		if pooled != nil && cap(*pooled) <= maxPooledBuffer {
			if s.opts.PoisonReleased {
				vfs.Poison((*pooled)[:cap(*pooled)])
			}
			s.buffers.Put(pooled)
		}
	}
	done := false
	defer func() {
		if !done {
			// Not into the pool: nobody knows how far a handler that failed has come.
			settled()
		}
	}()
	if !s.deadline(c, s.patience(p, s.opts.RequestTimeout)) {
		return nil, net.ErrClosed
	}
	var buf []byte
	if f.key == apiProduce {
		pooled = s.buffers.Get().(*[]byte)
		buf = *pooled
	}
	b, err := readBody(src, f, buf)
	if err != nil {
		return nil, err
	}
	if pooled != nil {
		*pooled = b
	}
	r, err := s.dispatch(s.ctx, c, p, f, b, settled)
	if err != nil {
		return nil, err
	}
	inner := r.release
	r.release = func() {
		if inner != nil {
			inner()
		}
		release()
	}
	done = true
	return r, nil
}

// patience is how long reading may take: who has not logged in yet has less.
func (s *Server) patience(p *peer, d time.Duration) time.Duration {
	if !p.pending {
		return d
	}
	return min(d, p.deadline.Sub(s.opts.now()))
}

// mayAsk refuses all but the keys of a login to who has to log in.
func (s *Server) mayAsk(p *peer, key int16) error {
	switch {
	case key == apiVersions, key == apiSASLHandshake, key == apiSASLAuthenticate:
		return nil
	case p.pending:
		return fmt.Errorf("%w: API key %d before a login", errMalformed, key)
	case p.expired(s.opts.now()):
		return fmt.Errorf("the login of %s is over", p.principal)
	}
	return nil
}

// send writes responses in the order of their requests. After a failure it
// only waits for and releases what still comes, and makes the reader stop.
func (s *Server) send(c net.Conn, replies <-chan *reply) {
	failed := false
	for r := range replies {
		if r.wait != nil {
			<-r.wait
		}
		if !failed {
			out, err := r.build()
			if err == nil && out != nil {
				err = s.write(c, out)
			}
			if err != nil {
				failed = true
				c.Close()
			}
		}
		r.release()
	}
}

// write sends a response. The timeout is for every piece of about a megabyte, so
// that a slow client that goes on taking bytes is served.
func (s *Server) write(c net.Conn, out net.Buffers) error {
	const piece = 1 << 20
	for len(out) > 0 {
		n, bytes := 0, 0
		for n < len(out) && bytes < piece {
			bytes += len(out[n])
			n++
		}
		part := out[:n:n]
		out = out[n:]
		if err := c.SetWriteDeadline(time.Now().Add(s.opts.RequestTimeout)); err != nil {
			return err
		}
		if _, err := part.WriteTo(c); err != nil {
			return err
		}
	}
	return nil
}
