package fn

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/millrace/millrace/runtime/batch"
)

// pattern is a compiled RE2 pattern.
type pattern struct {
	*regexp.Regexp
	// after matches a character and then, right behind it, the pattern; nil
	// when the pattern does not match the empty text. Go leaves out an empty
	// match that touches the match before it and Java does not; this finds it
	// with its context (\b, ^) intact.
	after *regexp.Regexp
	// landmark is nil when matches need not have a text in common.
	landmark *landmark
}

func newPattern(p string) (*pattern, error) {
	re, err := compileRegexp(p)
	if err != nil {
		return nil, err
	}
	out := &pattern{Regexp: re}
	tree, err := syntax.Parse(p, syntax.Perl)
	if err != nil {
		return nil, err
	}
	out.landmark = newLandmark(tree)
	if mayBeEmpty(tree) {
		out.after, err = compileRegexp(`\A(?s:.)(?:` + tree.String() + `)`)
	}
	return out, err
}

// ruledOut reports that s lacks what every match contains.
func (p *pattern) ruledOut(s []byte) bool {
	return p.landmark != nil && !bytes.Contains(s, p.landmark.text)
}

// matches reports whether the pattern matches a part of s.
func (p *pattern) matches(s []byte) bool {
	re := p.Regexp
	if p.landmark != nil {
		var from int
		var ok bool
		if re, from, ok = p.landmark.enter(re, s); !ok {
			return false
		}
		s = s[from:]
	}
	return re.Match(s)
}

// find gives the group positions of the first match, nil if there is none.
func (p *pattern) find(s []byte) []int {
	if p.landmark == nil {
		return p.FindSubmatchIndex(s)
	}
	re, from, ok := p.landmark.enter(p.Regexp, s)
	if !ok {
		return nil
	}
	loc := re.FindSubmatchIndex(s[from:])
	for i := range loc {
		if loc[i] >= 0 {
			loc[i] += from
		}
	}
	return loc
}

// mayBeEmpty reports whether a pattern can match no text at all.
func mayBeEmpty(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune) == 0
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpNoMatch:
		return false
	case syntax.OpCapture, syntax.OpPlus:
		return mayBeEmpty(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min == 0 || mayBeEmpty(re.Sub[0])
	case syntax.OpConcat:
		for _, s := range re.Sub {
			if !mayBeEmpty(s) {
				return false
			}
		}
		return true
	case syntax.OpAlternate:
		for _, s := range re.Sub {
			if mayBeEmpty(s) {
				return true
			}
		}
		return false
	}
	// *, ?, and what matches a place: ^ $ \b.
	return true
}

// eachMatch calls f with the group positions of each match, in the order and
// number of java.util.regex.Matcher.find.
func (p *pattern) eachMatch(s []byte, f func(loc []int)) {
	if p.ruledOut(s) {
		return
	}
	all := p.FindAllSubmatchIndex(s, -1)
	for k, loc := range all {
		f(loc)
		if p.after == nil || loc[0] == loc[1] || k+1 < len(all) && all[k+1][0] == loc[1] {
			continue
		}
		_, w := utf8.DecodeLastRune(s[:loc[1]])
		base := loc[1] - w
		if next := p.after.FindSubmatchIndex(s[base:]); next != nil && next[1] == w {
			for g := range next {
				if next[g] >= 0 {
					next[g] += base
				}
			}
			next[0] = loc[1]
			f(next)
		}
	}
}

func regexpCount(_ *Context, re *pattern, args []*batch.Vec, i int32, out *batch.Vec) {
	n := int32(0)
	re.eachMatch(text(args[0], i), func([]int) { n++ })
	out.I32[i] = n
}

func regexpInstr(_ *Context, re *pattern, args []*batch.Vec, i int32, out *batch.Vec) {
	s := text(args[0], i)
	out.I32[i] = 0
	if loc := re.find(s); loc != nil {
		out.I32[i] = int32(utf8.RuneCount(s[:loc[0]])) + 1
	}
}

func regexpExtractAll(_ *Context, re *pattern, args []*batch.Vec, i int32, out *batch.Vec) {
	group := int64(1)
	if len(args) > 2 {
		group = args[2].Int64(int(i))
	}
	if group < 0 || group > int64(re.NumSubexp()) {
		out.NullRow(int(i))
		return
	}
	s := text(args[0], i)
	parts := out.Children[0]
	out.BeginList(int(i))
	re.eachMatch(s, func(loc []int) {
		if from := loc[2*group]; from >= 0 {
			parts.Grow(1)
			parts.PutBytes(parts.Len-1, s[from:loc[2*group+1]])
		} else {
			parts.AppendNull()
		}
	})
	closeList(out)
}
