package access

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/millrace/millrace/storage/acl"
	"github.com/millrace/millrace/storage/authn"
	"github.com/millrace/millrace/storage/quota"
)

// Kinds of entries.
const (
	kindDecoy uint16 = iota + 1
	kindCredential
	kindDropCredential
	kindRule
	kindDropRule
	kindLimits
)

// errEntry says that an entry is not what its kind has.
var errEntry = errors.New("malformed entry")

func appendText[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// cursor takes an entry apart; bad once something is missing.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) byte() byte {
	if len(c.b) == 0 {
		c.bad = true
		return 0
	}
	v := c.b[0]
	c.b = c.b[1:]
	return v
}

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.bad, c.b = true, nil
		return 0
	}
	c.b = c.b[n:]
	return v
}

// bytes is a copy: entries are valid only while they are handed over.
func (c *cursor) bytes() []byte {
	n := c.uvarint()
	if n > uint64(len(c.b)) {
		c.bad, c.b = true, nil
		return nil
	}
	out := append([]byte(nil), c.b[:n]...)
	c.b = c.b[n:]
	return out
}

func (c *cursor) string() string { return string(c.bytes()) }

func (c *cursor) float() float64 {
	if len(c.b) < 8 {
		c.bad, c.b = true, nil
		return 0
	}
	v := math.Float64frombits(binary.BigEndian.Uint64(c.b))
	c.b = c.b[8:]
	return v
}

func (c *cursor) end() error {
	if c.bad || len(c.b) > 0 {
		return errEntry
	}
	return nil
}

func appendCredential(b []byte, user string, c authn.Credential) []byte {
	b = append(appendText(b, user), byte(c.Mechanism))
	b = binary.AppendUvarint(b, uint64(c.Iterations))
	return appendText(appendText(appendText(b, c.Salt), c.StoredKey), c.ServerKey)
}

func decodeCredential(b []byte) (string, authn.Credential, error) {
	c := cursor{b: b}
	user := c.string()
	out := authn.Credential{Mechanism: authn.Mechanism(c.byte()), Iterations: int(c.uvarint()), Salt: c.bytes(), StoredKey: c.bytes(), ServerKey: c.bytes()}
	return user, out, c.end()
}

func appendRule(b []byte, r acl.Rule) []byte {
	b = append(b, byte(r.Type), byte(r.Pattern), byte(r.Operation), byte(r.Permission))
	return appendText(appendText(appendText(b, r.Name), r.Principal), r.Host)
}

func decodeRule(b []byte) (acl.Rule, error) {
	c := cursor{b: b}
	r := acl.Rule{Type: acl.ResourceType(c.byte()), Pattern: acl.Pattern(c.byte()), Operation: acl.Operation(c.byte()), Permission: acl.Permission(c.byte()),
		Name: c.string(), Principal: c.string(), Host: c.string()}
	return r, c.end()
}

func appendPart(b []byte, p quota.Part) []byte {
	switch {
	case p.Default:
		return append(b, 2)
	case p.Set:
		return appendText(append(b, 1), p.Name)
	}
	return append(b, 0)
}

func (c *cursor) part() quota.Part {
	switch c.byte() {
	case 0:
		return quota.Part{}
	case 1:
		return quota.Named(c.string())
	case 2:
		return quota.Default()
	}
	c.bad = true
	return quota.Part{}
}

func appendLimits(b []byte, e quota.Entity, l quota.Limits) []byte {
	b = appendPart(appendPart(b, e.User), e.Client)
	n := 0
	for _, v := range l {
		if v != 0 {
			n++
		}
	}
	b = append(b, byte(n))
	for k, v := range l {
		if v != 0 {
			b = binary.BigEndian.AppendUint64(append(b, byte(k)), math.Float64bits(v))
		}
	}
	return b
}

func decodeLimits(b []byte) (quota.Entity, quota.Limits, error) {
	c := cursor{b: b}
	e := quota.Entity{User: c.part(), Client: c.part()}
	var l quota.Limits
	for n := c.byte(); n > 0; n-- {
		k := c.byte()
		if k == 0 || int(k) >= len(l) {
			return e, l, fmt.Errorf("%w: quota %d", errEntry, k)
		}
		l[k] = c.float()
	}
	return e, l, c.end()
}
