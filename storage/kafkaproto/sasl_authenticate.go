package kafkaproto

// SaslAuthenticate (36), versions 0 to 2: one message of a login.
//
//   - A failed login is error 58, a moment later, and ends the connection. It does
//     not say why: who guesses shall not learn which users there are.
//   - 1 adds the lifetime of the login (Security.MaxSession). A client may log in
//     again at any time, as the same user; after that time it must. 2 is flexible.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/authn"
)

const apiSASLAuthenticate int16 = 36

// failureDelay slows guessing down.
const failureDelay = 100 * time.Millisecond

// errLogin says that a login did not follow the protocol.
var errLogin = errors.New("a login out of turn")

func serveSASLAuthenticate(c *call, req *kmsg.SASLAuthenticateRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
	answer, err := c.s.login(c.peer, req.SASLAuthBytes)
	if err != nil {
		resp.ErrorCode, c.last = codeSaslAuthenticationFailed, true
		if errors.Is(err, errLogin) {
			resp.ErrorCode = codeIllegalSaslState
		}
		text := "authentication failed"
		resp.ErrorMessage = &text
		c.delay = failureDelay
		return resp
	}
	if resp.SASLAuthBytes = answer; answer == nil {
		resp.SASLAuthBytes = []byte{}
	}
	if !c.peer.pending && c.peer.exchange == nil {
		resp.SessionLifetimeMillis = c.s.opts.Security.MaxSession.Milliseconds()
	}
	return resp
}

// login takes one message of a login.
func (s *Server) login(p *peer, message []byte) ([]byte, error) {
	if !p.shaken {
		return nil, errLogin
	}
	if p.exchange == nil {
		e, err := s.logins.Begin(p.mechanism)
		if err != nil {
			return nil, err
		}
		p.exchange = e
	}
	answer, err := p.exchange.Step(message)
	if err == nil && !p.exchange.Done() {
		return answer, nil
	}
	user, ok := p.exchange.User()
	claimed := p.exchange.Claimed()
	p.exchange, p.shaken, p.raw = nil, false, false
	principal := "User:" + user
	switch {
	case err != nil || !ok:
		s.opts.Logger.Warn("a login failed", "mechanism", p.mechanism.String(), "user", claimed, "host", p.host)
		return nil, authn.ErrFailed
	case !p.pending && principal != p.principal:
		s.opts.Logger.Warn("a login for another user on the same connection", "user", claimed, "host", p.host)
		return nil, authn.ErrFailed
	}
	p.principal = principal
	if s.opts.Security.MaxSession > 0 {
		p.expires = s.opts.now().Add(s.opts.Security.MaxSession)
	}
	s.admit(p)
	return answer, nil
}

// token answers a bare message after a handshake of version 0.
func (s *Server) token(p *peer, message []byte) (*reply, error) {
	answer, err := s.login(p, message)
	if err != nil {
		// This dialogue has no place for an error.
		return nil, fmt.Errorf("login: %w", err)
	}
	return &reply{build: func() (net.Buffers, error) {
		return net.Buffers{append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...)}, nil
	}}, nil
}
