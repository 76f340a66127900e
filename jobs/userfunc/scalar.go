package userfunc

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/types"
)

// Scalar0 is a function without arguments.
func Scalar0[R Value](name string, f func() (R, error), o Options) Function {
	return scalar[R](name, o, f == nil, nil, func(*memory[R, none, none, none, none], []*batch.Vec, batch.Sel) func(int32) (R, error) {
		return func(int32) (R, error) { return f() }
	})
}

// Scalar1 is a function of one argument.
func Scalar1[A, R Value](name string, f func(A) (R, error), o Options) Function {
	params := []types.Type{typeOf[A]()}
	return scalar(name, o, f == nil, params, func(m *memory[R, A, none, none, none], args []*batch.Vec, sel batch.Sel) func(int32) (R, error) {
		m.a.unpack(args[0], sel)
		return func(i int32) (R, error) { return f(m.a.at(i)) }
	})
}

// Scalar2 is a function of two arguments.
func Scalar2[A, B, R Value](name string, f func(A, B) (R, error), o Options) Function {
	params := []types.Type{typeOf[A](), typeOf[B]()}
	return scalar(name, o, f == nil, params, func(m *memory[R, A, B, none, none], args []*batch.Vec, sel batch.Sel) func(int32) (R, error) {
		m.a.unpack(args[0], sel)
		m.b.unpack(args[1], sel)
		return func(i int32) (R, error) { return f(m.a.at(i), m.b.at(i)) }
	})
}

// Scalar3 is a function of three arguments.
func Scalar3[A, B, C, R Value](name string, f func(A, B, C) (R, error), o Options) Function {
	params := []types.Type{typeOf[A](), typeOf[B](), typeOf[C]()}
	return scalar(name, o, f == nil, params, func(m *memory[R, A, B, C, none], args []*batch.Vec, sel batch.Sel) func(int32) (R, error) {
		m.a.unpack(args[0], sel)
		m.b.unpack(args[1], sel)
		m.c.unpack(args[2], sel)
		return func(i int32) (R, error) { return f(m.a.at(i), m.b.at(i), m.c.at(i)) }
	})
}

// Scalar4 is a function of four arguments.
func Scalar4[A, B, C, D, R Value](name string, f func(A, B, C, D) (R, error), o Options) Function {
	params := []types.Type{typeOf[A](), typeOf[B](), typeOf[C](), typeOf[D]()}
	return scalar(name, o, f == nil, params, func(m *memory[R, A, B, C, D], args []*batch.Vec, sel batch.Sel) func(int32) (R, error) {
		m.a.unpack(args[0], sel)
		m.b.unpack(args[1], sel)
		m.c.unpack(args[2], sel)
		m.d.unpack(args[3], sel)
		return func(i int32) (R, error) { return f(m.a.at(i), m.b.at(i), m.c.at(i), m.d.at(i)) }
	})
}

// none stands for an argument that a function does not have.
type none = bool

// memory is the working memory of one call in one goroutine.
type memory[R, A, B, C, D Value] struct {
	calls[R]
	strict
	a column[A]
	b column[B]
	c column[C]
	d column[D]
}

// scalar declares a function; row unpacks the arguments of a batch and gives what
// computes one row of it.
func scalar[R, A, B, C, D Value](name string, o Options, missing bool, params []types.Type,
	row func(m *memory[R, A, B, C, D], args []*batch.Vec, sel batch.Sel) func(int32) (R, error)) Function {
	called := anyNullable(params)
	f := declare(name, o, Signature{Params: params, Return: typeOf[R](), CalledOnNull: called},
		func(ctx *fn.Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
			m := fn.Slot[memory[R, A, B, C, D]](ctx)
			if called {
				sel = m.split(params, args, sel)
			}
			if len(sel) > 0 {
				m.run(row(m, args, sel), sel)
				m.put(name, ctx.Where(), sel, out)
			}
			if called {
				m.putNulls(out)
			}
		})
	if missing {
		f.err = errors.New("the Go function is nil")
	}
	return f
}

func anyNullable(ts []types.Type) bool {
	for _, t := range ts {
		if t.Nullable {
			return true
		}
	}
	return false
}

// strict parts rows that a function is called for from those whose result is NULL.
type strict struct{ rows, nulls batch.Sel }

// split gives the rows of sel in which no argument is NULL that must not be.
func (s *strict) split(params []types.Type, args []*batch.Vec, sel batch.Sel) batch.Sel {
	s.rows, s.nulls = s.rows[:0], s.nulls[:0]
next:
	for _, i := range sel {
		for k, a := range args {
			if !params[k].Nullable && a.IsNull(int(i)) {
				s.nulls = append(s.nulls, i)
				continue next
			}
		}
		s.rows = append(s.rows, i)
	}
	return s.rows
}

// putNulls is called when the other rows have been written.
func (s *strict) putNulls(out *batch.Vec) {
	out.PadOffsets()
	for _, i := range s.nulls {
		out.NullRow(int(i))
	}
}

// calls computes rows one by one and keeps what came out.
type calls[R Value] struct {
	results  []R
	failures []failure
	row      func(int32) (R, error)
	sel      batch.Sel
	at       int // the index in sel being computed
}

// failure is a row without a result.
type failure struct {
	at      int // index in the selection
	message string
}

// run computes the rows of sel; a panic costs its row alone.
func (c *calls[R]) run(row func(int32) (R, error), sel batch.Sel) {
	if cap(c.results) < len(sel) {
		c.results = make([]R, len(sel))
	}
	c.results, c.failures = c.results[:len(sel)], c.failures[:0]
	c.row, c.sel, c.at = row, sel, 0
	for c.at < len(sel) {
		c.attempt()
	}
	c.row, c.sel = nil, nil
}

func (c *calls[R]) attempt() {
	defer func() {
		if p := recover(); p != nil {
			c.fail(panicText(p))
			c.at++
		}
	}()
	for ; c.at < len(c.sel); c.at++ {
		r, err := c.row(c.sel[c.at])
		if err != nil {
			c.fail(err.Error())
			continue
		}
		c.results[c.at] = r
	}
}

func (c *calls[R]) fail(message string) {
	c.failures = append(c.failures, failure{c.at, message})
}

// put writes what came out.
func (c *calls[R]) put(name, where string, sel batch.Sel, out *batch.Vec) {
	set := setterOf[R](out)
	failed := c.failures
	for k, i := range sel {
		if len(failed) > 0 && failed[0].at == k {
			out.SetErr(int(i), batch.CodeUserFunction, where, failureText(name, failed[0].message))
			failed = failed[1:]
			continue
		}
		set(i, c.results[k])
	}
	clear(c.results) // they may hold memory of the function's
}

// panicText is what a panic says.
func panicText(p any) string { return fmt.Sprintf("panic: %v", p) }

// maxMessageBytes bounds what a function says: it is kept with every dead row.
const maxMessageBytes = 256

func failureText(name, message string) string {
	if len(message) > maxMessageBytes {
		n := maxMessageBytes
		for n > 0 && message[n]&0xc0 == 0x80 {
			n--
		}
		message = message[:n] + "..."
	}
	return name + ": " + message
}
