package userfunc

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/types"
)

// Table1 is a table function of one argument: f gives any number of rows, by the
// Emit1 to Emit4 it takes, whose columns get these names. In SQL it stands in
// LATERAL TABLE(NAME(x)).
//
//	userfunc.Table1("WORDS", []string{"word", "length"}, func(text string, out *userfunc.Emit2[string, int32]) error {
//		for w := range strings.FieldsSeq(text) {
//			out.Row(w, int32(len(w)))
//		}
//		return nil
//	}, userfunc.Options{})
//
// A row for which f gives an error or panics is an error, and none of its rows count.
func Table1[A Value, E any, P emitterOf[E]](name string, columns []string, f func(A, P) error, o Options) Function {
	params := []types.Type{typeOf[A]()}
	return table[E, P](name, columns, o, f == nil, params, func(m *tableMemory[E, A, none, none, none], args []*batch.Vec, sel batch.Sel) func(int32) error {
		m.a.unpack(args[0], sel)
		return func(i int32) error { return f(m.a.at(i), P(&m.out)) }
	})
}

// Table2 is a table function of two arguments; see Table1.
func Table2[A, B Value, E any, P emitterOf[E]](name string, columns []string, f func(A, B, P) error, o Options) Function {
	params := []types.Type{typeOf[A](), typeOf[B]()}
	return table[E, P](name, columns, o, f == nil, params, func(m *tableMemory[E, A, B, none, none], args []*batch.Vec, sel batch.Sel) func(int32) error {
		m.a.unpack(args[0], sel)
		m.b.unpack(args[1], sel)
		return func(i int32) error { return f(m.a.at(i), m.b.at(i), P(&m.out)) }
	})
}

// Table3 is a table function of three arguments; see Table1.
func Table3[A, B, C Value, E any, P emitterOf[E]](name string, columns []string, f func(A, B, C, P) error, o Options) Function {
	params := []types.Type{typeOf[A](), typeOf[B](), typeOf[C]()}
	return table[E, P](name, columns, o, f == nil, params, func(m *tableMemory[E, A, B, C, none], args []*batch.Vec, sel batch.Sel) func(int32) error {
		m.a.unpack(args[0], sel)
		m.b.unpack(args[1], sel)
		m.c.unpack(args[2], sel)
		return func(i int32) error { return f(m.a.at(i), m.b.at(i), m.c.at(i), P(&m.out)) }
	})
}

// Table4 is a table function of four arguments; see Table1.
func Table4[A, B, C, D Value, E any, P emitterOf[E]](name string, columns []string, f func(A, B, C, D, P) error, o Options) Function {
	params := []types.Type{typeOf[A](), typeOf[B](), typeOf[C](), typeOf[D]()}
	return table[E, P](name, columns, o, f == nil, params, func(m *tableMemory[E, A, B, C, D], args []*batch.Vec, sel batch.Sel) func(int32) error {
		m.a.unpack(args[0], sel)
		m.b.unpack(args[1], sel)
		m.c.unpack(args[2], sel)
		m.d.unpack(args[3], sel)
		return func(i int32) error { return f(m.a.at(i), m.b.at(i), m.c.at(i), m.d.at(i), P(&m.out)) }
	})
}

// TableSignature is the typing of a VectorTable function.
type TableSignature struct {
	// Params and CalledOnNull are as in Signature.
	Params       []types.Type
	CalledOnNull bool
	// Columns are those of the rows that it gives, at least one.
	Columns []types.Field
}

// VectorTable is a table function over columns, for more columns and other types
// than Go has words for. Rows.Out is an ARRAY of ROWs, one list a row of Rows.Sel; a
// panic is as with Vector.
func VectorTable(name string, s TableSignature, f func(*Rows), o Options) Function {
	d := Vector(name, Signature{Params: s.Params, CalledOnNull: s.CalledOnNull, Return: rowsOf(s.Columns)}, f, o)
	return asTable(d, s.Columns)
}

// rowsOf is the type of the value of a table function: all rows of a call.
func rowsOf(columns []types.Field) types.Type {
	return types.NewArray(types.NewRow(columns...).NotNull()).NotNull()
}

// asTable makes a table function of a scalar function of its rows.
func asTable(f Function, columns []types.Field) Function {
	f.scalar.Table = true
	seen := map[string]bool{}
	for _, c := range columns {
		switch {
		case c.Name == "":
			f.err = errors.Join(f.err, errors.New("a column has no name"))
		case seen[c.Name]:
			f.err = errors.Join(f.err, fmt.Errorf("there are two columns %q", c.Name))
		}
		seen[c.Name] = true
	}
	if len(columns) == 0 {
		f.err = errors.Join(f.err, errors.New("a table function needs columns"))
	}
	return f
}

// tableMemory is the working memory of one call in one goroutine.
type tableMemory[E any, A, B, C, D Value] struct {
	memory[none, A, B, C, D]
	out E
	// ends are the rows of out behind those of each row of the selection.
	ends []int32
}

// table declares a table function; row is as for scalar.
func table[E any, P emitterOf[E], A, B, C, D Value](name string, columns []string, o Options, missing bool, params []types.Type,
	row func(m *tableMemory[E, A, B, C, D], args []*batch.Vec, sel batch.Sel) func(int32) error) Function {
	var fields []types.Field
	given := P(new(E)).columns()
	for i, t := range given {
		if i < len(columns) {
			fields = append(fields, types.Field{Name: columns[i], Type: t})
		}
	}
	called := anyNullable(params)
	f := declare(name, o, Signature{Params: params, Return: rowsOf(fields), CalledOnNull: called},
		func(ctx *fn.Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
			m := fn.Slot[tableMemory[E, A, B, C, D]](ctx)
			if called {
				sel = m.split(params, args, sel)
			}
			if len(sel) > 0 {
				m.runTable(P(&m.out), row(m, args, sel), sel)
				m.putLists(name, ctx.Where(), sel, out)
				rows := out.Children[0]
				rows.Grow(P(&m.out).count().n)
				P(&m.out).put(rows)
				rows.PadOffsets()
			}
			if called {
				m.putNulls(out)
			}
		})
	if missing {
		f.err = errors.New("the Go function is nil")
	}
	if len(columns) != len(given) {
		f.err = errors.Join(f.err, fmt.Errorf("%d names for %d columns", len(columns), len(given)))
	}
	return asTable(f, fields)
}

// runTable computes the rows of sel.
func (m *tableMemory[E, A, B, C, D]) runTable(out emitter, row func(int32) error, sel batch.Sel) {
	m.ends = room(m.ends, batch.Sel{int32(len(sel) - 1)})
	n := out.count()
	good := 0 // rows of calls that ended well
	m.run(func(i int32) (none, error) {
		out.cut(good) // a call that panicked may have left some
		m.ends[m.at] = int32(good)
		n.begin()
		err := row(i)
		switch {
		case err != nil:
		case n.full:
			err = fmt.Errorf("more than %d rows for one row", MaxTableRows)
		default:
			good = n.n
			m.ends[m.at] = int32(good)
		}
		return false, err
	}, sel)
	out.cut(good)
}

// putLists says which rows belong to which row of sel.
func (m *tableMemory[E, A, B, C, D]) putLists(name, where string, sel batch.Sel, out *batch.Vec) {
	failed := m.failures
	for k, i := range sel {
		out.BeginList(int(i))
		out.Offsets = append(out.Offsets, m.ends[k])
		if len(failed) > 0 && failed[0].at == k {
			out.SetErr(int(i), batch.CodeUserFunction, where, failureText(name, failed[0].message))
			failed = failed[1:]
		}
	}
}
