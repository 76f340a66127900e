package userfunc

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/sql/function"
)

// Options describe a function; the zero value works.
type Options struct {
	// Doc is a paragraph for users: meaning, units, NULL and error cases. DESCRIBE
	// FUNCTION and editors show it.
	Doc string
	// Version names this implementation; "" is "1". Change it together with what
	// the function gives, or with the form of an aggregate's saved state.
	Version string
	// NonDeterministic: equal arguments may give unequal results. Such a function
	// is evaluated once a row and reference, never at plan time, and refused in
	// keys, partition columns, join conditions and over rows that change.
	// Aggregates are always deterministic.
	NonDeterministic bool
}

func (o Options) user() *fn.User {
	if o.Version == "" {
		o.Version = "1"
	}
	return &fn.User{Version: o.Version}
}

// Function is a function for a Set.
type Function struct {
	name      string
	scalar    *fn.Function
	aggregate *fn.Aggregate
	err       error
}

// Name is the function's name in SQL.
func (f Function) Name() string { return f.name }

// Set is an immutable set of functions; nil is the empty one.
type Set struct{ extra fn.Extra }

// NewSet checks functions and makes a set of them. Names are upper case (SQL may
// write them in any case), no reserved words, and none is one of a built-in
// function or of another function of the set. The error joins everything that is
// wrong.
func NewSet(functions ...Function) (*Set, error) {
	s := &Set{}
	builtIn, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, f := range functions {
		switch {
		case f.err != nil:
			errs = append(errs, fmt.Errorf("user function %s: %w", f.name, f.err))
			continue
		case f.scalar != nil:
			s.extra.Functions = append(s.extra.Functions, f.scalar)
		case f.aggregate != nil:
			s.extra.Aggregates = append(s.extra.Aggregates, f.aggregate)
		default:
			errs = append(errs, errors.New("a Function that was made by none of Scalar0 to Scalar4, Vector, Table1 to Table4, VectorTable, Aggregate1 and Aggregate2"))
			continue
		}
		if function.Exists(builtIn, f.name) {
			continue // the library says so
		}
		if why := function.Taken(f.name); why != "" {
			errs = append(errs, fmt.Errorf("user function %s: the name %s", f.name, why))
		}
	}
	if _, err := fn.NewLibrary(fn.LibraryOptions{Extra: s.extra}); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}

// Extra is the set as sql/compile takes it.
func (s *Set) Extra() fn.Extra {
	if s == nil {
		return fn.Extra{}
	}
	return s.extra
}
