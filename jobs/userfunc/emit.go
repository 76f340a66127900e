package userfunc

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// MaxTableRows is how many rows a table function may give for one row; with more
// the row is an error. So the rows of a whole batch stay countable.
const MaxTableRows = 1 << 16

// keptRows is for how many rows of a batch an Emit keeps its memory for the next.
const keptRows = 1 << 16

// Emit1 takes the rows that a table function gives, of one column. It is valid
// during the call.
type Emit1[A Value] struct {
	emitted
	a []A
}

// Row adds a row. The memory of a []byte is the row's from then on: give each row
// its own.
func (e *Emit1[A]) Row(a A) {
	if e.add() {
		e.a = append(e.a, a)
	}
}

// Emit2 takes rows of two columns; see Emit1.
type Emit2[A, B Value] struct {
	emitted
	a []A
	b []B
}

// Row adds a row; see Emit1.Row.
func (e *Emit2[A, B]) Row(a A, b B) {
	if e.add() {
		e.a, e.b = append(e.a, a), append(e.b, b)
	}
}

// Emit3 takes rows of three columns; see Emit1.
type Emit3[A, B, C Value] struct {
	emitted
	a []A
	b []B
	c []C
}

// Row adds a row; see Emit1.Row.
func (e *Emit3[A, B, C]) Row(a A, b B, c C) {
	if e.add() {
		e.a, e.b, e.c = append(e.a, a), append(e.b, b), append(e.c, c)
	}
}

// Emit4 takes rows of four columns; see Emit1.
type Emit4[A, B, C, D Value] struct {
	emitted
	a []A
	b []B
	c []C
	d []D
}

// Row adds a row; see Emit1.Row.
func (e *Emit4[A, B, C, D]) Row(a A, b B, c C, d D) {
	if e.add() {
		e.a, e.b, e.c, e.d = append(e.a, a), append(e.b, b), append(e.c, c), append(e.d, d)
	}
}

// emitter is what each Emit can do: the rows of the calls of a batch, one behind
// the other.
type emitter interface {
	count() *emitted
	columns() []types.Type
	// cut forgets all rows but the first n.
	cut(n int)
	// put writes all rows into the fields of rows, which has room for them, and
	// forgets them.
	put(rows *batch.Vec)
}

// emitterOf is a pointer to an Emit.
type emitterOf[E any] interface {
	*E
	emitter
}

// emitted counts the rows of a batch.
type emitted struct {
	n int
	// limit is what n may grow to in the call that is on; full says that the
	// function went beyond.
	limit int
	full  bool
}

func (e *emitted) count() *emitted { return e }

// begin starts a call.
func (e *emitted) begin() { e.limit, e.full = e.n+MaxTableRows, false }

func (e *emitted) add() bool {
	if e.n == e.limit {
		e.full = true
		return false
	}
	e.n++
	return true
}

func (*Emit1[A]) columns() []types.Type    { return []types.Type{typeOf[A]()} }
func (*Emit2[A, B]) columns() []types.Type { return []types.Type{typeOf[A](), typeOf[B]()} }
func (*Emit3[A, B, C]) columns() []types.Type {
	return []types.Type{typeOf[A](), typeOf[B](), typeOf[C]()}
}
func (*Emit4[A, B, C, D]) columns() []types.Type {
	return []types.Type{typeOf[A](), typeOf[B](), typeOf[C](), typeOf[D]()}
}

func (e *Emit1[A]) cut(n int)       { e.n, e.a = n, e.a[:n] }
func (e *Emit2[A, B]) cut(n int)    { e.n, e.a, e.b = n, e.a[:n], e.b[:n] }
func (e *Emit3[A, B, C]) cut(n int) { e.n, e.a, e.b, e.c = n, e.a[:n], e.b[:n], e.c[:n] }
func (e *Emit4[A, B, C, D]) cut(n int) {
	e.n, e.a, e.b, e.c, e.d = n, e.a[:n], e.b[:n], e.c[:n], e.d[:n]
}

func (e *Emit1[A]) put(rows *batch.Vec) {
	e.a, e.n = putColumn(rows.Children[0], e.a), 0
}

func (e *Emit2[A, B]) put(rows *batch.Vec) {
	e.a, e.b, e.n = putColumn(rows.Children[0], e.a), putColumn(rows.Children[1], e.b), 0
}

func (e *Emit3[A, B, C]) put(rows *batch.Vec) {
	e.a, e.b, e.c, e.n = putColumn(rows.Children[0], e.a), putColumn(rows.Children[1], e.b), putColumn(rows.Children[2], e.c), 0
}

func (e *Emit4[A, B, C, D]) put(rows *batch.Vec) {
	e.a, e.b, e.n = putColumn(rows.Children[0], e.a), putColumn(rows.Children[1], e.b), 0
	e.c, e.d = putColumn(rows.Children[2], e.c), putColumn(rows.Children[3], e.d)
}

// putColumn writes values and returns their memory, empty.
func putColumn[T Value](out *batch.Vec, values []T) []T {
	set := setterOf[T](out)
	for i, x := range values {
		set(int32(i), x)
	}
	if cap(values) > keptRows {
		return nil
	}
	clear(values) // they may hold memory of the function's
	return values[:0]
}
