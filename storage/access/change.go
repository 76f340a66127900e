package access

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/storage/acl"
	"github.com/millrace/millrace/storage/authn"
	"github.com/millrace/millrace/storage/manifest"
	"github.com/millrace/millrace/storage/quota"
)

// User is a user with the mechanisms that it can log in by.
type User struct {
	Name        string
	Credentials []authn.Credential
}

// Users lists all, by name.
func (s *Store) Users() []User {
	users := s.now.Load().users
	out := make([]User, 0, len(users))
	for _, name := range slices.Sorted(maps.Keys(users)) {
		out = append(out, User{name, users[name]})
	}
	return out
}

// User finds one; false if there is none.
func (s *Store) User(name string) (User, bool) {
	c, ok := s.now.Load().users[name]
	return User{name, c}, ok
}

// Credential finds a user's credential for a mechanism.
func (s *Store) Credential(user string, m authn.Mechanism) (authn.Credential, bool) {
	for _, c := range s.now.Load().users[user] {
		if c.Mechanism == m {
			return c, true
		}
	}
	return authn.Credential{}, false
}

// SetCredential gives a user a credential, in place of the one for the same
// mechanism.
func (s *Store) SetCredential(user string, c authn.Credential) error {
	if err := authn.CheckUser(user); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := *s.now.Load()
	_, there := next.users[user]
	if !there && len(next.users) >= MaxUsers {
		return fmt.Errorf("%w: there are %d users", ErrTooMany, MaxUsers)
	}
	next.users = maps.Clone(next.users)
	set(next.users, user, c, true)
	return s.write(&next, []manifest.Edit{{Kind: kindCredential, Payload: appendCredential(nil, user, c)}}, there)
}

// DropCredential takes a user's credential for a mechanism away; ErrNoUser if
// there is none.
func (s *Store) DropCredential(user string, m authn.Mechanism) error {
	return s.drop(user, func(c authn.Credential) bool { return c.Mechanism == m })
}

// DropUser takes all of a user's credentials away; ErrNoUser if there are none.
func (s *Store) DropUser(user string) error {
	return s.drop(user, func(authn.Credential) bool { return true })
}

func (s *Store) drop(user string, which func(authn.Credential) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := *s.now.Load()
	next.users = maps.Clone(next.users)
	var edits []manifest.Edit
	for _, c := range next.users[user] {
		if which(c) {
			set(next.users, user, c, false)
			gone := authn.Credential{Mechanism: c.Mechanism}
			edits = append(edits, manifest.Edit{Kind: kindDropCredential, Payload: appendCredential(nil, user, gone)})
		}
	}
	if len(edits) == 0 {
		return fmt.Errorf("%w: %s", ErrNoUser, user)
	}
	return s.write(&next, edits, true)
}

// AddRules adds rules, all or none; those that are there already stay.
func (s *Store) AddRules(rules []acl.Rule) error {
	for i := range rules {
		if err := rules[i].Validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := *s.now.Load()
	byRule := maps.Clone(next.byRule)
	var edits []manifest.Edit
	for _, r := range rules {
		if !byRule[r] {
			byRule[r] = true
			edits = append(edits, manifest.Edit{Kind: kindRule, Payload: appendRule(nil, r)})
		}
	}
	if len(byRule) > MaxRules {
		return fmt.Errorf("%w: there cannot be more than %d rules", ErrTooMany, MaxRules)
	}
	next.byRule, next.rules = byRule, acl.NewSet(sortedRules(byRule))
	return s.write(&next, edits, false)
}

// DropRules drops what any of the filters selects and returns it, by filter.
func (s *Store) DropRules(filters []acl.Filter) ([][]acl.Rule, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := *s.now.Load()
	byRule := maps.Clone(next.byRule)
	dropped := make([][]acl.Rule, len(filters))
	var edits []manifest.Edit
	for _, r := range next.rules.Rules() {
		for i := range filters {
			if !filters[i].Matches(&r) {
				continue
			}
			dropped[i] = append(dropped[i], r)
			if byRule[r] {
				delete(byRule, r)
				edits = append(edits, manifest.Edit{Kind: kindDropRule, Payload: appendRule(nil, r)})
			}
		}
	}
	next.byRule, next.rules = byRule, acl.NewSet(sortedRules(byRule))
	if err := s.write(&next, edits, false); err != nil {
		return nil, err
	}
	return dropped, nil
}

func compareRules(a, b acl.Rule) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Pattern, b.Pattern), strings.Compare(a.Name, b.Name), strings.Compare(a.Principal, b.Principal),
		strings.Compare(a.Host, b.Host), cmp.Compare(a.Permission, b.Permission), cmp.Compare(a.Operation, b.Operation))
}

// QuotaChange sets limits of an entity; 0 removes one.
type QuotaChange struct {
	Entity quota.Entity
	Set    map[quota.Kind]float64
}

// AlterQuotas makes changes, all or none.
func (s *Store) AlterQuotas(changes []QuotaChange) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := *s.now.Load()
	next.quotas = maps.Clone(next.quotas)
	edits := make([]manifest.Edit, 0, len(changes))
	for _, c := range changes {
		if err := c.Entity.Validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		l := next.quotas[c.Entity]
		for k, v := range c.Set {
			if v != 0 {
				if err := quota.CheckLimit(k, v); err != nil {
					return fmt.Errorf("%w: %w", ErrInvalid, err)
				}
			}
			l[k] = v
		}
		if l == (quota.Limits{}) {
			delete(next.quotas, c.Entity)
		} else {
			next.quotas[c.Entity] = l
		}
		edits = append(edits, manifest.Edit{Kind: kindLimits, Payload: appendLimits(nil, c.Entity, l)})
	}
	if len(next.quotas) > MaxEntities {
		return fmt.Errorf("%w: there cannot be quotas for more than %d entities", ErrTooMany, MaxEntities)
	}
	return s.write(&next, edits, false)
}
