package kafkaproto

import (
	"net"
	"time"
)

// refusalLog is how often refused connections are logged: not each of a flood.
const refusalLog = 10 * time.Second

// refusals counts connections that found no room.
type refusals struct {
	since  int // the last line of the log
	logged time.Time
}

// add counts a connection in, if there is room.
func (s *Server) add(c net.Conn) bool {
	addr := ""
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		addr = a.IP.String()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	bound := s.opts.MaxConnectionsPerAddress
	switch {
	case s.closed:
		return false
	case len(s.open) >= s.opts.MaxConnections:
		s.refuse("too many connections", addr, s.opts.MaxConnections)
		return false
	case addr != "" && bound > 0 && s.perAddr[addr] >= bound:
		s.refuse("too many connections from one address", addr, bound)
		return false
	}
	s.open[c] = addr
	if addr != "" {
		s.perAddr[addr]++
	}
	s.conns.Add(1)
	return true
}

// refuse logs that there is no room, once in a while; the mutex is held.
func (s *Server) refuse(why, addr string, bound int) {
	s.refused.since++
	now := s.opts.now()
	if now.Sub(s.refused.logged) < refusalLog {
		return
	}
	s.opts.Logger.Warn("connections refused: "+why, "last", addr, "bound", bound, "refused", s.refused.since)
	s.refused.since, s.refused.logged = 0, now
}

func (s *Server) remove(c net.Conn) {
	s.mu.Lock()
	if addr := s.open[c]; addr != "" {
		if s.perAddr[addr]--; s.perAddr[addr] == 0 {
			delete(s.perAddr, addr)
		}
	}
	delete(s.open, c)
	s.mu.Unlock()
	s.conns.Done()
}
