package fn

import (
	"bytes"
	"unicode/utf8"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// maxText bounds what REPEAT, LPAD and RPAD may build, in bytes; maxColumn
// bounds a whole column, whose offsets have 31 bits.
const (
	maxText   = 16 << 20
	maxColumn = 1 << 30
)

// notNullString is the result type of string functions; arguments that may be
// NULL make it nullable.
var notNullString = tString.NotNull()

// each wraps a function of one string that appends its result.
func each(f func(dst, s []byte) []byte) Kernel {
	return func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			out.BeginBytes(int(i))
			out.Data = f(out.Data, text(args[0], i))
			out.EndBytes()
		}
	}
}

func str(name, syntax, doc string, bind func([]Arg) (Bound, error), ex ...Example) *Function {
	return &Function{Name: name, Syntax: []string{syntax}, Category: CatString, Doc: doc, Bind: bind, Examples: ex}
}

func stringFunctions() []*Function {
	concatOp := str("||", "a || b", "The strings joined; NULL if one is NULL.", bindConcat("||", 2, 2), Example{"'a' || 'b'", "ab"}, Example{"'a' || NULL", "NULL"})
	concatOp.Infix = true
	concatWS := str("CONCAT_WS", "CONCAT_WS(sep, a, b, ...)", "The strings joined with a separator between them; NULL strings are left out, empty ones are not. NULL if the separator is NULL.",
		bindConcatWS, Example{"CONCAT_WS('~', 'AA', NULL, 'BB', '', 'CC')", "AA~BB~~CC"}, Example{"CONCAT_WS(NULL, 'a', 'b')", "NULL"})
	concatWS.Nulls = NullCalled
	charLength := str("CHAR_LENGTH", "CHAR_LENGTH(s)", "Number of code points.", fixed("CHAR_LENGTH", tInt.NotNull(), 0, charLength, pString),
		Example{"CHAR_LENGTH('日本語')", "3"})
	charLength.Aliases = []string{"CHARACTER_LENGTH"}
	typeOf := str("TYPEOF", "TYPEOF(x)", "The SQL type of the argument as text.", bindTypeOf, Example{"TYPEOF('abc')", "CHAR(3) NOT NULL"}, Example{"TYPEOF(1.50)", "DECIMAL(3, 2) NOT NULL"})
	typeOf.Nulls, typeOf.Category = NullCalled, CatConditional
	return []*Function{
		concatOp,
		str("CONCAT", "CONCAT(a, b, ...)", "The strings joined; NULL if one is NULL.", bindConcat("CONCAT", 1, -1),
			Example{"CONCAT('AA', 'BB', 'CC')", "AABBCC"}, Example{"CONCAT('a', NULL, 'b')", "NULL"}),
		concatWS, charLength,
		str("UPPER", "UPPER(s)", "Upper case, also of letters outside ASCII.", fixed("UPPER", notNullString, 0, each(upper), pString), Example{"UPPER('aé1')", "AÉ1"}),
		str("LOWER", "LOWER(s)", "Lower case, also of letters outside ASCII; Σ at the end of a word becomes ς.", fixed("LOWER", notNullString, 0, each(lower), pString), Example{"LOWER('AÉ1')", "aé1"}),
		str("INITCAP", "INITCAP(s)", "Each word with a capital first letter and the rest in lower case; words are letters and digits.",
			fixed("INITCAP", notNullString, 0, each(initcap), pString), Example{"INITCAP('hello wORLD-x')", "Hello World-X"}),
		trimFn("TRIM", "both ends", true, true, Example{"TRIM('  a b ')", "a b"}, Example{"TRIM('xxaxx', 'x')", "a"}),
		trimFn("LTRIM", "the start", true, false, Example{"LTRIM('  a ')", "a "}, Example{"LTRIM('xxax', 'x')", "ax"}),
		trimFn("RTRIM", "the end", false, true, Example{"RTRIM(' a  ')", " a"}, Example{"RTRIM('axx', 'x')", "a"}),
		substringFn(),
		str("LEFT", "LEFT(s, n)", "The first n code points; empty for negative n.", fixed("LEFT", notNullString, 0, leftRight(true), pString, pInt), Example{"LEFT('日本語', 2)", "日本"}, Example{"LEFT('abc', -1)", ""}),
		str("RIGHT", "RIGHT(s, n)", "The last n code points; empty for negative n.", fixed("RIGHT", notNullString, 0, leftRight(false), pString, pInt), Example{"RIGHT('abc', 2)", "bc"}, Example{"RIGHT('abc', -1)", ""}),
		str("REPLACE", "REPLACE(s, from, to)", "Every occurrence of from replaced by to. An empty from is found before each character and at the end.", fixed("REPLACE", notNullString, 0, replace, pString, pString, pString),
			Example{"REPLACE('hello world', 'world', 'flink')", "hello flink"}, Example{"REPLACE('ababab', 'abab', 'z')", "zab"}),
		str("POSITION", "POSITION(part IN s)", "Position of the first occurrence of part in s, counted from 1 in code points; 0 if there is none.",
			fixed("POSITION", tInt.NotNull(), 0, locate(0, 1), pString, pString), Example{"POSITION('本', '日本語')", "2"}, Example{"POSITION('x', 'abc')", "0"}),
		str("INSTR", "INSTR(s, part)", "Position of the first occurrence of part in s, counted from 1; 0 if there is none.", fixed("INSTR", tInt.NotNull(), 0, locate(1, 0), pString, pString), Example{"INSTR('abcabc', 'bc')", "2"}),
		str("LOCATE", "LOCATE(part, s [, start])", "Position of the first occurrence of part in s at or after start, counted from 1; 0 if there is none. A start before 1 is 1. Nothing, as a part, stands at 1.",
			fixed("LOCATE", tInt.NotNull(), 1, locate(0, 1), pString, pString, pInt), Example{"LOCATE('bc', 'abcabc')", "2"}, Example{"LOCATE('bc', 'abcabc', 3)", "5"}),
		pad("LPAD", true, Example{"LPAD('hi', 4, '??')", "??hi"}, Example{"LPAD('hi', 1, '??')", "h"}),
		pad("RPAD", false, Example{"RPAD('hi', 5, 'xy')", "hixyx"}, Example{"RPAD('hi', -1, 'x')", "NULL"}),
		str("REPEAT", "REPEAT(s, n)", "s n times; empty for n <= 0. More than 16 MiB is an error.", fixed("REPEAT", notNullString, 0, repeat, pString, pInt), Example{"REPEAT('ab', 3)", "ababab"}, Example{"REPEAT('ab', 100000000)", "error:value_too_large"}),
		str("REVERSE", "REVERSE(s)", "The code points in reverse order.", fixed("REVERSE", notNullString, 0, each(reverse), pString), Example{"REVERSE('日本')", "本日"}),
		str("SPLIT_INDEX", "SPLIT_INDEX(s, sep, n)", "Part number n, counted from 0, of s split at each sep; NULL if there is none.", fixed("SPLIT_INDEX", tString, 0, splitIndex, pString, pString, pInt),
			Example{"SPLIT_INDEX('a,b,c', ',', 1)", "b"}, Example{"SPLIT_INDEX('a,b', ',', 5)", "NULL"}, Example{"SPLIT_INDEX('a,b', ',', -1)", "NULL"}),
		str("CHR", "CHR(n)", "The character with code n modulo 256; empty for negative n.", fixed("CHR", notNullString, 0, chr, pInt), Example{"CHR(97)", "a"}, Example{"CHR(353)", "a"}),
		typeOf,
	}
}

func bindConcat(name string, lo, hi int) func([]Arg) (Bound, error) {
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			out.BeginBytes(int(i))
			for _, a := range args {
				out.Data = append(out.Data, text(a, i)...)
			}
			out.EndBytes()
		}
	}
	return func(args []Arg) (Bound, error) {
		if err := count(name, args, lo, hi); err != nil {
			return Bound{}, err
		}
		ps := make([]param, len(args))
		return bindFixed(name, args, notNullString, 0, k, ps)
	}
}

func bindConcatWS(args []Arg) (Bound, error) {
	if err := count("CONCAT_WS", args, 2, -1); err != nil {
		return Bound{}, err
	}
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			if null(args[0], i) {
				out.NullRow(int(i))
				continue
			}
			out.BeginBytes(int(i))
			first := true
			for _, a := range args[1:] {
				if null(a, i) {
					continue
				}
				if !first {
					out.Data = append(out.Data, text(args[0], i)...)
				}
				out.Data = append(out.Data, text(a, i)...)
				first = false
			}
			out.EndBytes()
		}
	}
	b, err := bindFixed("CONCAT_WS", args, notNullString, 0, k, make([]param, len(args)))
	b.Return.Nullable = args[0].Type.Nullable || args[0].Type.Kind == types.Null
	return b, err
}

func charLength(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		out.I32[i] = int32(utf8.RuneCount(text(args[0], i)))
	}
}

func reverse(dst, s []byte) []byte {
	for len(s) > 0 {
		_, n := utf8.DecodeLastRune(s)
		dst = append(dst, s[len(s)-n:]...)
		s = s[:len(s)-n]
	}
	return dst
}

func trimFn(name, where string, left, right bool, ex ...Example) *Function {
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			s := text(args[0], i)
			chars := []byte(" ")
			if len(args) > 1 {
				chars = text(args[1], i)
			}
			for left && len(s) > 0 {
				_, n := utf8.DecodeRune(s)
				if !bytes.Contains(chars, s[:n]) {
					break
				}
				s = s[n:]
			}
			for right && len(s) > 0 {
				_, n := utf8.DecodeLastRune(s)
				if !bytes.Contains(chars, s[len(s)-n:]) {
					break
				}
				s = s[:len(s)-n]
			}
			out.PutBytes(int(i), s)
		}
	}
	f := str(name, name+"(s [, chars])", "s without the blanks (or the characters of chars) at "+where+".", fixed(name, notNullString, 1, k, pString, pString), ex...)
	if name == "TRIM" {
		f.Syntax = append(f.Syntax, "TRIM([BOTH | LEADING | TRAILING] chars FROM s)")
	}
	return f
}

func replace(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		s, from, to := text(args[0], i), text(args[1], i), text(args[2], i)
		out.BeginBytes(int(i))
		if len(from) == 0 {
			for len(s) > 0 {
				_, n := utf8.DecodeRune(s)
				out.Data = append(append(out.Data, to...), s[:n]...)
				s = s[n:]
			}
			out.Data = append(out.Data, to...)
			out.EndBytes()
			continue
		}
		for {
			k := bytes.Index(s, from)
			if k < 0 {
				break
			}
			out.Data = append(append(out.Data, s[:k]...), to...)
			s = s[k+len(from):]
		}
		out.Data = append(out.Data, s...)
		out.EndBytes()
	}
}

// locate finds argument part in argument in.
func locate(part, in int) Kernel {
	return func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			s, p := text(args[in], i), text(args[part], i)
			start := int64(1)
			if len(args) > 2 {
				start = max(args[2].Int64(int(i)), 1)
			}
			out.I32[i] = 0
			if len(p) == 0 {
				out.I32[i] = 1
				continue
			}
			if start > int64(utf8.RuneCount(s))+1 {
				continue
			}
			from := runeAt(s, start-1)
			if k := bytes.Index(s[from:], p); k >= 0 {
				out.I32[i] = int32(start) + int32(utf8.RuneCount(s[from:from+k]))
			}
		}
	}
}

func pad(name string, left bool, ex ...Example) *Function {
	k := func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			s, n, p := text(args[0], i), args[1].Int64(int(i)), text(args[2], i)
			if n < 0 || len(p) == 0 {
				out.NullRow(int(i))
				continue
			}
			if n > maxText || n > maxText/int64(len(p)) || len(out.Data) > maxColumn {
				ctx.Fail(out, i, batch.CodeTooLarge, "%s to %d characters is more than 16 MiB", name, n)
				continue
			}
			have := int64(utf8.RuneCount(s))
			out.BeginBytes(int(i))
			if have >= n {
				out.Data = append(out.Data, s[:runeAt(s, n)]...)
			} else {
				if !left {
					out.Data = append(out.Data, s...)
				}
				need, per := n-have, int64(utf8.RuneCount(p))
				for ; need >= per; need -= per {
					out.Data = append(out.Data, p...)
				}
				out.Data = append(out.Data, p[:runeAt(p, need)]...)
				if left {
					out.Data = append(out.Data, s...)
				}
			}
			out.EndBytes()
		}
	}
	end := "right"
	if left {
		end = "left"
	}
	return str(name, name+"(s, n, p)", "s brought to n code points, filled with p on the "+end+", or cut on the right. NULL if n is negative or p is empty. More than 16 MiB is an error.",
		fixed(name, tString, 0, k, pString, pInt, pString), ex...)
}

func repeat(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		s, n := text(args[0], i), args[1].Int64(int(i))
		if n > 0 && len(s) > 0 && n > maxText/int64(len(s)) || len(out.Data) > maxColumn {
			ctx.Fail(out, i, batch.CodeTooLarge, "REPEAT %d times is more than 16 MiB", n)
			continue
		}
		out.BeginBytes(int(i))
		if len(s) > 0 {
			for ; n > 0; n-- {
				out.Data = append(out.Data, s...)
			}
		}
		out.EndBytes()
	}
}

func splitIndex(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		s, sep, n := text(args[0], i), text(args[1], i), args[2].Int64(int(i))
		found := n >= 0 && len(s) > 0
		for ; found && n > 0; n-- {
			k, w := cutAt(s, sep)
			if found = k >= 0; found {
				s = s[k+w:]
			}
		}
		if !found {
			out.NullRow(int(i))
			continue
		}
		if k, _ := cutAt(s, sep); k >= 0 {
			s = s[:k]
		}
		out.PutBytes(int(i), s)
	}
}

// cutAt finds the next separator; an empty one means white space, as in Flink.
func cutAt(s, sep []byte) (at, width int) {
	if len(sep) == 0 {
		return bytes.IndexAny(s, " \t\n\r\f\v"), 1
	}
	return bytes.Index(s, sep), len(sep)
}

func chr(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		n := args[0].Int64(int(i))
		out.BeginBytes(int(i))
		if n >= 0 {
			out.Data = utf8.AppendRune(out.Data, rune(n&0xff))
		}
		out.EndBytes()
	}
}

func bindTypeOf(args []Arg) (Bound, error) {
	if err := count("TYPEOF", args, 1, 1); err != nil {
		return Bound{}, err
	}
	name := args[0].Type.String()
	t := args[0].Type
	if t.Kind == types.Null {
		t = tBool
	}
	return Bound{Params: []types.Type{t}, Return: notNullString, Kernel: func(_ *Context, _ []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			out.PutString(int(i), name)
		}
	}}, nil
}
