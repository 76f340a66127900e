package kafkaproto

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/millrace/millrace/storage/access"
	"github.com/millrace/millrace/storage/authn"
)

// Security says how clients are told apart and what they may do. The zero value
// authenticates nobody and allows everything, and so is for loopback.
type Security struct {
	// Access has the users, the access rules and the quotas. Without it their keys
	// are answered with error 54 (security disabled).
	Access *access.Store
	// TLS encrypts TCP connections. If it requires and verifies certificates, and
	// there are no Mechanisms, a client is its certificate's subject.
	TLS *tls.Config
	// Mechanisms are those that clients may log in by; none: they need not.
	Mechanisms []authn.Mechanism
	// SuperUsers may do everything: principals such as User:ann.
	SuperUsers []string
	// AllowUnruled opens what no access rule is on to everybody, as Kafka's
	// allow.everyone.if.no.acl.found does, and makes rules hold for clients that
	// nobody has authenticated, who are User:ANONYMOUS.
	AllowUnruled bool
	// MaxSession, if not 0, is how long a login by SASL holds. A client that does
	// not log in again by then is cut off with its next request.
	MaxSession time.Duration
}

// authenticates says that clients prove who they are.
func (s *Security) authenticates() bool {
	return len(s.Mechanisms) > 0 || s.TLS != nil && s.TLS.ClientAuth == tls.RequireAndVerifyClientCert
}

// enforces says that access rules hold.
func (s *Security) enforces() bool { return s.authenticates() || s.AllowUnruled }

// Permits returns ErrRemote for an address that may be reached from other machines
// unless clients authenticate, or everybody is allowed by name. Serve asks it.
func (o *Options) Permits(addr net.Addr) error {
	if tcp, ok := addr.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && !o.Security.authenticates() && !o.AllowUnauthenticated {
		return fmt.Errorf("kafka server: %w: %s", ErrRemote, addr)
	}
	return nil
}

func (s *Security) validate() error {
	switch {
	case s.enforces() && s.Access == nil:
		return fmt.Errorf("kafka server: Security.Access is missing: there are no access rules to hold")
	case s.TLS != nil && len(s.TLS.Certificates) == 0 && s.TLS.GetCertificate == nil && s.TLS.GetConfigForClient == nil:
		return fmt.Errorf("kafka server: Security.TLS has no certificate")
	case s.MaxSession < 0:
		return fmt.Errorf("kafka server: Security.MaxSession is negative")
	}
	for _, u := range s.SuperUsers {
		if kind, name, ok := strings.Cut(u, ":"); !ok || kind == "" || name == "" {
			return fmt.Errorf("kafka server: super user %q: write Kind:name, such as User:ann", u)
		}
	}
	return nil
}

// offers reports whether clients may log in by a mechanism.
func (s *Security) offers(m authn.Mechanism) bool {
	for _, x := range s.Mechanisms {
		if x == m {
			return true
		}
	}
	return false
}
