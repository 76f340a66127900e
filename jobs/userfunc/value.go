package userfunc

import (
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// Plain are the Go types of SQL values that are not NULL:
//
//	bool BOOLEAN   int8 TINYINT   int16 SMALLINT   int32 INT   int64 BIGINT
//	float32 FLOAT   float64 DOUBLE   string STRING   []byte BYTES
//	time.Time TIMESTAMP_LTZ(6), in UTC
//
// A []byte argument is valid during the call and must not be written. The strings
// of a batch share memory: one that is kept keeps the others.
type Plain interface {
	bool | int8 | int16 | int32 | int64 | float32 | float64 | string | []byte | time.Time
}

// Value are the types of arguments and results. An argument that is not a Null
// makes the function NULL-strict in it: where it is NULL, the result is NULL and
// the function is not called (an aggregate leaves the row out).
type Value interface {
	Plain | Null[bool] | Null[int8] | Null[int16] | Null[int32] | Null[int64] |
		Null[float32] | Null[float64] | Null[string] | Null[[]byte] | Null[time.Time]
}

// Null is a value that may be NULL; the zero value is NULL.
type Null[T Plain] struct {
	V     T
	Valid bool
}

// Some is a value that is not NULL.
func Some[T Plain](v T) Null[T] { return Null[T]{V: v, Valid: true} }

// nullable is what every Null can do; it is how generic code over Value tells one
// from a Plain.
type nullable interface {
	sqlType() types.Type
	// unpack fills buf, a *[]Null[T]; inner keeps its working memory.
	unpack(v *batch.Vec, sel batch.Sel, buf any, inner *any)
	// setter is a func(row int32, x Null[T]).
	setter(out *batch.Vec) any
}

// typeOf is the SQL type of V, NOT NULL unless it is a Null.
func typeOf[V Value]() types.Type {
	var zero V
	switch z := any(zero).(type) {
	case nullable:
		return z.sqlType().WithNullable(true)
	case bool:
		return types.NewBoolean().NotNull()
	case int8:
		return types.NewTinyInt().NotNull()
	case int16:
		return types.NewSmallInt().NotNull()
	case int32:
		return types.NewInt().NotNull()
	case int64:
		return types.NewBigInt().NotNull()
	case float32:
		return types.NewFloat().NotNull()
	case float64:
		return types.NewDouble().NotNull()
	case string:
		return types.NewString().NotNull()
	case []byte:
		return types.NewBytes().NotNull()
	}
	return types.NewTimestampLTZ(6).NotNull() // time.Time is what is left of Value
}

// column is an argument unpacked: the value of row i is vals[i&mask].
type column[V Value] struct {
	vals  []V
	mask  int32
	inner any
}

func (c *column[V]) at(row int32) V { return c.vals[row&c.mask] }

// unpack takes the rows of sel of a Flat or Const Vec of type typeOf[V]. Numbers
// are the Vec's own memory; the others are unpacked into memory of c.
func (c *column[V]) unpack(v *batch.Vec, sel batch.Sel) {
	c.mask = -1
	if v.Enc == batch.Const {
		c.mask, sel = 0, firstRow[:]
	}
	var zero V
	if n, ok := any(zero).(nullable); ok {
		n.unpack(v, sel, &c.vals, &c.inner)
		return
	}
	switch vals := any(&c.vals).(type) {
	case *[]int8:
		*vals = v.I8
	case *[]int16:
		*vals = v.I16
	case *[]int32:
		*vals = v.I32
	case *[]int64:
		*vals = v.I64
	case *[]float32:
		*vals = v.F32
	case *[]float64:
		*vals = v.F64
	case *[]bool:
		*vals = room(*vals, sel)
		for _, i := range sel {
			(*vals)[i] = v.Bools.Get(int(i))
		}
	case *[]string:
		unpackStrings(v, sel, vals)
	case *[][]byte:
		*vals = room(*vals, sel)
		for _, i := range sel {
			from, to := v.Offsets[i], v.Offsets[i+1]
			(*vals)[i] = v.Data[from:to:to]
		}
	case *[]time.Time:
		*vals = room(*vals, sel)
		for _, i := range sel {
			(*vals)[i] = time.UnixMicro(v.I64[i]).UTC()
		}
	}
}

// firstRow selects the one value of a constant.
var firstRow = [1]int32{0}

// room makes s long enough for the rows of sel.
func room[T any](s []T, sel batch.Sel) []T {
	n := 0
	if len(sel) > 0 {
		n = int(sel[len(sel)-1]) + 1
	}
	if n <= cap(s) {
		return s[:n]
	}
	return make([]T, n)
}

// unpackStrings copies the text of the selected rows at once: the strings are the
// function's to keep, for one allocation a batch.
func unpackStrings(v *batch.Vec, sel batch.Sel, vals *[]string) {
	*vals = room(*vals, sel)
	if len(sel) == 0 {
		return
	}
	from := v.Offsets[sel[0]]
	text := string(v.Data[from:v.Offsets[sel[len(sel)-1]+1]])
	for _, i := range sel {
		(*vals)[i] = text[v.Offsets[i]-from : v.Offsets[i+1]-from]
	}
}

// setterOf is how results of type V go into rows of out, in ascending order.
func setterOf[V Value](out *batch.Vec) func(row int32, x V) {
	var zero V
	var set any
	switch z := any(zero).(type) {
	case nullable:
		set = z.setter(out)
	case bool:
		set = func(i int32, x bool) { out.Bools.Put(int(i), x) }
	case int8:
		set = func(i int32, x int8) { out.I8[i] = x }
	case int16:
		set = func(i int32, x int16) { out.I16[i] = x }
	case int32:
		set = func(i int32, x int32) { out.I32[i] = x }
	case int64:
		set = func(i int32, x int64) { out.I64[i] = x }
	case float32:
		set = func(i int32, x float32) { out.F32[i] = x }
	case float64:
		set = func(i int32, x float64) { out.F64[i] = x }
	case string:
		set = func(i int32, x string) { out.PutString(int(i), x) }
	case []byte:
		set = func(i int32, x []byte) { out.PutBytes(int(i), x) }
	case time.Time:
		set = func(i int32, x time.Time) { out.I64[i] = x.UnixMicro() }
	}
	return set.(func(int32, V))
}

func (Null[T]) sqlType() types.Type { return typeOf[T]() }

func (Null[T]) unpack(v *batch.Vec, sel batch.Sel, buf any, inner *any) {
	plain, ok := (*inner).(*column[T])
	if !ok {
		plain = new(column[T])
		*inner = plain
	}
	plain.unpack(v, sel)
	vals := buf.(*[]Null[T])
	*vals = room(*vals, sel)
	for _, i := range sel {
		if v.Valid != nil && !v.Valid.Get(int(i)) {
			(*vals)[i] = Null[T]{}
		} else {
			(*vals)[i] = Some(plain.at(i))
		}
	}
}

func (Null[T]) setter(out *batch.Vec) any {
	set := setterOf[T](out)
	return func(i int32, x Null[T]) {
		if !x.Valid {
			out.SetNull(int(i))
			return
		}
		set(i, x.V)
	}
}
