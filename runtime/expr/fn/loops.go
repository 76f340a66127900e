package fn

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// mask is the AND mask that turns a row number into an index of a Vec: 0 for
// Const, so that one loop serves both encodings without a branch.
func mask(v *batch.Vec) int32 {
	if v.Enc == batch.Const {
		return 0
	}
	return -1
}

// number are the layouts that Go can compare and add directly.
type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~float32 | ~float64
}

// values is the value slice of a Vec for its element type.
func values[T number](v *batch.Vec) []T {
	var s any
	switch any(*new(T)).(type) {
	case int8:
		s = v.I8
	case int16:
		s = v.I16
	case int32:
		s = v.I32
	case int64:
		s = v.I64
	case float32:
		s = v.F32
	case float64:
		s = v.F64
	}
	return s.([]T)
}

// text is the bytes of a row of a Flat or Const Vec.
func text(v *batch.Vec, i int32) []byte {
	if v.Enc == batch.Const {
		i = 0
	}
	return v.Data[v.Offsets[i]:v.Offsets[i+1]]
}

// null reports whether a row of a Flat or Const Vec is NULL.
func null(v *batch.Vec, i int32) bool {
	return v.Valid != nil && !v.Valid.Get(int(i&mask(v)))
}

// boolean, str... are the types that declarations use; nullability of results
// is set by nullableIf.
var (
	tBool   = types.NewBoolean()
	tInt    = types.NewInt()
	tBigInt = types.NewBigInt()
	tDouble = types.NewDouble()
	tString = types.NewString()
	tBytes  = types.NewBytes()
	tDate   = types.NewDate()
)

// anyNullable reports whether an argument may be NULL.
func anyNullable(args []Arg) bool {
	for _, a := range args {
		if a.Type.Nullable || a.Type.Kind == types.Null {
			return true
		}
	}
	return false
}

// count checks the number of arguments.
func count(name string, args []Arg, lo, hi int) error {
	switch n := len(args); {
	case n >= lo && (n <= hi || hi < 0):
		return nil
	case lo == hi:
		return argErrf(-1, "%s takes %s, not %d", name, plural(lo), n)
	case hi < 0:
		return argErrf(-1, "%s takes at least %s, not %d", name, plural(lo), n)
	default:
		return argErrf(-1, "%s takes %d to %s, not %d", name, lo, plural(hi), n)
	}
}

func plural(n int) string {
	switch n {
	case 0:
		return "no arguments"
	case 1:
		return "1 argument"
	}
	return itoa(n) + " arguments"
}

// want checks one argument against a predicate; a bare NULL passes.
func want(name string, args []Arg, i int, what string, ok func(types.Type) bool) error {
	if t := args[i].Type; t.Kind != types.Null && !ok(t) {
		return argErrf(i, "argument %d of %s must be %s, not %s", i+1, name, what, t.WithNullable(true))
	}
	return nil
}

func isString(t types.Type) bool  { return t.IsString() }
func isInteger(t types.Type) bool { return t.IsInteger() }
func isNumeric(t types.Type) bool { return t.IsNumeric() }
func isBool(t types.Type) bool    { return t.Kind == types.Boolean }
