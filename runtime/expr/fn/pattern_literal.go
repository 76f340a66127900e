package fn

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

// landmark is a text that every match of a pattern contains. Looking for it is many
// times faster than the pattern: a row without it does not match, and a row with it
// is read from a little before it.
type landmark struct {
	text []byte
	// before is how many bytes of a match can lie in front of the text; unbounded if
	// there is no limit.
	before int
	// inside is the pattern for a row whose start is cut off: ^ matches nowhere. Nil
	// when the pattern looks at what stands in front of a match otherwise (\b).
	inside *regexp.Regexp
}

const unbounded = -1

// newLandmark finds the longest text among the parts of a pattern that follow one
// another; nil when there is none.
func newLandmark(tree *syntax.Regexp) *landmark {
	var m landmark
	before := 0
	walkParts(tree, func(part *syntax.Regexp) {
		if part.Op == syntax.OpLiteral && part.Flags&syntax.FoldCase == 0 && len(string(part.Rune)) > len(m.text) && !broken(part.Rune) {
			m.text, m.before = []byte(string(part.Rune)), before
		}
		before = addWidths(before, maxWidth(part))
	})
	if m.text == nil {
		return nil
	}
	if m.before != unbounded && !looksBehind(tree) {
		m.inside, _ = regexp.Compile(withoutStart(tree).String())
	}
	return &m
}

// enter says from where s has to be read, and by which pattern; ok is false when it
// does not match.
func (m *landmark) enter(re *regexp.Regexp, s []byte) (_ *regexp.Regexp, from int, ok bool) {
	at := bytes.Index(s, m.text)
	if at < 0 || m.inside == nil || at <= m.before {
		return re, 0, at >= 0
	}
	// No match begins earlier: it would hold an earlier text.
	for from = at - m.before; from > 0 && !utf8.RuneStart(s[from]); from-- {
	}
	if from == 0 {
		return re, 0, true
	}
	return m.inside, from, true
}

// walkParts visits the parts that every match has, in their order.
func walkParts(re *syntax.Regexp, visit func(*syntax.Regexp)) {
	switch re.Op {
	case syntax.OpConcat, syntax.OpCapture:
		for _, s := range re.Sub {
			walkParts(s, visit)
		}
	default:
		visit(re)
	}
}

// broken reports whether a text holds the character that stands for bytes which are
// no UTF-8: a pattern takes any of those for it.
func broken(text []rune) bool {
	for _, r := range text {
		if r == utf8.RuneError {
			return true
		}
	}
	return false
}

// maxWidth is how many bytes a match of re has at most, or unbounded.
func maxWidth(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		// Other cases of a letter may be longer.
		return utf8.UTFMax * len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return utf8.UTFMax
	case syntax.OpStar, syntax.OpPlus:
		return unbounded
	case syntax.OpRepeat:
		w := maxWidth(re.Sub[0])
		if re.Max < 0 || w == unbounded {
			return unbounded
		}
		return re.Max * w
	case syntax.OpAlternate:
		most := 0
		for _, s := range re.Sub {
			w := maxWidth(s)
			if w == unbounded {
				return unbounded
			}
			most = max(most, w)
		}
		return most
	}
	// Concatenations, groups and ? have the width of their parts; places have none.
	sum := 0
	for _, s := range re.Sub {
		sum = addWidths(sum, maxWidth(s))
	}
	return sum
}

func addWidths(a, b int) int {
	if a == unbounded || b == unbounded {
		return unbounded
	}
	return a + b
}

// looksBehind reports whether a pattern looks at the character in front of a place.
func looksBehind(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	for _, s := range re.Sub {
		if looksBehind(s) {
			return true
		}
	}
	return false
}

// withoutStart is a copy of a pattern in which the start of the text is nowhere.
func withoutStart(re *syntax.Regexp) *syntax.Regexp {
	if re.Op == syntax.OpBeginText {
		return &syntax.Regexp{Op: syntax.OpNoMatch}
	}
	out := *re
	out.Sub = make([]*syntax.Regexp, len(re.Sub))
	for i, s := range re.Sub {
		out.Sub[i] = withoutStart(s)
	}
	return &out
}
