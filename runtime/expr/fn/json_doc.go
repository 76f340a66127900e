package fn

import (
	"unicode/utf8"

	"github.com/millrace/millrace/runtime/batch"
)

// jsonKind is the kind of a JSON value.
type jsonKind uint8

const (
	jsonNull jsonKind = iota
	jsonTrue
	jsonFalse
	jsonNumber
	jsonString
	jsonArray
	jsonObject
)

// jsonNode is a value of a parsed document: its span in the text, its first
// child and next sibling (0: none), and for a member the span of its name,
// quotes excluded.
type jsonNode struct {
	kind             jsonKind
	escaped          bool // the string holds a backslash
	keyEscaped       bool
	start, end       int32
	keyStart, keyEnd int32
	child, next      int32
}

const (
	jsonMaxDepth = 1000
	rowUnparsed  = 0
	rowInvalid   = -1
)

// jsonCache holds the parsed documents of one argument column during one
// evaluation, so that any number of paths into it cost one parse a row.
type jsonCache struct {
	vec   *batch.Vec
	nodes []jsonNode // node 0 is unused, so that 0 means none
	roots []int32    // by row
}

// jsonDocs is the cache for a column in the current evaluation.
func (c *Context) jsonDocs(v *batch.Vec) *jsonCache {
	for _, j := range c.json[:c.jsonAt] {
		if j.vec == v {
			return j
		}
	}
	if c.jsonAt == len(c.json) {
		c.json = append(c.json, new(jsonCache))
	}
	j := c.json[c.jsonAt]
	c.jsonAt++
	j.vec = v
	j.nodes = append(j.nodes[:0], jsonNode{})
	n := v.Len
	if v.Enc == batch.Const {
		n = 1
	}
	if cap(j.roots) < n {
		j.roots = make([]int32, n)
	}
	j.roots = j.roots[:n]
	clear(j.roots)
	return j
}

// root is the document of a row; ok is false when the text is no JSON.
func (j *jsonCache) root(i int32) (root int32, ok bool) {
	k := i & mask(j.vec)
	if j.roots[k] == rowUnparsed {
		p := jsonParser{s: text(j.vec, i), nodes: j.nodes}
		n := len(p.nodes)
		if p.document() {
			j.roots[k] = int32(n)
			j.nodes = p.nodes
		} else {
			j.roots[k] = rowInvalid
			j.nodes = p.nodes[:n]
		}
	}
	return j.roots[k], j.roots[k] != rowInvalid
}

// jsonParser reads RFC 8259, to the last byte; control characters in strings
// are taken as they are.
type jsonParser struct {
	s     []byte
	i     int
	nodes []jsonNode
}

func (p *jsonParser) space() {
	for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\n' || p.s[p.i] == '\t' || p.s[p.i] == '\r') {
		p.i++
	}
}

func (p *jsonParser) document() bool {
	p.space()
	if _, ok := p.value(0); !ok {
		return false
	}
	p.space()
	return p.i == len(p.s)
}

func (p *jsonParser) value(depth int) (int32, bool) {
	if p.i == len(p.s) || depth > jsonMaxDepth {
		return 0, false
	}
	id := int32(len(p.nodes))
	p.nodes = append(p.nodes, jsonNode{start: int32(p.i)})
	ok := false
	var kind jsonKind
	switch c := p.s[p.i]; {
	case c == '{':
		kind, ok = jsonObject, p.members(id, depth)
	case c == '[':
		kind, ok = jsonArray, p.elements(id, depth)
	case c == '"':
		kind = jsonString
		var esc bool
		esc, ok = p.str()
		p.nodes[id].escaped = esc
	case c == '-' || c >= '0' && c <= '9':
		kind, ok = jsonNumber, p.number()
	case c == 't':
		kind, ok = jsonTrue, p.word("true")
	case c == 'f':
		kind, ok = jsonFalse, p.word("false")
	case c == 'n':
		kind, ok = jsonNull, p.word("null")
	}
	p.nodes[id].kind, p.nodes[id].end = kind, int32(p.i)
	return id, ok
}

func (p *jsonParser) word(w string) bool {
	if len(p.s)-p.i < len(w) || string(p.s[p.i:p.i+len(w)]) != w {
		return false
	}
	p.i += len(w)
	return true
}

func (p *jsonParser) digits() bool {
	n := p.i
	for p.i < len(p.s) && p.s[p.i] >= '0' && p.s[p.i] <= '9' {
		p.i++
	}
	return p.i > n
}

func (p *jsonParser) number() bool {
	if p.s[p.i] == '-' {
		p.i++
	}
	if p.i < len(p.s) && p.s[p.i] == '0' {
		p.i++
	} else if !p.digits() {
		return false
	}
	if p.i < len(p.s) && p.s[p.i] == '.' {
		p.i++
		if !p.digits() {
			return false
		}
	}
	if p.i < len(p.s) && (p.s[p.i] == 'e' || p.s[p.i] == 'E') {
		p.i++
		if p.i < len(p.s) && (p.s[p.i] == '+' || p.s[p.i] == '-') {
			p.i++
		}
		return p.digits()
	}
	return true
}

// str reads a string and reports whether it holds escapes.
func (p *jsonParser) str() (escaped, ok bool) {
	for p.i++; p.i < len(p.s); p.i++ {
		switch p.s[p.i] {
		case '"':
			p.i++
			return escaped, true
		case '\\':
			escaped = true
			p.i++
			if p.i == len(p.s) {
				return escaped, false
			}
			switch p.s[p.i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if len(p.s)-p.i < 5 {
					return escaped, false
				}
				for k := 1; k <= 4; k++ {
					if hexDigit(p.s[p.i+k]) < 0 {
						return escaped, false
					}
				}
				p.i += 4
			default:
				return escaped, false
			}
		}
	}
	return escaped, false
}

func hexDigit(c byte) rune {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0')
	case c >= 'a' && c <= 'f':
		return rune(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return rune(c-'A') + 10
	}
	return -1
}

func (p *jsonParser) elements(id int32, depth int) bool {
	p.i++
	p.space()
	if p.i < len(p.s) && p.s[p.i] == ']' {
		p.i++
		return true
	}
	last := int32(0)
	for {
		p.space()
		e, ok := p.value(depth + 1)
		if !ok {
			return false
		}
		p.link(id, &last, e)
		p.space()
		if p.i == len(p.s) {
			return false
		}
		p.i++
		switch p.s[p.i-1] {
		case ']':
			return true
		case ',':
		default:
			return false
		}
	}
}

func (p *jsonParser) link(parent int32, last *int32, e int32) {
	if *last == 0 {
		p.nodes[parent].child = e
	} else {
		p.nodes[*last].next = e
	}
	*last = e
}

func (p *jsonParser) members(id int32, depth int) bool {
	p.i++
	p.space()
	if p.i < len(p.s) && p.s[p.i] == '}' {
		p.i++
		return true
	}
	last := int32(0)
	for {
		p.space()
		if p.i == len(p.s) || p.s[p.i] != '"' {
			return false
		}
		from := p.i + 1
		esc, ok := p.str()
		to := p.i - 1
		p.space()
		if !ok || p.i == len(p.s) || p.s[p.i] != ':' {
			return false
		}
		p.i++
		p.space()
		e, ok := p.value(depth + 1)
		if !ok {
			return false
		}
		n := &p.nodes[e]
		n.keyStart, n.keyEnd, n.keyEscaped = int32(from), int32(to), esc
		p.link(id, &last, e)
		p.space()
		if p.i == len(p.s) {
			return false
		}
		p.i++
		switch p.s[p.i-1] {
		case '}':
			return true
		case ',':
		default:
			return false
		}
	}
}

// appendUnescaped appends the text of a string's inside. A lone surrogate
// becomes U+FFFD, so that the result is valid UTF-8.
func appendUnescaped(dst, s []byte) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			dst = append(dst, s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r := unicodeEscape(s[i+1:])
			i += 4
			if r >= 0xd800 && r < 0xdc00 && i+6 < len(s) && s[i+1] == '\\' && s[i+2] == 'u' {
				if low := unicodeEscape(s[i+3:]); low >= 0xdc00 && low < 0xe000 {
					r = 0x10000 + (r-0xd800)<<10 + (low - 0xdc00)
					i += 6
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

func unicodeEscape(s []byte) rune {
	return hexDigit(s[0])<<12 | hexDigit(s[1])<<8 | hexDigit(s[2])<<4 | hexDigit(s[3])
}

// appendCompact appends JSON text without the white space between tokens.
func appendCompact(dst, s []byte) []byte {
	inString := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case inString:
			dst = append(dst, c)
			if c == '\\' {
				i++
				dst = append(dst, s[i])
			} else if c == '"' {
				inString = false
			}
			continue
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			continue
		case c == '"':
			inString = true
		}
		dst = append(dst, c)
	}
	return dst
}
