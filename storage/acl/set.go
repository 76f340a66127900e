package acl

import (
	"slices"
	"strings"
)

// Set is a set of rules, indexed by resource. It does not change.
type Set struct {
	rules    []Rule
	literal  map[resource][]Rule
	prefixed map[resource][]Rule
	// lengths are those of the prefixes of a type, ascending, so that a question
	// looks only at prefixes that exist.
	lengths map[ResourceType][]int
}

type resource struct {
	typ  ResourceType
	name string
}

// NewSet makes a set; rules is not kept.
func NewSet(rules []Rule) *Set {
	s := &Set{rules: slices.Clone(rules), literal: map[resource][]Rule{}, prefixed: map[resource][]Rule{}, lengths: map[ResourceType][]int{}}
	for _, r := range rules {
		at := resource{r.Type, r.Name}
		if r.Pattern == Literal {
			s.literal[at] = append(s.literal[at], r)
			continue
		}
		s.prefixed[at] = append(s.prefixed[at], r)
		if n := len(r.Name); !slices.Contains(s.lengths[r.Type], n) {
			s.lengths[r.Type] = append(s.lengths[r.Type], n)
		}
	}
	for _, l := range s.lengths {
		slices.Sort(l)
	}
	return s
}

// Rules are all rules; not to be changed.
func (s *Set) Rules() []Rule { return s.rules }

// applies reports whether a rule on the right resource is about this principal,
// host and operation, or about one that implies it.
func (r *Rule) applies(principal, host string, op Operation) bool {
	if r.Principal != principal && (r.Principal != Everyone || !strings.HasPrefix(principal, "User:")) || r.Host != host && r.Host != Wildcard {
		return false
	}
	if r.Operation == op || r.Operation == All {
		return true
	}
	if r.Permission == Deny {
		return false
	}
	switch op {
	case Describe:
		return r.Operation == Read || r.Operation == Write || r.Operation == Delete || r.Operation == Alter
	case DescribeConfigs:
		return r.Operation == AlterConfigs
	}
	return false
}

// Allowed decides for one resource. name is a name, not a pattern.
func (s *Set) Allowed(principal, host string, op Operation, t ResourceType, name string) bool {
	allowed := false
	denied := func(rules []Rule) bool {
		for i := range rules {
			if rules[i].applies(principal, host, op) {
				if rules[i].Permission == Deny {
					return true
				}
				allowed = true
			}
		}
		return false
	}
	if denied(s.literal[resource{t, name}]) || denied(s.literal[resource{t, Wildcard}]) {
		return false
	}
	for _, n := range s.lengths[t] {
		if n > len(name) {
			break
		}
		if denied(s.prefixed[resource{t, name[:n]}]) {
			return false
		}
	}
	return allowed
}

// Ruled reports whether a rule, whoever it is about, is on a resource.
func (s *Set) Ruled(t ResourceType, name string) bool {
	if len(s.literal[resource{t, name}]) > 0 || len(s.literal[resource{t, Wildcard}]) > 0 {
		return true
	}
	for _, n := range s.lengths[t] {
		if n <= len(name) && len(s.prefixed[resource{t, name[:n]}]) > 0 {
			return true
		}
	}
	return false
}

// RuledAll reports whether a rule is on all resources of a type.
func (s *Set) RuledAll(t ResourceType) bool { return len(s.literal[resource{t, Wildcard}]) > 0 }

// AllowedAny reports whether there can be a resource of the type on which the
// operation is allowed: some rule allows it, and no rule denies it on all that
// the former covers.
func (s *Set) AllowedAny(principal, host string, op Operation, t ResourceType) bool {
	var denials []Rule
	for i := range s.rules {
		if r := &s.rules[i]; r.Type == t && r.Permission == Deny && r.applies(principal, host, op) {
			if r.Pattern == Literal && r.Name == Wildcard {
				return false
			}
			denials = append(denials, *r)
		}
	}
	for i := range s.rules {
		r := &s.rules[i]
		if r.Type == t && r.Permission == Allow && r.applies(principal, host, op) && !slices.ContainsFunc(denials, func(d Rule) bool { return covers(&d, r) }) {
			return true
		}
	}
	return false
}

// covers reports whether d's pattern fits everything that r's does.
func covers(d, r *Rule) bool {
	if d.Pattern == Prefixed {
		wild := r.Pattern == Literal && r.Name == Wildcard
		return !wild && strings.HasPrefix(r.Name, d.Name)
	}
	return r.Pattern == Literal && r.Name == d.Name
}

// Operations lists what is allowed on a resource as bits, bit n for operation n,
// as the protocol's "authorized operations" are.
func (s *Set) Operations(principal, host string, t ResourceType, name string) int32 {
	var bits int32
	for _, op := range operationsOf(t) {
		if s.Allowed(principal, host, op, t, name) {
			bits |= 1 << op
		}
	}
	return bits
}

// AllOperations is what Operations says to whom everything is allowed.
func AllOperations(t ResourceType) int32 {
	var bits int32
	for _, op := range operationsOf(t) {
		bits |= 1 << op
	}
	return bits
}
