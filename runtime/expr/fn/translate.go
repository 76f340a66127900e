package fn

import (
	"bytes"
	"unicode/utf8"

	"github.com/millrace/millrace/runtime/batch"
)

func translate() *Function {
	f := str("TRANSLATE", "TRANSLATE(s, from, to)", "s with each character of from replaced by the one at its place in to, or left out where to is shorter. Of a character that from has twice the first counts. A NULL from replaces nothing, a NULL to is empty.",
		func(args []Arg) (Bound, error) {
			b, err := bindFixed("TRANSLATE", args, notNullString, 0, translateKernel, []param{pString, pString, pString})
			if err == nil {
				b.Return.Nullable = anyNullable(args[:1])
			}
			return b, err
		}, Example{"TRANSLATE('abcba', 'ab', 'xy')", "xycyx"}, Example{"TRANSLATE('abc', 'abc', 'x')", "x"})
	f.Nulls = NullCalled
	return f
}

// runeMap says what becomes of characters, -1 for those that go. It is kept from
// row to row while from and to are the same.
type runeMap struct {
	from, to []byte
	ascii    [utf8.RuneSelf]rune
	rest     map[rune]rune
}

func (m *runeMap) set(from, to []byte) {
	if m.rest != nil && bytes.Equal(m.from, from) && bytes.Equal(m.to, to) {
		return
	}
	m.from, m.to = append(m.from[:0], from...), append(m.to[:0], to...)
	m.rest = map[rune]rune{}
	for r := range m.ascii {
		m.ascii[r] = rune(r)
	}
	seen := map[rune]bool{}
	for len(from) > 0 {
		r, n := utf8.DecodeRune(from)
		x, k := utf8.DecodeRune(to)
		if k == 0 {
			x = -1
		}
		from, to = from[n:], to[k:]
		switch {
		case seen[r]:
		case r < utf8.RuneSelf:
			m.ascii[r] = x
		default:
			m.rest[r] = x
		}
		seen[r] = true
	}
}

func translateKernel(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	var m runeMap
	for _, i := range sel {
		if null(args[0], i) {
			out.NullRow(int(i))
			continue
		}
		var from, to []byte
		if !null(args[1], i) {
			from = text(args[1], i)
		}
		if !null(args[2], i) {
			to = text(args[2], i)
		}
		m.set(from, to)
		out.BeginBytes(int(i))
		for s := text(args[0], i); len(s) > 0; {
			r, n := utf8.DecodeRune(s)
			x := r
			if r < utf8.RuneSelf {
				x = m.ascii[r]
			} else if y, ok := m.rest[r]; ok {
				x = y
			}
			switch {
			case x == r:
				out.Data = append(out.Data, s[:n]...)
			case x >= 0:
				out.Data = utf8.AppendRune(out.Data, x)
			}
			s = s[n:]
		}
		out.EndBytes()
	}
}
