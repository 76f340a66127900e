package fn

import (
	"errors"
	"fmt"
	"regexp"
)

// Extra are the functions that a program brings along.
type Extra struct {
	Functions  []*Function
	Aggregates []*Aggregate
}

// User marks a declaration as one that a program brought along.
type User struct {
	// Version is what its author calls this implementation. Saved state that
	// its values went into is taken over by the same version alone.
	Version string
}

// Version names an implementation of a user function.
type Version struct{ Function, Version string }

// String is e.g. "MASK (version 2)".
func (v Version) String() string { return fmt.Sprintf("%s (version %s)", v.Function, v.Version) }

var plainName = regexp.MustCompile(`\A[A-Z][A-Z0-9_]*\z`)

// checkUser reports user functions that SQL could not call by their names.
func (e Extra) checkUser() error {
	var errs []error
	check := func(name string, u *User) {
		switch {
		case !plainName.MatchString(name):
			errs = append(errs, fmt.Errorf("user function %q: a name is a letter and then letters, digits and _, in upper case", name))
		case u == nil || u.Version == "":
			errs = append(errs, fmt.Errorf("user function %s has no version", name))
		}
	}
	for _, f := range e.Functions {
		check(f.Name, f.User)
	}
	for _, a := range e.Aggregates {
		check(a.Name, a.User)
	}
	return errors.Join(errs...)
}

// UserNames are the names of the user functions and aggregates, in the order of
// their registration.
func (l *Library) UserNames() []string {
	var out []string
	for _, f := range l.list {
		if f.User != nil {
			out = append(out, f.Name)
		}
	}
	for _, a := range l.aggList {
		if a.User != nil {
			out = append(out, a.Name)
		}
	}
	return out
}
