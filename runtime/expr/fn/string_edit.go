package fn

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// moreStrings are further functions of text.
func moreStrings() []*Function {
	overlay := str("OVERLAY", "OVERLAY(s PLACING t FROM start [FOR length])",
		"s with the code points from start, counted from 1, replaced by t: as many as length, or as t has when left out. s itself if start lies outside of it; a length of 0 or less cuts off the rest of s, as in Flink.",
		fixed("OVERLAY", notNullString, 1, overlayKernel, pString, pString, pInt, pInt),
		Example{"OVERLAY('xxxxxtest', 'xxxx', 6)", "xxxxxxxxx"}, Example{"OVERLAY('xxxxxtest', 'xxxx', 6, 2)", "xxxxxxxxxst"})
	elt := str("ELT", "ELT(n, a, b, ...)", "Argument number n of those after it, counted from 1: strings or bytes. NULL if n is NULL or there is none.",
		bindElt, Example{"ELT(2, 'a', 'b')", "b"}, Example{"ELT(3, 'a', 'b')", "NULL"})
	elt.Nulls = NullCalled
	return []*Function{
		overlay, elt, translate(),
		affix("STARTSWITH", "starts", bytes.HasPrefix, Example{"STARTSWITH('hello', 'he')", "TRUE"}, Example{"STARTSWITH('hello', '')", "TRUE"}),
		affix("ENDSWITH", "ends", bytes.HasSuffix, Example{"ENDSWITH('hello', 'lo')", "TRUE"}, Example{"ENDSWITH('hello', 'he')", "FALSE"}),
		trimFn("BTRIM", "both ends", true, true, Example{"BTRIM('  a b ')", "a b"}, Example{"BTRIM('xxaxx', 'x')", "a"}),
		str("ASCII", "ASCII(s)", "First byte of the text in UTF-8, from -128 to 127: below 0 where the first character is not of ASCII; 0 for the empty string.", fixed("ASCII", tInt.NotNull(), 0, asciiKernel, pString),
			Example{"ASCII('abc')", "97"}, Example{"ASCII('')", "0"}),
		str("SPLIT", "SPLIT(s, sep)", "The parts of s between separators as an ARRAY; empty parts stay. The characters of s if sep is empty.",
			fixed("SPLIT", types.NewArray(tString).NotNull(), 0, splitKernel, pString, pString),
			Example{"SPLIT('a,b,,c', ',')", "[a, b, , c]"}, Example{"SPLIT('abc', '')", "[a, b, c]"}),
		textTest("IS_ALPHA", "every character of s is a letter", isAlpha, Example{"IS_ALPHA('abc')", "TRUE"}, Example{"IS_ALPHA('a1')", "FALSE"}),
		textTest("IS_DIGIT", "every character of s is a decimal digit", isDigits, Example{"IS_DIGIT('123')", "TRUE"}, Example{"IS_DIGIT('11.4445')", "FALSE"}),
		textTest("IS_DECIMAL", "s is a number as Java writes one: digits with an optional sign, point and exponent, NaN or Infinity, blanks around it", isDecimal,
			Example{"IS_DECIMAL('11.4445')", "TRUE"}, Example{"IS_DECIMAL('abc')", "FALSE"}),
	}
}

func overlayKernel(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		s, t, start := text(args[0], i), text(args[1], i), args[2].Int64(int(i))
		if start < 1 || start > int64(utf8.RuneCount(s)) {
			out.PutBytes(int(i), s)
			continue
		}
		n := int64(0)
		if len(args) > 3 {
			n = args[3].Int64(int(i))
		} else {
			n = int64(utf8.RuneCount(t))
		}
		at := runeAt(s, start-1)
		out.BeginBytes(int(i))
		out.Data = append(append(out.Data, s[:at]...), t...)
		if n > 0 {
			out.Data = append(out.Data, s[at+runeAt(s[at:], n):]...)
		}
		out.EndBytes()
	}
}

func bindElt(args []Arg) (Bound, error) {
	if err := count("ELT", args, 2, -1); err != nil {
		return Bound{}, err
	}
	if err := want("ELT", args, 0, "an integer", isInteger); err != nil {
		return Bound{}, err
	}
	for i := 1; i < len(args); i++ {
		if err := want("ELT", args, i, "a string or bytes", isText); err != nil {
			return Bound{}, err
		}
	}
	t, err := commonOf("ELT", args, 1)
	if err != nil {
		return Bound{}, err
	}
	if t.Kind == types.Null {
		t = tString
	}
	params := []types.Type{tBigInt}
	for range args[1:] {
		params = append(params, t)
	}
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			n := int64(0)
			if !null(args[0], i) {
				n = args[0].Int64(int(i))
			}
			if n < 1 || n >= int64(len(args)) {
				out.NullRow(int(i))
				continue
			}
			out.Put(int(i), args[n], int(i))
		}
	}
	return Bound{Params: params, Return: t.WithNullable(true), Kernel: k}, nil
}

func isText(t types.Type) bool { return t.IsString() || t.IsBinary() }

// affix is STARTSWITH and ENDSWITH.
func affix(name, verb string, has func(s, part []byte) bool, ex ...Example) *Function {
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			if has(text(args[0], i), text(args[1], i)) {
				out.Bools.Set(int(i))
			}
		}
	}
	return str(name, name+"(s, part)", "TRUE if s "+verb+" with part, as every s does with an empty one; both strings or both bytes.",
		func(args []Arg) (Bound, error) {
			b, err := bindFixed(name, args, tBool.NotNull(), 0, k, []param{pText, pText})
			if err != nil {
				return b, err
			}
			if args[0].Type.IsBinary() && args[1].Type.IsString() || args[0].Type.IsString() && args[1].Type.IsBinary() {
				return b, argErrf(1, "the arguments of %s must both be strings or both be bytes", name)
			}
			return b, nil
		}, ex...)
}

func asciiKernel(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		out.I32[i] = 0
		if s := text(args[0], i); len(s) > 0 {
			out.I32[i] = int32(int8(s[0]))
		}
	}
}

func splitKernel(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	parts := out.Children[0]
	put := func(s []byte) {
		parts.Grow(1)
		parts.PutBytes(parts.Len-1, s)
	}
	for _, i := range sel {
		s, sep := text(args[0], i), text(args[1], i)
		out.BeginList(int(i))
		if len(sep) == 0 {
			for len(s) > 0 {
				_, n := utf8.DecodeRune(s)
				put(s[:n])
				s = s[n:]
			}
		} else {
			k := bytes.Index(s, sep)
			for ; k >= 0; k = bytes.Index(s, sep) {
				put(s[:k])
				s = s[k+len(sep):]
			}
			put(s)
		}
		out.EndList()
	}
}

// textTest is a predicate on text that is FALSE for NULL, as in Flink.
func textTest(name, what string, f func(s []byte) bool, ex ...Example) *Function {
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			if !null(args[0], i) && f(text(args[0], i)) {
				out.Bools.Set(int(i))
			}
		}
	}
	t := str(name, name+"(s)", "TRUE if "+what+"; FALSE for NULL and for the empty string.", func(args []Arg) (Bound, error) {
		b, err := bindFixed(name, args, tBool.NotNull(), 0, k, []param{pString})
		b.Return = tBool.NotNull()
		return b, err
	}, ex...)
	t.Nulls = NullCalled
	return t
}

func everyRune(s []byte, f func(r rune) bool) bool {
	for k := 0; k < len(s); {
		r, n := utf8.DecodeRune(s[k:])
		if !f(r) {
			return false
		}
		k += n
	}
	return len(s) > 0
}

func isAlpha(s []byte) bool  { return everyRune(s, unicode.IsLetter) }
func isDigits(s []byte) bool { return everyRune(s, unicode.IsDigit) }

// isDecimal accepts what java.lang.Double.parseDouble does, but for the
// hexadecimal form.
func isDecimal(s []byte) bool {
	for len(s) > 0 && s[0] <= ' ' {
		s = s[1:]
	}
	for len(s) > 0 && s[len(s)-1] <= ' ' {
		s = s[:len(s)-1]
	}
	if len(s) > 0 && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	if string(s) == "NaN" || string(s) == "Infinity" {
		return true
	}
	whole := digitRun(s)
	s = s[whole:]
	if len(s) > 0 && s[0] == '.' {
		n := digitRun(s[1:])
		whole += n
		s = s[1+n:]
	}
	if whole == 0 {
		return false
	}
	if len(s) > 0 && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if len(s) > 0 && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		n := digitRun(s)
		if n == 0 {
			return false
		}
		s = s[n:]
	}
	// Java's suffixes of a float or double literal.
	return len(s) == 0 || len(s) == 1 && bytes.IndexByte([]byte("fFdD"), s[0]) >= 0
}

// digitRun is the number of ASCII digits at the start of s.
func digitRun(s []byte) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
