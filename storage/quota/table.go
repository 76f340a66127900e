package quota

import (
	"fmt"
	"math"
	"strings"
)

// Kind is what is limited.
type Kind uint8

// The kinds. Rates are in bytes a second; RequestPercent is the share of one
// thread's time, in percent.
const (
	ProduceRate Kind = iota + 1
	FetchRate
	RequestPercent
)

// kindNames are the protocol's.
var kindNames = [...]string{ProduceRate: "producer_byte_rate", FetchRate: "consumer_byte_rate", RequestPercent: "request_percentage"}

// Kinds are all of them.
func Kinds() []Kind { return []Kind{ProduceRate, FetchRate, RequestPercent} }

// String is the protocol's name.
func (k Kind) String() string {
	if k > 0 && int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("unknown(%d)", uint8(k))
}

// ParseKind reads a name of String; the error lists them.
func ParseKind(s string) (Kind, error) {
	for _, k := range Kinds() {
		if k.String() == s {
			return k, nil
		}
	}
	return 0, fmt.Errorf("%q is no quota; there are %s", s, strings.Join(kindNames[1:], ", "))
}

// Part is one half of an entity: absent, the default, or a name.
type Part struct {
	Set     bool
	Default bool
	Name    string
}

// Named is the part of a name.
func Named(name string) Part { return Part{Set: true, Name: name} }

// Default is the part that stands for all names without limits of their own.
func Default() Part { return Part{Set: true, Default: true} }

// Entity is whom limits are about: a user, a client id, or both.
type Entity struct{ User, Client Part }

// maxName bounds a name, in bytes.
const maxName = 1 << 10

// Validate says what is wrong with an entity.
func (e Entity) Validate() error {
	if !e.User.Set && !e.Client.Set {
		return fmt.Errorf("a quota is for a user, a client id or both")
	}
	for _, p := range []Part{e.User, e.Client} {
		if p.Set && !p.Default && (p.Name == "" || len(p.Name) > maxName) {
			return fmt.Errorf("a name has 1 to %d bytes", maxName)
		}
	}
	return nil
}

// String is for people: user=ann client-id=default.
func (e Entity) String() string {
	var out []string
	for _, p := range []struct {
		kind string
		Part
	}{{"user", e.User}, {"client-id", e.Client}} {
		switch {
		case p.Default:
			out = append(out, p.kind+" default")
		case p.Set:
			out = append(out, p.kind+" "+p.Name)
		}
	}
	return strings.Join(out, ", ")
}

// Limits are an entity's values, 0 where there is none.
type Limits [RequestPercent + 1]float64

// CheckLimit says what is wrong with a value.
func CheckLimit(k Kind, v float64) error {
	if math.IsNaN(v) || math.IsInf(v, 0) || v <= 0 {
		return fmt.Errorf("%s must be more than 0", k)
	}
	if k != RequestPercent && v != math.Trunc(v) {
		return fmt.Errorf("%s is in whole bytes a second", k)
	}
	return nil
}

// Table is the limits of all entities. It must not be changed once it is used.
type Table map[Entity]Limits

// scope is who shares a limit.
type scope struct {
	kind         Kind
	user, client string
}

// limit finds what holds for a user and a client id, and who shares it; 0 if
// nothing does.
func (t Table) limit(k Kind, user, client string) (float64, scope) {
	if len(t) == 0 {
		return 0, scope{}
	}
	for _, u := range [...]Part{Named(user), Default()} {
		for _, c := range [...]Part{Named(client), Default(), {}} {
			if v := t[Entity{u, c}][k]; v > 0 {
				s := scope{kind: k, user: "u" + user}
				if c.Set {
					s.client = "c" + client
				}
				return v, s
			}
		}
	}
	for _, c := range [...]Part{Named(client), Default()} {
		if v := t[Entity{Client: c}][k]; v > 0 {
			return v, scope{kind: k, client: "c" + client}
		}
	}
	return 0, scope{}
}
