package authn

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
	"log/slog"
	"strings"
)

// Mechanism is a SASL mechanism; the SCRAM ones are numbered as in the Kafka
// protocol.
type Mechanism uint8

// The mechanisms.
const (
	ScramSHA256 Mechanism = 1
	ScramSHA512 Mechanism = 2
	Plain       Mechanism = 3
)

// Mechanisms are all of them.
func Mechanisms() []Mechanism { return []Mechanism{Plain, ScramSHA256, ScramSHA512} }

// String is the mechanism's registered name.
func (m Mechanism) String() string {
	switch m {
	case ScramSHA256:
		return "SCRAM-SHA-256"
	case ScramSHA512:
		return "SCRAM-SHA-512"
	case Plain:
		return "PLAIN"
	}
	return fmt.Sprintf("unknown(%d)", uint8(m))
}

// ParseMechanism reads a registered name, in any case.
func ParseMechanism(s string) (Mechanism, error) {
	for _, m := range Mechanisms() {
		if strings.EqualFold(m.String(), s) {
			return m, nil
		}
	}
	return 0, fmt.Errorf("%q is no mechanism; there are PLAIN, SCRAM-SHA-256, SCRAM-SHA-512", s)
}

// hash is the function that the mechanism's keys are made with.
func (m Mechanism) hash() func() hash.Hash {
	if m == ScramSHA512 {
		return sha512.New
	}
	return sha256.New
}

// Bounds of a credential's iterations, Kafka's.
const (
	MinIterations     = 4096
	MaxIterations     = 16384
	DefaultIterations = 8192
)

// Bounds of names, passwords and salts, in bytes.
const (
	MaxUser     = 255
	MaxPassword = 1 << 10
	MaxSalt     = 256
	saltBytes   = 32
)

// Credential is what proves that somebody knows a password, without telling it.
type Credential struct {
	Mechanism  Mechanism
	Iterations int
	Salt       []byte
	StoredKey  []byte
	// ServerKey proves the server to the client; empty for PLAIN.
	ServerKey []byte
}

// Format prints the credential without its secrets for every verb.
func (c Credential) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "%s(iterations=%d)", c.Mechanism, c.Iterations)
}

// LogValue keeps the secrets out of logs.
func (c Credential) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(c)) }

// MarshalJSON keeps the secrets out of JSON.
func (c Credential) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `{"mechanism":%q,"iterations":%d}`, c.Mechanism.String(), c.Iterations), nil
}

// Salt salts a password with a fresh salt, for FromSalted or for a broker.
func Salt(m Mechanism, password string, iterations int) (salt, salted []byte, err error) {
	if password == "" || len(password) > MaxPassword {
		return nil, nil, fmt.Errorf("a password has 1 to %d bytes", MaxPassword)
	}
	if err := checkIterations(iterations); err != nil {
		return nil, nil, err
	}
	salt = make([]byte, saltBytes)
	if _, err := rand.Read(salt); err != nil {
		return nil, nil, fmt.Errorf("making a salt: %w", err)
	}
	salted, err = saltedPassword(m, password, salt, iterations)
	return salt, salted, err
}

// Derive makes a credential with a fresh salt.
func Derive(m Mechanism, password string, iterations int) (Credential, error) {
	salt, salted, err := Salt(m, password, iterations)
	if err != nil {
		return Credential{}, err
	}
	return FromSalted(m, salt, salted, iterations)
}

// saltedPassword is the salted password.
func saltedPassword(m Mechanism, password string, salt []byte, iterations int) ([]byte, error) {
	b, err := pbkdf2.Key(m.hash(), password, salt, iterations, m.hash()().Size())
	if err != nil {
		return nil, fmt.Errorf("salting a password: %w", err)
	}
	return b, nil
}

// maxSalted bounds a salted password, in bytes.
const maxSalted = 1024

// FromSalted makes a credential of a password that the client has salted, as the
// Kafka protocol's requests bring it. One of another length than the mechanism's hash
// belongs to no password; Kafka takes it, and so does this: nobody can log in by it.
func FromSalted(m Mechanism, salt, salted []byte, iterations int) (Credential, error) {
	if m != ScramSHA256 && m != ScramSHA512 && m != Plain {
		return Credential{}, fmt.Errorf("unknown mechanism %d", m)
	}
	if err := checkIterations(iterations); err != nil {
		return Credential{}, err
	}
	switch {
	case len(salt) == 0 || len(salt) > MaxSalt:
		return Credential{}, fmt.Errorf("a salt has 1 to %d bytes", MaxSalt)
	case len(salted) == 0 || len(salted) > maxSalted:
		return Credential{}, fmt.Errorf("a salted password has 1 to %d bytes, not %d", maxSalted, len(salted))
	}
	clientKey := mac(m, salted, "Client Key")
	h := m.hash()()
	h.Write(clientKey)
	c := Credential{Mechanism: m, Iterations: iterations, Salt: append([]byte(nil), salt...), StoredKey: h.Sum(nil)}
	if m != Plain {
		c.ServerKey = mac(m, salted, "Server Key")
	}
	return c, nil
}

// IterationsError says that a number of iterations is out of bounds.
type IterationsError struct{ Iterations int }

func (e *IterationsError) Error() string {
	return fmt.Sprintf("%d iterations, want %d to %d", e.Iterations, MinIterations, MaxIterations)
}

func checkIterations(n int) error {
	if n < MinIterations || n > MaxIterations {
		return &IterationsError{n}
	}
	return nil
}

func mac(m Mechanism, key []byte, text string) []byte {
	h := hmac.New(m.hash(), key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// verify reports whether the credential was made of the password, in a time that
// does not depend on how wrong it is.
func (c *Credential) verify(password string) bool {
	if len(password) > MaxPassword {
		return false
	}
	salted, err := saltedPassword(c.Mechanism, password, c.Salt, c.Iterations)
	if err != nil {
		return false
	}
	h := c.Mechanism.hash()()
	h.Write(mac(c.Mechanism, salted, "Client Key"))
	return hmac.Equal(h.Sum(nil), c.StoredKey)
}

// CheckUser says what is wrong with a user's name.
func CheckUser(name string) error {
	if name == "" || len(name) > MaxUser {
		return fmt.Errorf("a user's name has 1 to %d bytes", MaxUser)
	}
	if strings.ContainsAny(name, "\x00\r\n") {
		return fmt.Errorf("user %q: a name has no line ends and no zero bytes", name)
	}
	return nil
}
