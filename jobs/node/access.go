package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/storage/access"
	"github.com/millrace/millrace/storage/acl"
	"github.com/millrace/millrace/storage/authn"
	"github.com/millrace/millrace/storage/quota"
)

// Access is the directory's users, rules and quotas, opened when first asked for.
// It is the node's to close.
func (n *Node) Access() (*access.Store, error) {
	n.accessMu.Lock()
	defer n.accessMu.Unlock()
	if n.access == nil {
		s, err := access.Open(n.opts.FS, n.opts.FS.Join(n.opts.Dir, "access"))
		if err != nil {
			return nil, &control.Error{Kind: "environment", Message: err.Error()}
		}
		n.access = s
	}
	return n.access, nil
}

func (n *Node) closeAccess() error {
	n.accessMu.Lock()
	defer n.accessMu.Unlock()
	if n.access == nil {
		return nil
	}
	return n.access.Close()
}

// accessError sorts an error of the store.
func accessError(err error) error {
	if errors.Is(err, access.ErrInvalid) || errors.Is(err, access.ErrTooMany) {
		return inputError(err)
	}
	return err
}

// Users implements control.Access.
func (n *Node) Users(context.Context) ([]control.User, error) {
	s, err := n.Access()
	if err != nil {
		return nil, err
	}
	out := []control.User{}
	for _, u := range s.Users() {
		out = append(out, userOf(u))
	}
	return out, nil
}

func userOf(u access.User) control.User {
	out := control.User{Name: u.Name, Mechanisms: []control.UserMechanism{}}
	for _, c := range u.Credentials {
		out.Mechanisms = append(out.Mechanisms, control.UserMechanism{Mechanism: c.Mechanism.String(), Iterations: c.Iterations})
	}
	return out
}

// noUser is a not-found error with the nearest name.
func noUser(s *access.Store, name string) error {
	var names []string
	for _, u := range s.Users() {
		names = append(names, u.Name)
	}
	return notFound("user", name, names)
}

// SetUser implements control.Access.
func (n *Node) SetUser(_ context.Context, req control.SetUser) (control.User, error) {
	s, err := n.Access()
	if err != nil {
		return control.User{}, err
	}
	u, there := s.User(req.Name)
	switch {
	case req.New && there:
		return control.User{}, &control.Error{Kind: "input", Message: fmt.Sprintf("user %s is there already", req.Name), Hint: "users alter sets its password"}
	case !req.New && !there:
		return control.User{}, noUser(s, req.Name)
	}
	var ms []authn.Mechanism
	for _, name := range req.Mechanisms {
		m, err := authn.ParseMechanism(name)
		if err != nil {
			return control.User{}, inputError(err)
		}
		ms = append(ms, m)
	}
	if len(ms) == 0 {
		for _, c := range u.Credentials {
			ms = append(ms, c.Mechanism)
		}
	}
	// All are made before the first is stored: a bad password changes nothing.
	made := make([]authn.Credential, len(ms))
	for i, m := range ms {
		if made[i], err = authn.Derive(m, string(req.Password), cmp.Or(req.Iterations, authn.DefaultIterations)); err != nil {
			return control.User{}, inputError(err)
		}
	}
	for _, c := range made {
		if err := s.SetCredential(req.Name, c); err != nil {
			return control.User{}, accessError(err)
		}
	}
	u, _ = s.User(req.Name)
	return userOf(u), nil
}

// RemoveUser implements control.Access.
func (n *Node) RemoveUser(_ context.Context, req control.RemoveUser) error {
	s, err := n.Access()
	if err != nil {
		return err
	}
	if _, there := s.User(req.Name); !there {
		return noUser(s, req.Name)
	}
	if req.Mechanism == "" {
		return accessError(s.DropUser(req.Name))
	}
	m, err := authn.ParseMechanism(req.Mechanism)
	if err != nil {
		return inputError(err)
	}
	err = s.DropCredential(req.Name, m)
	if errors.Is(err, access.ErrNoUser) {
		return &control.Error{Kind: "not_found", Message: fmt.Sprintf("user %s does not log in by %s", req.Name, m)}
	}
	return accessError(err)
}

// ACLs implements control.Access.
func (n *Node) ACLs(_ context.Context, filter control.ACL) ([]control.ACL, error) {
	s, err := n.Access()
	if err != nil {
		return nil, err
	}
	f, err := filter.Filter()
	if err != nil {
		return nil, inputError(err)
	}
	out := []control.ACL{}
	for _, r := range s.Rules().Rules() {
		if f.Matches(&r) {
			out = append(out, control.ACLOf(r))
		}
	}
	return out, nil
}

// AddACLs implements control.Access.
func (n *Node) AddACLs(_ context.Context, rules []control.ACL) error {
	s, err := n.Access()
	if err != nil {
		return err
	}
	list := make([]acl.Rule, len(rules))
	for i, r := range rules {
		if list[i], err = r.Rule(); err != nil {
			return inputError(err)
		}
	}
	return accessError(s.AddRules(list))
}

// RemoveACLs implements control.Access.
func (n *Node) RemoveACLs(_ context.Context, filter control.ACL) ([]control.ACL, error) {
	s, err := n.Access()
	if err != nil {
		return nil, err
	}
	f, err := filter.Filter()
	if err != nil {
		return nil, inputError(err)
	}
	dropped, err := s.DropRules([]acl.Filter{f})
	if err != nil {
		return nil, err
	}
	out := []control.ACL{}
	for _, r := range dropped[0] {
		out = append(out, control.ACLOf(r))
	}
	return out, nil
}

// Quotas implements control.Access.
func (n *Node) Quotas(context.Context) ([]control.Quota, error) {
	s, err := n.Access()
	if err != nil {
		return nil, err
	}
	out := []control.Quota{}
	for e, limits := range s.Quotas() {
		q := control.Quota{Entity: control.Entity(e), Limits: map[string]float64{}}
		for _, k := range quota.Kinds() {
			if limits[k] > 0 {
				q.Limits[k.String()] = limits[k]
			}
		}
		out = append(out, q)
	}
	slices.SortFunc(out, func(a, b control.Quota) int { return cmp.Compare(a.Entity.String(), b.Entity.String()) })
	return out, nil
}

// SetQuota implements control.Access.
func (n *Node) SetQuota(_ context.Context, req control.SetQuota) error {
	s, err := n.Access()
	if err != nil {
		return err
	}
	change := access.QuotaChange{Entity: quota.Entity(req.Entity), Set: map[quota.Kind]float64{}}
	for name, v := range req.Set {
		k, err := quota.ParseKind(name)
		if err != nil {
			return inputError(err)
		}
		change.Set[k] = v
	}
	return accessError(s.AlterQuotas([]access.QuotaChange{change}))
}
