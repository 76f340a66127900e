package kafkaproto

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/millrace/millrace/storage/acl"
	"github.com/millrace/millrace/storage/authn"
)

// anonymous is who a client is that nobody has authenticated.
const anonymous = "User:ANONYMOUS"

// peer is the client of a connection. It belongs to the connection's reader.
type peer struct {
	host      string
	principal string
	// trusted: everything is allowed. owner: by the Unix socket, and without quotas.
	trusted, owner bool

	// pending: the client has yet to log in; deadline is until when.
	pending  bool
	deadline time.Time

	mechanism authn.Mechanism // of the handshake, or of the login that holds
	shaken    bool            // a handshake named the mechanism of the login to come
	exchange  *authn.Exchange
	raw       bool // after a handshake of version 0 frames are bare tokens
	// expires is when the client has to log in again; zero: never.
	expires time.Time

	// mutedUntil is when the next request is read: the quotas say so.
	mutedUntil time.Time
}

// meet finds out what a connection says of its client: its address, its
// certificate, and on a Unix socket its owner.
func (s *Server) meet(c net.Conn) (*peer, error) {
	p := &peer{principal: anonymous, trusted: !s.opts.Security.enforces()}
	if uc, ok := c.(*net.UnixConn); ok {
		p.host = "127.0.0.1"
		// Who may open the data directory's files needs no password for them.
		if uid, ok := ownerOf(uc); ok && !p.trusted {
			p.principal, p.trusted, p.owner = fmt.Sprintf("Owner:%d", uid), true, true
			return p, nil
		}
	} else {
		host, _, err := net.SplitHostPort(c.RemoteAddr().String())
		if err != nil {
			return nil, fmt.Errorf("finding a client's address: %w", err)
		}
		p.host = host
	}
	if p.trusted && s.opts.Security.TLS == nil {
		return p, nil
	}
	p.deadline = s.opts.now().Add(s.opts.LoginTimeout)
	if t, ok := c.(*tls.Conn); ok {
		ctx, cancel := context.WithDeadline(s.ctx, p.deadline)
		defer cancel()
		if err := t.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("TLS handshake: %w", err)
		}
		if chains := t.ConnectionState().VerifiedChains; len(chains) > 0 {
			if subject := chains[0][0].Subject.String(); subject != "" {
				p.principal = "User:" + subject
			}
		}
	}
	p.pending = len(s.opts.Security.Mechanisms) > 0
	if !p.pending {
		s.admit(p)
	}
	return p, nil
}

// admit ends a login.
func (s *Server) admit(p *peer) {
	p.pending = false
	for _, u := range s.opts.Security.SuperUsers {
		p.trusted = p.trusted || u == p.principal
	}
}

// user is the principal's name, as quotas know it.
func (p *peer) user() string {
	_, name, _ := strings.Cut(p.principal, ":")
	return name
}

// expired says that the client must log in again before anything else.
func (p *peer) expired(now time.Time) bool { return !p.expires.IsZero() && now.After(p.expires) }

// allowed decides whether the client may do something, and logs when not.
func (c *call) allowed(op acl.Operation, t acl.ResourceType, name string) bool {
	if c.allowedQuietly(op, t, name) {
		return true
	}
	c.s.opts.Logger.Info("denied", "principal", c.peer.principal, "host", c.peer.host, "operation", op.String(), "type", t.String(), "resource", name)
	return false
}

// allowedQuietly is allowed for what is left out of a list without a word.
func (c *call) allowedQuietly(op acl.Operation, t acl.ResourceType, name string) bool {
	if c.peer.trusted {
		return true
	}
	rules := c.s.opts.Security.Access.Rules()
	return c.unruled(rules, t, name) || rules.Allowed(c.peer.principal, c.peer.host, op, t, name)
}

// unruled reports a resource that is open to everybody, since no rule is on it.
func (c *call) unruled(rules *acl.Set, t acl.ResourceType, name string) bool {
	return c.s.opts.Security.AllowUnruled && !rules.Ruled(t, name)
}

// onCluster is allowed for the cluster itself.
func (c *call) onCluster(op acl.Operation) bool { return c.allowed(op, acl.Cluster, acl.ClusterName) }

// operations are the client's authorized operations, as responses tell them.
func (c *call) operations(t acl.ResourceType, name string) int32 {
	if c.peer.trusted {
		return acl.AllOperations(t)
	}
	rules := c.s.opts.Security.Access.Rules()
	if c.unruled(rules, t, name) {
		return acl.AllOperations(t)
	}
	return rules.Operations(c.peer.principal, c.peer.host, t, name)
}
