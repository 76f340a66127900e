package authn

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"

	"github.com/xdg-go/scram"
)

// ErrFailed says that a login failed; it is all that a client is told.
var ErrFailed = errors.New("authentication failed: wrong user, password or mechanism")

// MaxMessage bounds a message of a client, in bytes.
const MaxMessage = 16 << 10

// Lookup finds a user's credential for a mechanism.
type Lookup func(user string, m Mechanism) (Credential, bool)

// Authenticator logs clients in.
type Authenticator struct {
	lookup Lookup
	decoy  []byte
	// hashing has room for the passwords being hashed.
	hashing chan struct{}
}

// New returns an authenticator. decoy is a secret from which the salts of users
// that do not exist are made; it should outlive the process, or a client that
// watches restarts could tell them from real ones.
func New(lookup Lookup, decoy []byte) *Authenticator {
	return &Authenticator{lookup: lookup, decoy: decoy, hashing: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Exchange is one login.
type Exchange struct {
	a         *Authenticator
	mechanism Mechanism
	scram     *scram.ServerConversation
	user      string
	decoy     bool
	done      bool
	ok        bool
}

// Begin starts a login.
func (a *Authenticator) Begin(m Mechanism) (*Exchange, error) {
	e := &Exchange{a: a, mechanism: m}
	generator := scram.SHA256
	switch m {
	case Plain:
		return e, nil
	case ScramSHA256:
	case ScramSHA512:
		generator = scram.SHA512
	default:
		return nil, fmt.Errorf("unknown mechanism %d", m)
	}
	server, err := generator.NewServer(func(user string) (scram.StoredCredentials, error) {
		c := e.find(user)
		return scram.StoredCredentials{KeyFactors: scram.KeyFactors{Salt: string(c.Salt), Iters: c.Iterations}, StoredKey: c.StoredKey, ServerKey: c.ServerKey}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", m, err)
	}
	e.scram = server.NewConversation()
	return e, nil
}

// find is the user's credential, or one that nothing fits.
func (e *Exchange) find(user string) Credential {
	if c, ok := e.a.lookup(user, e.mechanism); ok && CheckUser(user) == nil {
		return c
	}
	e.decoy = true
	m := hmac.New(sha256.New, e.a.decoy)
	fmt.Fprintf(m, "%s %s", e.mechanism, user)
	salt := m.Sum(nil)
	size := e.mechanism.hash()().Size()
	return Credential{Mechanism: e.mechanism, Iterations: DefaultIterations, Salt: salt, StoredKey: make([]byte, size), ServerKey: make([]byte, size)}
}

// Step takes a message of the client and returns the answer. An error ends the
// exchange: the client may begin another, on the connection's terms.
func (e *Exchange) Step(message []byte) ([]byte, error) {
	if e.done {
		return nil, ErrFailed
	}
	if len(message) > MaxMessage {
		e.done = true
		return nil, fmt.Errorf("%w: a message of %d bytes", ErrFailed, len(message))
	}
	if e.mechanism == Plain {
		e.done = true
		return nil, e.plain(message)
	}
	first := e.user == ""
	answer, err := e.scram.Step(string(message))
	if err != nil || first && (e.scram.Username() == "" || bytes.HasSuffix(message, []byte(",r=")) || bytes.Contains(message, []byte(",r=,"))) {
		// The cause is not for the client: it tells users apart.
		e.done = true
		return nil, ErrFailed
	}
	e.user = e.scram.Username()
	if authz := e.scram.AuthzID(); authz != "" && authz != e.user {
		e.done = true
		return nil, ErrFailed
	}
	if e.scram.Done() {
		e.done = true
		if !e.scram.Valid() || e.decoy {
			return nil, ErrFailed
		}
		e.ok = true
	}
	return []byte(answer), nil
}

// plain checks [authorization id] 0 user 0 password (RFC 4616).
func (e *Exchange) plain(message []byte) error {
	parts := bytes.Split(message, []byte{0})
	if len(parts) != 3 || len(parts[1]) == 0 || len(parts[2]) == 0 {
		return fmt.Errorf("%w: a PLAIN message is a user and a password", ErrFailed)
	}
	e.user = string(parts[1])
	if len(parts[0]) > 0 && !bytes.Equal(parts[0], parts[1]) {
		return ErrFailed
	}
	c := e.find(e.user)
	e.a.hashing <- struct{}{}
	ok := c.verify(string(parts[2]))
	<-e.a.hashing
	if !ok || e.decoy {
		return ErrFailed
	}
	e.ok = true
	return nil
}

// Done says that the exchange has ended.
func (e *Exchange) Done() bool { return e.done }

// User is who has logged in; false before that and after a failure.
func (e *Exchange) User() (string, bool) {
	if !e.ok {
		return "", false
	}
	return e.user, true
}

// Claimed is who the client says it is, for logs; empty before it said so.
func (e *Exchange) Claimed() string { return e.user }
