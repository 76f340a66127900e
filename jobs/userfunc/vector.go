package userfunc

import (
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/types"
)

// Signature is the typing of a Vector function.
type Signature struct {
	// Params are the parameters' types; arguments are cast to them as INSERT
	// casts, or refused.
	Params []types.Type
	// Return is the result's type. It is nullable where the function is strict and
	// an argument is, too.
	Return types.Type
	// CalledOnNull: the function sees rows with NULL arguments, those of Params
	// that are nullable. Otherwise the result of such a row is NULL.
	CalledOnNull bool
}

// Rows is a batch for a Vector function. Nothing of it may be kept.
type Rows struct {
	// Args are the arguments, Flat or Const; read row i at Args[k].Index(i).
	Args []*batch.Vec
	// Sel are the rows to compute, ascending. No others may be read or written.
	Sel batch.Sel
	// Out takes the result of each row of Sel, in order; see batch.Vec.
	Out *batch.Vec

	name, where string
}

// Fail makes the result of a row an error. It takes the place of writing the row.
func (r *Rows) Fail(row int32, err error) {
	r.Out.SetErr(int(row), batch.CodeUserFunction, r.where, failureText(r.name, err.Error()))
}

// Vector is a scalar function over columns. If f panics it is called once more for
// each row alone, so that the rows that are well keep their results.
func Vector(name string, s Signature, f func(*Rows), o Options) Function {
	d := declare(name, o, s, func(ctx *fn.Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		m := fn.Slot[vectorMemory](ctx)
		if s.CalledOnNull {
			sel = m.split(s.Params, args, sel)
			defer m.putNulls(out)
		}
		if len(sel) == 0 {
			return
		}
		m.batch = Rows{Args: args, Sel: sel, Out: out, name: name, where: ctx.Where()}
		if m.call(f) == "" {
			return
		}
		out.Reset(out.Type, out.Len)
		for k := range sel {
			m.alone(f, sel[k:k+1], out)
		}
	})
	if f == nil {
		d.err = errors.New("the Go function is nil")
	}
	return d
}

type vectorMemory struct {
	strict
	batch Rows
	one   batch.Vec
}

// alone computes one row, apart: a panic may leave half of a value behind.
func (m *vectorMemory) alone(f func(*Rows), row batch.Sel, out *batch.Vec) {
	m.one.Reset(out.Type, out.Len)
	m.batch.Sel, m.batch.Out = row, &m.one
	text := m.call(f)
	m.batch.Out = out
	if text != "" {
		m.batch.Fail(row[0], errors.New(text))
		return
	}
	m.one.PadOffsets()
	out.Put(int(row[0]), &m.one, int(row[0]))
}

// call runs f over the rows and returns the text of its panic, "" if there was none.
func (m *vectorMemory) call(f func(*Rows)) (panicked string) {
	defer func() {
		if p := recover(); p != nil {
			panicked = panicText(p)
		}
	}()
	f(&m.batch)
	return ""
}

// declare makes the declaration of a scalar function.
func declare(name string, o Options, s Signature, k fn.Kernel) Function {
	f := &fn.Function{Name: name, Syntax: []string{syntaxOf(name, s.Params)}, Category: fn.CatUser, Doc: o.Doc, User: o.user(),
		Bind: func(args []fn.Arg) (fn.Bound, error) {
			if err := checkCount(name, len(s.Params), len(args)); err != nil {
				return fn.Bound{}, err
			}
			b := fn.Bound{Params: s.Params, Return: s.Return, Kernel: k}
			for i, a := range args {
				null := a.Type.Nullable || a.Type.Kind == types.Null
				if null && !(s.CalledOnNull && s.Params[i].Nullable) {
					b.Return = b.Return.WithNullable(true)
				}
			}
			return b, nil
		}}
	if s.CalledOnNull {
		f.Nulls = fn.NullCalled
	}
	if o.NonDeterministic {
		f.Determinism = fn.PerCall
	}
	return Function{name: name, scalar: f}
}

func checkCount(name string, want, got int) error {
	if want == got {
		return nil
	}
	noun := "arguments"
	if want == 1 {
		noun = "argument"
	}
	return &fn.ArgError{Arg: -1, Offset: -1, Msg: fmt.Sprintf("%s takes %d %s, not %d", name, want, noun, got)}
}

// syntaxOf is e.g. "MASK(STRING, INT)".
func syntaxOf(name string, params []types.Type) string {
	var ts []string
	for _, t := range params {
		ts = append(ts, t.WithNullable(true).String())
	}
	return name + "(" + strings.Join(ts, ", ") + ")"
}
