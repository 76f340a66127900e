package infer

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// value is a JSON value of a text that was checked before.
type value struct {
	kind   byte   // '{' '[' '"' '0' 't' 'n'
	text   []byte // strings unescaped, numbers as written
	keys   []string
	fields map[string]*value // the last one of each key
	elems  []*value
}

// parser reads checked text; it need not look for faults.
type parser struct {
	b []byte
	p int
}

// rows are the objects of a record.
func rows(b []byte) (out []*value) {
	ps := &parser{b: bytes.TrimPrefix(b, []byte("\ufeff"))}
	for ps.space() < len(ps.b) {
		v := ps.value()
		if v.kind == '[' {
			return v.elems
		}
		out = append(out, v)
	}
	return out
}

func (s *parser) space() int {
	for s.p < len(s.b) && (s.b[s.p] == ' ' || s.b[s.p] == '\t' || s.b[s.p] == '\n' || s.b[s.p] == '\r') {
		s.p++
	}
	return s.p
}

// next skips white space and takes one byte.
func (s *parser) next() byte {
	s.space()
	s.p++
	return s.b[s.p-1]
}

func (s *parser) value() *value {
	switch c := s.b[s.space()]; c {
	case '{':
		return s.object()
	case '[':
		return s.array()
	case '"':
		s.p++
		return &value{kind: '"', text: s.str()}
	case 't', 'f':
		s.p += len("true")
		if c == 'f' {
			s.p++
		}
		return &value{kind: 't'}
	case 'n':
		s.p += len("null")
		return &value{kind: 'n'}
	}
	start := s.p
	for s.p < len(s.b) && bytes.IndexByte([]byte("+-.eE0123456789"), s.b[s.p]) >= 0 {
		s.p++
	}
	return &value{kind: '0', text: s.b[start:s.p]}
}

func (s *parser) object() *value {
	v := &value{kind: '{', fields: map[string]*value{}}
	s.p++
	if s.b[s.space()] == '}' {
		s.p++
		return v
	}
	for {
		s.next()
		key := string(s.str())
		s.next()
		if _, again := v.fields[key]; !again {
			v.keys = append(v.keys, key)
		}
		v.fields[key] = s.value()
		if s.next() == '}' {
			return v
		}
	}
}

func (s *parser) array() *value {
	v := &value{kind: '['}
	s.p++
	if s.b[s.space()] == ']' {
		s.p++
		return v
	}
	for {
		v.elems = append(v.elems, s.value())
		if s.next() == ']' {
			return v
		}
	}
}

// str reads a string from behind its quote. Halves of surrogate pairs become
// U+FFFD; such a string is a value error for the decoder whatever its type.
func (s *parser) str() []byte {
	end := s.p
	for s.b[end] != '"' {
		if s.b[end] == '\\' {
			end++
		}
		end++
	}
	raw := s.b[s.p:end]
	s.p = end + 1
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	var out []byte
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		if k := bytes.IndexByte([]byte("bfnrt"), raw[i]); k >= 0 {
			out = append(out, "\b\f\n\r\t"[k])
		} else if raw[i] != 'u' {
			out = append(out, raw[i])
		} else {
			r := hex4(raw[i+1:])
			i += 4
			if utf16.IsSurrogate(r) && i+6 < len(raw) && raw[i+1] == '\\' && raw[i+2] == 'u' {
				if pair := utf16.DecodeRune(r, hex4(raw[i+3:])); pair != utf8.RuneError {
					r = pair
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

func hex4(b []byte) (r rune) {
	for _, c := range b[:4] {
		r = r<<4 | rune(bytes.IndexByte([]byte("0123456789abcdef"), c|0x20))
		if c <= '9' {
			r = r&^15 | rune(c-'0')
		}
	}
	return r
}
