package control

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/millrace/millrace/storage/acl"
	"github.com/millrace/millrace/storage/quota"
)

// Access manages who may use a log: users, access rules, quotas. The owner of a
// data directory has it, and so has a Kafka cluster.
type Access interface {
	Users(ctx context.Context) ([]User, error)
	// SetUser gives a user a password.
	SetUser(ctx context.Context, req SetUser) (User, error)
	RemoveUser(ctx context.Context, req RemoveUser) error

	// ACLs lists the rules that agree with filter in every field that it has.
	ACLs(ctx context.Context, filter ACL) ([]ACL, error)
	AddACLs(ctx context.Context, rules []ACL) error
	// RemoveACLs removes what ACLs would list, and returns it.
	RemoveACLs(ctx context.Context, filter ACL) ([]ACL, error)

	Quotas(ctx context.Context) ([]Quota, error)
	SetQuota(ctx context.Context, req SetQuota) error
}

// User is a user with how it can log in.
type User struct {
	Name       string          `json:"user"`
	Mechanisms []UserMechanism `json:"mechanisms"`
}

// UserMechanism is a SASL mechanism with the iterations of its salted key.
type UserMechanism struct {
	Mechanism  string `json:"mechanism"`
	Iterations int    `json:"iterations"`
}

// Secret is a password: it prints as stars. JSON has it as it is, for the socket.
type Secret string

// Format prints stars, whatever the verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("***")) }

// LogValue keeps the secret out of logs.
func (Secret) LogValue() slog.Value { return slog.StringValue("***") }

// SetUser asks for a password to be set.
type SetUser struct {
	Name     string `json:"user"`
	Password Secret `json:"password"`
	// Mechanisms that the user can log in by; none, for a user that is there: those
	// it has.
	Mechanisms []string `json:"mechanisms"`
	// Iterations of the salted key, 0: the default.
	Iterations int `json:"iterations,omitempty"`
	// New: the user must not be there yet; else it must be.
	New bool `json:"new,omitempty"`
}

// RemoveUser asks for a user to be removed, or for one of its mechanisms.
type RemoveUser struct {
	Name      string `json:"user"`
	Mechanism string `json:"mechanism,omitempty"`
}

// ACL is an access rule, or a filter of them, whose empty fields stand for all.
type ACL struct {
	Type       string `json:"type"`
	Name       string `json:"name"`
	Pattern    string `json:"pattern"`
	Principal  string `json:"principal"`
	Host       string `json:"host"`
	Operation  string `json:"operation"`
	Permission string `json:"permission"`
}

// ACLOf writes a rule out.
func ACLOf(r acl.Rule) ACL {
	return ACL{Type: r.Type.String(), Name: r.Name, Pattern: r.Pattern.String(), Principal: r.Principal, Host: r.Host,
		Operation: r.Operation.String(), Permission: r.Permission.String()}
}

// Rule reads a rule.
func (a ACL) Rule() (acl.Rule, error) {
	f, err := a.Filter()
	if err != nil {
		return acl.Rule{}, err
	}
	r := acl.Rule{Type: f.Type, Name: a.Name, Pattern: f.Pattern, Principal: a.Principal, Host: a.Host, Operation: f.Operation, Permission: f.Permission}
	return r, r.Validate()
}

// Filter reads a filter.
func (a ACL) Filter() (acl.Filter, error) {
	f := acl.Filter{Type: acl.AnyType, Pattern: acl.AnyPattern, Operation: acl.AnyOperation, Permission: acl.AnyPermission}
	for _, s := range []struct {
		from string
		to   **string
	}{{a.Name, &f.Name}, {a.Principal, &f.Principal}, {a.Host, &f.Host}} {
		if s.from != "" {
			*s.to = &s.from
		}
	}
	var err error
	if a.Type != "" {
		if f.Type, err = acl.ParseResourceType(a.Type); err != nil {
			return f, err
		}
	}
	if a.Pattern != "" {
		if f.Pattern, err = acl.ParsePattern(a.Pattern); err != nil {
			return f, err
		}
	}
	if a.Operation != "" {
		if f.Operation, err = acl.ParseOperation(a.Operation); err != nil {
			return f, err
		}
	}
	if a.Permission != "" {
		f.Permission, err = acl.ParsePermission(a.Permission)
	}
	return f, err
}

// Entity is whom a quota is about. The name of a default is null.
type Entity struct {
	User, Client quota.Part
}

// MarshalJSON writes {"user": "ann", "client_id": null}: null for the default, no
// key for what the quota is not about.
func (e Entity) MarshalJSON() ([]byte, error) {
	m := map[string]*string{}
	for key, p := range map[string]quota.Part{"user": e.User, "client_id": e.Client} {
		switch {
		case p.Default:
			m[key] = nil
		case p.Set:
			m[key] = &p.Name
		}
	}
	return json.Marshal(m)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Entity) UnmarshalJSON(b []byte) error {
	var m map[string]*string
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	*e = Entity{}
	for key, name := range m {
		p := quota.Default()
		if name != nil {
			p = quota.Named(*name)
		}
		switch key {
		case "user":
			e.User = p
		case "client_id":
			e.Client = p
		default:
			return fmt.Errorf("a quota is about a user or a client_id, not a %q", key)
		}
	}
	return nil
}

// String is for people.
func (e Entity) String() string { return quota.Entity(e).String() }

// Quota is an entity's limits, by the names of the Kafka protocol.
type Quota struct {
	Entity Entity             `json:"entity"`
	Limits map[string]float64 `json:"limits"`
}

// SetQuota sets limits of an entity; 0 removes one.
type SetQuota struct {
	Entity Entity             `json:"entity"`
	Set    map[string]float64 `json:"set"`
}

// Principal is a principal as people write it: a name alone is a user's.
func Principal(s string) string {
	if s == "" || strings.Contains(s, ":") {
		return s
	}
	return "User:" + s
}
