package fn

import (
	"unicode/utf8"

	"github.com/millrace/millrace/runtime/batch"
)

// runeAt is the byte position of code point n, len(s) beyond the end.
func runeAt(s []byte, n int64) int {
	k := 0
	for ; n > 0 && k < len(s); n-- {
		if s[k] < utf8.RuneSelf {
			k++
			continue
		}
		_, w := utf8.DecodeRune(s[k:])
		k += w
	}
	return k
}

func substringFn() *Function {
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			s := text(args[0], i)
			pos, n := args[1].Int64(int(i)), int64(len(s))
			if len(args) > 2 {
				if n = args[2].Int64(int(i)); n < 0 {
					out.NullRow(int(i))
					continue
				}
			}
			switch {
			case pos > 0:
				s = s[runeAt(s, pos-1):]
			case pos < 0:
				if count := int64(utf8.RuneCount(s)); -pos > count {
					s = nil
				} else {
					s = s[runeAt(s, count+pos):]
				}
			}
			out.PutBytes(int(i), s[:runeAt(s, n)])
		}
	}
	f := str("SUBSTRING", "SUBSTRING(s, start [, length])", "Code points from start, counted from 1 (0 means 1, negative counts from the end), to the end or as many as length. Empty if start lies outside; NULL if length is negative.",
		func(args []Arg) (Bound, error) {
			ret := notNullString
			if len(args) > 2 {
				ret = tString
			}
			return bindFixed("SUBSTRING", args, ret, 1, k, []param{pString, pInt, pInt})
		},
		Example{"SUBSTRING('ABC', 0)", "ABC"}, Example{"SUBSTRING('ABC', -2, 2)", "BC"}, Example{"SUBSTRING('ABC', 2, 100)", "BC"},
		Example{"SUBSTRING('ABC', 1, -1)", "NULL"}, Example{"SUBSTRING('ABC', 9)", ""}, Example{"SUBSTRING('日本語', 2, 1)", "本"})
	f.Aliases = []string{"SUBSTR"}
	f.Syntax = append(f.Syntax, "SUBSTRING(s FROM start [FOR length])")
	return f
}

func leftRight(left bool) Kernel {
	return func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			s, n := text(args[0], i), args[1].Int64(int(i))
			switch {
			case n <= 0:
				s = nil
			case left:
				s = s[:runeAt(s, n)]
			default:
				if c := int64(utf8.RuneCount(s)); n < c {
					s = s[runeAt(s, c-n):]
				}
			}
			out.PutBytes(int(i), s)
		}
	}
}
