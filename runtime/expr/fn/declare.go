package fn

import (
	"github.com/millrace/millrace/runtime/types"
)

// param is a parameter of a plainly typed function.
type param uint8

const (
	pString param = iota // CHAR, VARCHAR or STRING, taken as it is
	pInt                 // any integer, widened to BIGINT
	pBool
	pText // a string or bytes, taken as it is
)

func (p param) accept(t types.Type) (types.Type, string, bool) {
	switch p {
	case pString:
		if t.Kind == types.Null {
			return tString, "", true
		}
		return t, "a string (CAST it)", t.IsString()
	case pText:
		if t.Kind == types.Null {
			return tString, "", true
		}
		return t, "a string or bytes", t.IsString() || t.IsBinary()
	case pBool:
		return tBool, "BOOLEAN", t.Kind == types.Boolean || t.Kind == types.Null
	}
	return tBigInt, "an integer", t.IsInteger() || t.Kind == types.Null
}

// fixed types a function with the given parameters, of which the last opt may
// be left out. The result is nullable if an argument is, or if ret is.
func fixed(name string, ret types.Type, opt int, k Kernel, params ...param) func([]Arg) (Bound, error) {
	return func(args []Arg) (Bound, error) {
		return bindFixed(name, args, ret, opt, k, params)
	}
}

func bindFixed(name string, args []Arg, ret types.Type, opt int, k Kernel, params []param) (Bound, error) {
	if err := count(name, args, len(params)-opt, len(params)); err != nil {
		return Bound{}, err
	}
	b := Bound{Return: ret.WithNullable(ret.Nullable || anyNullable(args)), Kernel: k}
	for i, a := range args {
		t, what, ok := params[i].accept(a.Type)
		if !ok {
			return Bound{}, argErrf(i, "argument %d of %s must be %s, not %s", i+1, name, what, a.Type.WithNullable(true))
		}
		b.Params = append(b.Params, t)
	}
	return b, nil
}
