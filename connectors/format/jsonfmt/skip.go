package jsonfmt

// maxDepth is how many objects and arrays may lie within each other.
const maxDepth = 1000

// Scanning functions take a text and the position to begin at. They return the
// position behind what they recognised, or ^pos where pos is the first byte
// that cannot stand there (len(b): the text ends too early). The reason is
// found afterwards, by describe.

// class of bytes that are looked up in the hot loops.
const (
	classSpace  = 1 << iota // space, tab, newline, carriage return
	classEscape             // may follow a backslash, but for u
	classHex
)

var class = [256]uint8{
	' ': classSpace, '\t': classSpace, '\n': classSpace, '\r': classSpace,
	'"': classEscape, '\\': classEscape, '/': classEscape, 'b': classEscape | classHex, 'f': classEscape | classHex,
	'n': classEscape, 'r': classEscape, 't': classEscape,
	'0': classHex, '1': classHex, '2': classHex, '3': classHex, '4': classHex, '5': classHex, '6': classHex,
	'7': classHex, '8': classHex, '9': classHex,
	'a': classHex, 'c': classHex, 'd': classHex, 'e': classHex,
	'A': classHex, 'B': classHex, 'C': classHex, 'D': classHex, 'E': classHex, 'F': classHex,
}

func skipSpace(b []byte, p int) int {
	for p < len(b) && class[b[p]]&classSpace != 0 {
		p++
	}
	return p
}

// scanString checks a string from behind its opening quote and returns the
// position of the closing one. plain: no escape is in it.
func (x *index) scanString(b []byte, p int) (end int, plain bool) {
	if n := near(x.words, p); n < nearLimit && p+n < len(b) && b[p+n] == '"' {
		return p + n, true
	}
	return x.scanStringSlow(b, x.next(p))
}

// scanStringSlow goes on at a set bit that is no quote.
//
//go:noinline
func (x *index) scanStringSlow(b []byte, p int) (end int, plain bool) {
	plain = true
	for p < len(b) {
		switch b[p] {
		case '"':
			return p, plain
		case '\\':
			plain = false
			p = scanEscape(b, p)
		default:
			p = scanRunes(b, p)
		}
		if p < 0 {
			return p, false
		}
		p = x.next(p)
	}
	return ^len(b), false
}

// scanEscape checks the escape sequence at p. That \u escapes make whole
// surrogate pairs is no matter of syntax; see unescape.
func scanEscape(b []byte, p int) int {
	if p+1 >= len(b) {
		return ^len(b)
	}
	if class[b[p+1]]&classEscape != 0 {
		return p + 2
	}
	if b[p+1] != 'u' {
		return ^p
	}
	for i := p + 2; i < p+6; i++ {
		if i >= len(b) {
			return ^len(b)
		}
		if class[b[i]]&classHex == 0 {
			return ^p
		}
	}
	return p + 6
}

// scanRunes checks the UTF-8 sequences from p on, up to the next ASCII byte.
func scanRunes(b []byte, p int) int {
	for p < len(b) {
		c := b[p]
		if c < 0x80 {
			return p
		}
		lo, hi, n := byte(0x80), byte(0xbf), 2
		switch {
		case c >= 0xe1 && c <= 0xef && c != 0xed:
			n = 3
		case c >= 0xc2 && c <= 0xdf:
		case c == 0xe0:
			lo, n = 0xa0, 3
		case c == 0xed: // surrogates
			hi, n = 0x9f, 3
		case c == 0xf0:
			lo, n = 0x90, 4
		case c >= 0xf1 && c <= 0xf3:
			n = 4
		case c == 0xf4:
			hi, n = 0x8f, 4
		default:
			return ^p
		}
		if p+n > len(b) || b[p+1] < lo || b[p+1] > hi {
			return ^p
		}
		if n > 2 && b[p+2]&0xc0 != 0x80 || n > 3 && b[p+3]&0xc0 != 0x80 {
			return ^p
		}
		p += n
	}
	return p
}

// scanNumber checks a number. integer: it has neither fraction nor exponent.
func scanNumber(b []byte, p int) (end int, integer bool) {
	if p < len(b) && b[p] == '-' {
		p++
	}
	if p >= len(b) {
		return ^p, false
	}
	if b[p] == '0' {
		p++
	} else {
		start := p
		for p < len(b) && b[p]-'0' <= 9 {
			p++
		}
		if p == start {
			return ^p, false
		}
	}
	if p >= len(b) || b[p] != '.' && b[p]|0x20 != 'e' {
		return p, true
	}
	if b[p] == '.' {
		p++
		start := p
		for p < len(b) && b[p]-'0' <= 9 {
			p++
		}
		if p == start {
			return ^p, false
		}
	}
	if p < len(b) && b[p]|0x20 == 'e' {
		p++
		if p < len(b) && (b[p] == '+' || b[p] == '-') {
			p++
		}
		start := p
		for p < len(b) && b[p]-'0' <= 9 {
			p++
		}
		if p == start {
			return ^p, false
		}
	}
	return p, false
}

// scanLiteral checks true, false or null.
func scanLiteral(b []byte, p int, word string) int {
	for i := 0; i < len(word); i++ {
		if p+i >= len(b) || b[p+i] != word[i] {
			return ^(p + i)
		}
	}
	return p + len(word)
}

// skipper checks values that nobody needs. Objects and arrays are walked
// without recursion: the stack of what is open is one bit a level.
type skipper struct {
	index
	arrays  [maxDepth/64 + 1]uint64
	tooDeep bool
}

// skip checks the value at p, which lies within depth objects and arrays.
func (s *skipper) skip(b []byte, p, depth int) int {
	var (
		base    = depth
		words   = s.words
		inArray bool
	)
value:
	if p >= len(b) {
		return ^p
	}
	switch b[p] {
	case '"':
		if n := near(words, p+1); n < nearLimit && p+1+n < len(b) && b[p+1+n] == '"' {
			p += n + 2
		} else if p, _ = s.scanStringSlow(b, s.next(p+1)); p < 0 {
			return p
		} else {
			p++
		}
	case '{':
		if depth++; depth > maxDepth {
			s.tooDeep = true
			return ^p
		}
		s.arrays[depth>>6] &^= 1 << (depth & 63)
		inArray = false
		p++
		if p < len(b) && b[p] <= ' ' {
			p = skipSpace(b, p)
		}
		if p < len(b) && b[p] == '}' {
			goto closing
		}
		goto key
	case '[':
		if depth++; depth > maxDepth {
			s.tooDeep = true
			return ^p
		}
		s.arrays[depth>>6] |= 1 << (depth & 63)
		inArray = true
		p++
		if p < len(b) && b[p] <= ' ' {
			p = skipSpace(b, p)
		}
		if p < len(b) && b[p] == ']' {
			goto closing
		}
		goto value
	case 't':
		if p = scanLiteral(b, p, "true"); p < 0 {
			return p
		}
	case 'f':
		if p = scanLiteral(b, p, "false"); p < 0 {
			return p
		}
	case 'n':
		if p = scanLiteral(b, p, "null"); p < 0 {
			return p
		}
	default:
		if p, _ = scanNumber(b, p); p < 0 {
			return p
		}
	}
after:
	if depth == base {
		return p
	}
	if p < len(b) && b[p] <= ' ' {
		p = skipSpace(b, p)
	}
	if p >= len(b) {
		return ^p
	}
	switch c := b[p]; {
	case c == ',':
		p++
		if p < len(b) && b[p] <= ' ' {
			p = skipSpace(b, p)
		}
		if inArray {
			goto value
		}
	case c == '}' && !inArray || c == ']' && inArray:
		goto closing
	default:
		return ^p
	}
key:
	// The most frequent thing by far in one go: a short key and a short string
	// without white space, and another key behind it.
	for {
		k := near(words, p+1)
		e := p + 1 + k
		if k >= nearLimit || e+3 >= len(b) || b[p] != '"' || b[e] != '"' || b[e+1] != ':' {
			break
		}
		if p = e + 2; b[p] != '"' {
			p = skipSpace(b, p)
			goto value
		}
		k = near(words, p+1)
		e = p + 1 + k
		if k >= nearLimit || e+2 >= len(b) || b[e] != '"' {
			goto value
		}
		if p = e + 1; b[p] != ',' || b[p+1] != '"' {
			goto after
		}
		p++
	}
	if p >= len(b) || b[p] != '"' {
		return ^p
	}
	if n := near(words, p+1); n < nearLimit && p+1+n < len(b) && b[p+1+n] == '"' {
		p += n + 2
	} else if p, _ = s.scanStringSlow(b, s.next(p+1)); p < 0 {
		return p
	} else {
		p++
	}
	if p < len(b) && b[p] <= ' ' {
		p = skipSpace(b, p)
	}
	if p >= len(b) || b[p] != ':' {
		return ^p
	}
	p++
	if p < len(b) && b[p] <= ' ' {
		p = skipSpace(b, p)
	}
	goto value
closing:
	p++
	depth--
	inArray = s.arrays[depth>>6]&(1<<(depth&63)) != 0
	goto after
}
