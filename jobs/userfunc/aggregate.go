package userfunc

import (
	"errors"
	"strings"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/types"
)

// State is what an aggregate with states of type S and results of type R does
// with a state, beside adding rows. The zero value of S is the state of no rows.
// Calls for one state do not overlap.
type State[S any, R Value] struct {
	// Merge folds from, which stays as it is, into into. Required.
	Merge func(into, from *S) error
	// Result is the aggregate's value; it leaves the state as it is. Required.
	Result func(s *S) (R, error)
	// Save appends the state to dst, equal bytes for equal sets of rows. Required.
	Save func(dst []byte, s *S) []byte
	// Load reads what Save wrote; s is zero before. It must not keep saved.
	// Required.
	Load func(s *S, saved []byte) error
	// Bytes estimates the memory that a state holds beside its own size, in bytes;
	// nil: none.
	Bytes func(s *S) int64
}

// Fold1 is an aggregate of one argument.
type Fold1[A Value, S any, R Value] struct {
	State[S, R]
	// Add folds a row into a state. Required. An error, or a panic, makes the
	// result of the whole group an error: what fails a row alone belongs in a
	// scalar function around the argument.
	Add func(s *S, a A) error
	// Retract takes back a row that was added before. nil: over rows that change,
	// the runtime keeps every value with the number of its rows, and adds them
	// anew for each result. A group that failed stays failed with a Retract of its
	// own; without one it is well again when the row is taken back.
	Retract func(s *S, a A) error
}

// Fold2 is an aggregate of two arguments; see Fold1.
type Fold2[A, B Value, S any, R Value] struct {
	State[S, R]
	Add     func(s *S, a A, b B) error
	Retract func(s *S, a A, b B) error
}

// Aggregate1 declares an aggregate of one argument. SQL may call it with DISTINCT,
// FILTER and OVER.
func Aggregate1[A Value, S any, R Value](name string, f Fold1[A, S, R], o Options) Function {
	prepare := func(fold func(*S, A) error) folder[S] {
		if fold == nil {
			return nil
		}
		return func(m *arguments, sel batch.Sel) func(int32, *S) error {
			a := columnOf[A](m, 0)
			a.unpack(m.args[0], sel)
			return func(i int32, s *S) error { return fold(s, a.at(i)) }
		}
	}
	return aggregate(name, o, []types.Type{typeOf[A]()}, f.State, prepare(f.Add), prepare(f.Retract))
}

// Aggregate2 declares an aggregate of two arguments. SQL may call it with DISTINCT,
// FILTER and OVER.
func Aggregate2[A, B Value, S any, R Value](name string, f Fold2[A, B, S, R], o Options) Function {
	prepare := func(fold func(*S, A, B) error) folder[S] {
		if fold == nil {
			return nil
		}
		return func(m *arguments, sel batch.Sel) func(int32, *S) error {
			a, b := columnOf[A](m, 0), columnOf[B](m, 1)
			a.unpack(m.args[0], sel)
			b.unpack(m.args[1], sel)
			return func(i int32, s *S) error { return fold(s, a.at(i), b.at(i)) }
		}
	}
	return aggregate(name, o, []types.Type{typeOf[A](), typeOf[B]()}, f.State, prepare(f.Add), prepare(f.Retract))
}

// folder unpacks the arguments of a batch and gives what folds one row of it into a
// state.
type folder[S any] func(m *arguments, sel batch.Sel) func(row int32, s *S) error

// arguments are the columns of a batch without dictionaries, and the memory that
// they are unpacked into.
type arguments struct {
	args    []*batch.Vec
	flat    []batch.Vec
	columns []any
}

func (m *arguments) take(args []batch.Vec) {
	if m.args == nil {
		m.args, m.flat, m.columns = make([]*batch.Vec, len(args)), make([]batch.Vec, len(args)), make([]any, len(args))
	}
	for k := range args {
		m.args[k] = &args[k]
		if args[k].Enc == batch.Dict {
			m.flat[k].Flatten(&args[k])
			m.args[k] = &m.flat[k]
		}
	}
}

func columnOf[V Value](m *arguments, k int) *column[V] {
	c, ok := m.columns[k].(*column[V])
	if !ok {
		c = new(column[V])
		m.columns[k] = c
	}
	return c
}

func aggregate[S any, R Value](name string, o Options, params []types.Type, s State[S, R], add, retract folder[S]) Function {
	f := Function{name: name}
	switch {
	case o.NonDeterministic:
		f.err = errors.New("an aggregate must be deterministic: its state is saved, and rows are folded in again")
		return f
	case add == nil || s.Merge == nil || s.Result == nil || s.Save == nil || s.Load == nil:
		f.err = errors.New(missing(add == nil, s))
		return f
	}
	spec := &aggregateSpec[S, R]{name: name, params: params, ret: typeOf[R](), state: s, add: add, retract: retract}
	user := o.user()
	f.aggregate = &fn.Aggregate{Name: name, Syntax: []string{syntaxOf(name, params)}, Doc: o.Doc, User: user,
		Bind: func(args []fn.Arg, opts fn.AggOptions) (fn.BoundAggregate, error) {
			if err := checkCount(name, len(params), len(args)); err != nil {
				return fn.BoundAggregate{}, err
			}
			b := fn.BoundAggregate{Params: params, Return: spec.ret, User: &fn.Version{Function: name, Version: user.Version}, New: spec.make}
			if opts.Distinct {
				b = fn.Distinct(b)
			}
			return b, nil
		}}
	return f
}

func missing[S any, R Value](noAdd bool, s State[S, R]) string {
	var names []string
	for _, x := range []struct {
		name string
		nil  bool
	}{{"Add", noAdd}, {"Merge", s.Merge == nil}, {"Result", s.Result == nil}, {"Save", s.Save == nil}, {"Load", s.Load == nil}} {
		if x.nil {
			names = append(names, x.name)
		}
	}
	return "an aggregate needs " + strings.Join(names, ", ")
}
