package csvfmt

import "bytes"

// Text of Hive's LazySimpleSerDe with ESCAPED BY, as Hive 2.3 reads it: the
// delimiters are found first, with the escapes in place; NULL is known by its text as it
// stands; then the escapes of texts are resolved, and nothing else has any.

// cut splits an array at the first text between elements that is not escaped.
func (d *Decoder) cut(text []byte) (elem, rest []byte, more bool) {
	if !d.hive {
		return bytes.Cut(text, []byte(d.element))
	}
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == d.escape && i+1 < len(text):
			i++
		case bytes.HasPrefix(text[i:], []byte(d.element)):
			return text[:i], text[i+len(d.element):], true
		}
	}
	return text, nil, false
}

// withoutEscapes is a text as it is meant; it is overwritten with the next one.
func (d *Decoder) withoutEscapes(text []byte) []byte {
	if bytes.IndexByte(text, d.escape) < 0 {
		return text
	}
	d.scratch = d.scratch[:0]
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == d.escape && i+1 < len(text) {
			i++
			switch c = text[i]; c {
			case 'n':
				c = '\n'
			case 'r':
				c = '\r'
			}
		}
		d.scratch = append(d.scratch, c)
	}
	return d.scratch
}
