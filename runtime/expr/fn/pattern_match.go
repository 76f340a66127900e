package fn

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

func patternFunctions() []*Function {
	like := str("LIKE", "s LIKE pattern [ESCAPE c]", "TRUE if the whole of s matches: % stands for any characters, _ for one. The ESCAPE character before %, _ or itself takes it literally; without ESCAPE nothing does.",
		bindLike, Example{"'abc' LIKE 'a%'", "TRUE"}, Example{"LIKE('a_c', 'a\\_c')", "FALSE"}, Example{"LIKE('abc', 'a\\_c')", "FALSE"}, Example{"LIKE('10%', '10!%', '!')", "TRUE"}, Example{"'日本' LIKE '_本'", "TRUE"})
	like.Infix, like.Category = true, CatComparison
	return []*Function{
		like, similarTo(),
		str("REGEXP", "REGEXP(s, pattern)", "TRUE if a part of s matches the RE2 pattern; FALSE for an empty pattern.", bindRegexp("REGEXP", tBool.NotNull(), 2, 2, regexpFind),
			Example{"REGEXP('abc', 'b.')", "TRUE"}, Example{"REGEXP('abc', '^b')", "FALSE"}),
		str("REGEXP_EXTRACT", "REGEXP_EXTRACT(s, pattern [, group])", "The part of s that matches the RE2 pattern, or a group of it (0, the whole, when left out); NULL if nothing matches.",
			bindRegexp("REGEXP_EXTRACT", tString, 2, 3, regexpExtract), Example{"REGEXP_EXTRACT('foothebar', 'foo(.*?)(bar)', 2)", "bar"}, Example{"REGEXP_EXTRACT('x', 'y')", "NULL"}),
		str("REGEXP_REPLACE", "REGEXP_REPLACE(s, pattern, replacement)", "Every match of the RE2 pattern replaced. The replacement is taken literally: $1 stands for itself.",
			bindRegexp("REGEXP_REPLACE", notNullString, 3, 3, regexpReplace), Example{"REGEXP_REPLACE('foobar', 'oo|ar', '')", "fb"}, Example{"REGEXP_REPLACE('2024-05', '(\\d+)-(\\d+)', '$2/$1')", "$2/$1"}),
		str("REGEXP_COUNT", "REGEXP_COUNT(s, pattern)", "Number of matches of the RE2 pattern in s that do not overlap.", bindRegexp("REGEXP_COUNT", tInt.NotNull(), 2, 2, regexpCount),
			Example{"REGEXP_COUNT('abc123xyz456', '\\d')", "6"}, Example{"REGEXP_COUNT('abcd', 'z')", "0"}),
		str("REGEXP_INSTR", "REGEXP_INSTR(s, pattern)", "Position of the first match of the RE2 pattern, counted from 1 in code points; 0 if nothing matches.", bindRegexp("REGEXP_INSTR", tInt.NotNull(), 2, 2, regexpInstr),
			Example{"REGEXP_INSTR('a.b.c.d', '\\.')", "2"}, Example{"REGEXP_INSTR('abc', '[0-9]')", "0"}),
		str("REGEXP_SUBSTR", "REGEXP_SUBSTR(s, pattern)", "The first part of s that matches the RE2 pattern; NULL if nothing matches.", bindRegexp("REGEXP_SUBSTR", tString, 2, 2, regexpExtract),
			Example{"REGEXP_SUBSTR('foo42bar7', '[0-9]+')", "42"}, Example{"REGEXP_SUBSTR('foo', '[0-9]')", "NULL"}),
		str("REGEXP_EXTRACT_ALL", "REGEXP_EXTRACT_ALL(s, pattern [, group])", "All parts of s that match the RE2 pattern as an ARRAY: a group of each match (the first when left out, 0 is the whole), NULL where the group takes no part in the match. NULL if the pattern has no such group.",
			bindRegexp("REGEXP_EXTRACT_ALL", types.NewArray(tString), 2, 3, regexpExtractAll), Example{"REGEXP_EXTRACT_ALL('100-200, 300-400', '(\\d+)-(\\d+)')", "[100, 300]"},
			Example{"REGEXP_EXTRACT_ALL('100-200, 300-400', '(\\d+)-(\\d+)', 0)", "[100-200, 300-400]"}),
	}
}

// likeMatcher is a compiled LIKE pattern.
type likeMatcher struct {
	// parts are the literals between %s; nil elements of a part are _.
	parts      [][]rune // -1 is _
	simple     [][]byte // parts as bytes where none holds _
	start, end bool     // a % at the start, at the end
}

var errEscape = errors.New("the escape character must be followed by %, _ or itself")

// compileLike reads a pattern. Only an explicit escape character is one (in Flink
// as here a backslash is a character like others); a stray one is an error.
func compileLike(p []byte, escape rune, explicit bool) (*likeMatcher, error) {
	m := &likeMatcher{}
	cur := []rune{}
	wild := false
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		p = p[n:]
		switch {
		case explicit && r == escape:
			next, w := utf8.DecodeRune(p)
			if len(p) > 0 && (next == '%' || next == '_' || next == escape) {
				cur = append(cur, next)
				p = p[w:]
			} else {
				return nil, errEscape
			}
		case r == '%':
			m.parts = append(m.parts, cur)
			cur = []rune{}
		case r == '_':
			cur = append(cur, -1)
			wild = true
		default:
			cur = append(cur, r)
		}
	}
	m.parts = append(m.parts, cur)
	if !wild {
		for _, part := range m.parts {
			m.simple = append(m.simple, []byte(string(part)))
		}
	}
	return m, nil
}

// match: the first part is a prefix, the last a suffix, those between are
// found greedily from the left.
func (m *likeMatcher) match(s []byte) bool {
	if m.simple != nil {
		first, last := m.simple[0], m.simple[len(m.simple)-1]
		if len(m.simple) == 1 {
			return bytes.Equal(s, first)
		}
		if !bytes.HasPrefix(s, first) {
			return false
		}
		s = s[len(first):]
		for _, part := range m.simple[1 : len(m.simple)-1] {
			k := bytes.Index(s, part)
			if k < 0 {
				return false
			}
			s = s[k+len(part):]
		}
		return bytes.HasSuffix(s, last)
	}
	n := matchRunes(s, m.parts[0])
	if n < 0 {
		return false
	}
	s = s[n:]
	if len(m.parts) == 1 {
		return len(s) == 0
	}
	for _, part := range m.parts[1 : len(m.parts)-1] {
		for {
			if n = matchRunes(s, part); n >= 0 {
				s = s[n:]
				break
			}
			if len(s) == 0 {
				return false
			}
			_, w := utf8.DecodeRune(s)
			s = s[w:]
		}
	}
	last := m.parts[len(m.parts)-1]
	extra := utf8.RuneCount(s) - len(last)
	if extra < 0 {
		return false
	}
	s = s[runeAt(s, int64(extra)):]
	return matchRunes(s, last) == len(s)
}

// matchRunes is the length of the prefix of s that matches, -1 if none does.
func matchRunes(s []byte, part []rune) int {
	k := 0
	for _, p := range part {
		if k == len(s) {
			return -1
		}
		r, w := utf8.DecodeRune(s[k:])
		if p >= 0 && p != r {
			return -1
		}
		k += w
	}
	return k
}

// escapeOf is the character in a row of ESCAPE; not ok is an error of the row.
func escapeOf(ctx *Context, v *batch.Vec, i int32, out *batch.Vec) (_ rune, ok bool) {
	e := text(v, i)
	r, n := utf8.DecodeRune(e)
	if n == 0 || n != len(e) {
		ctx.Fail(out, i, batch.CodeArgument, "ESCAPE %s is not one character", quote(e))
		return 0, false
	}
	return r, true
}

func bindLike(args []Arg) (Bound, error) {
	k := func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		cache := likeCacheOf(ctx)
		for _, i := range sel {
			escape, explicit := '\\', false
			if len(args) > 2 {
				if escape, explicit = escapeOf(ctx, args[2], i, out); !explicit {
					continue
				}
			}
			m, err := cache.of(text(args[1], i), escape, explicit)
			if err != nil {
				ctx.Fail(out, i, batch.CodeArgument, "LIKE %s: %s", quote(text(args[1], i)), err)
				continue
			}
			if m.match(text(args[0], i)) {
				out.Bools.Set(int(i))
			}
		}
	}
	b, err := bindFixed("LIKE", args, tBool.NotNull(), 1, k, []param{pString, pString, pString})
	if err != nil {
		return b, err
	}
	p, literal := args[1].Text()
	esc := `\`
	escLiteral := true
	if len(args) > 2 {
		esc, escLiteral = args[2].Text()
	}
	if !literal || !escLiteral {
		return b, nil
	}
	if utf8.RuneCountInString(esc) != 1 {
		return b, argErrf(2, "ESCAPE %s is not one character", quote(esc))
	}
	r, _ := utf8.DecodeRuneInString(esc)
	m, cerr := compileLike([]byte(p), r, len(args) > 2)
	if cerr != nil {
		return b, argErrf(1, "pattern %s: %s", quote(p), cerr)
	}
	b.Kernel = matching(m.match)
	return b, nil
}

// matching gives whether texts match a pattern that is the same for all rows.
func matching(match func([]byte) bool) Kernel {
	return func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			if match(text(args[0], i)) {
				out.Bools.Set(int(i))
			}
		}
	}
}

// patternCacheSize bounds the patterns kept by one call site; when it is full
// all are forgotten.
const patternCacheSize = 256

type likeCache map[string]*likeMatcher

func likeCacheOf(ctx *Context) likeCache {
	if c, ok := (*ctx.scratch).(likeCache); ok {
		return c
	}
	c := likeCache{}
	*ctx.scratch = c
	return c
}

func (c likeCache) of(p []byte, escape rune, explicit bool) (*likeMatcher, error) {
	key := string(p)
	if explicit {
		key += "\x00" + string(escape)
	}
	if m, ok := c[key]; ok {
		return m, nil
	}
	m, err := compileLike(p, escape, explicit)
	if err == nil {
		if len(c) >= patternCacheSize {
			clear(c)
		}
		c[key] = m
	}
	return m, err
}

// compileRegexp reads an RE2 pattern; its error names the position.
func compileRegexp(p string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(p)
	if err == nil {
		return re, nil
	}
	var se *syntax.Error
	if !errors.As(err, &se) {
		return nil, err
	}
	e := &ArgError{Arg: 1, Offset: max(0, strings.Index(p, se.Expr)), Msg: "pattern: " + se.Error()}
	switch {
	case strings.HasPrefix(se.Expr, "(?=") || strings.HasPrefix(se.Expr, "(?!") || strings.HasPrefix(se.Expr, "(?<"):
		e.Msg = "pattern: RE2 has no look-around: " + se.Expr
	case se.Code == syntax.ErrInvalidEscape && len(se.Expr) == 2 && se.Expr[1] >= '1' && se.Expr[1] <= '9':
		e.Msg = "pattern: RE2 has no back-references: " + se.Expr
	}
	return nil, e
}

// regexpRow computes one row.
type regexpRow func(ctx *Context, re *pattern, args []*batch.Vec, i int32, out *batch.Vec)

func bindRegexp(name string, ret types.Type, lo, hi int, row regexpRow) func([]Arg) (Bound, error) {
	params := []param{pString, pString, pString}
	if name == "REGEXP_EXTRACT" || name == "REGEXP_EXTRACT_ALL" {
		params[2] = pInt
	}
	params = params[:hi]
	return func(args []Arg) (Bound, error) {
		b, err := bindFixed(name, args, ret, hi-lo, nil, params)
		if err != nil {
			return b, err
		}
		if p, ok := args[1].Text(); ok {
			re, cerr := newPattern(p)
			if cerr != nil {
				return b, cerr
			}
			b.Kernel = func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
				for _, i := range sel {
					row(ctx, re, args, i, out)
				}
			}
			return b, nil
		}
		b.Kernel = func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
			cache, ok := (*ctx.scratch).(map[string]*pattern)
			if !ok {
				cache = map[string]*pattern{}
				*ctx.scratch = cache
			}
			for _, i := range sel {
				p := text(args[1], i)
				re := cache[string(p)]
				if re == nil {
					var cerr error
					if re, cerr = newPattern(string(p)); cerr != nil {
						ctx.Fail(out, i, batch.CodeArgument, "%s in %s", cerr, quote(p))
						continue
					}
					if len(cache) >= patternCacheSize {
						clear(cache)
					}
					cache[string(p)] = re
				}
				row(ctx, re, args, i, out)
			}
		}
		return b, nil
	}
}

func regexpFind(_ *Context, re *pattern, args []*batch.Vec, i int32, out *batch.Vec) {
	if len(text(args[1], i)) > 0 && re.matches(text(args[0], i)) {
		out.Bools.Set(int(i))
	}
}

func regexpExtract(_ *Context, re *pattern, args []*batch.Vec, i int32, out *batch.Vec) {
	group := int64(0)
	if len(args) > 2 {
		group = args[2].Int64(int(i))
	}
	s := text(args[0], i)
	if group < 0 || group > int64(re.NumSubexp()) {
		out.NullRow(int(i))
		return
	}
	loc := re.find(s)
	if loc == nil || loc[2*group] < 0 {
		out.NullRow(int(i))
		return
	}
	out.PutBytes(int(i), s[loc[2*group]:loc[2*group+1]])
}

func regexpReplace(_ *Context, re *pattern, args []*batch.Vec, i int32, out *batch.Vec) {
	s := text(args[0], i)
	if !re.ruledOut(s) {
		s = re.ReplaceAllLiteral(s, text(args[2], i))
	}
	out.PutBytes(int(i), s)
}
