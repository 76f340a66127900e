package jsonfmt

import "unicode/utf8"

var escaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape appends the content of a checked string. It fails on half of a
// surrogate pair, which no UTF-8 text can hold.
func unescape(dst, raw []byte) ([]byte, bool) {
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' {
			k := i + 1
			for k < len(raw) && raw[k] != '\\' {
				k++
			}
			dst = append(dst, raw[i:k]...)
			i = k
			continue
		}
		if raw[i+1] != 'u' {
			dst = append(dst, escaped[raw[i+1]])
			i += 2
			continue
		}
		r := hex4(raw[i+2:])
		i += 6
		if r >= 0xd800 && r < 0xe000 {
			if r >= 0xdc00 || i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' {
				return dst, false
			}
			low := hex4(raw[i+2:])
			if low < 0xdc00 || low > 0xdfff {
				return dst, false
			}
			r = 0x10000 + (r-0xd800)<<10 + (low - 0xdc00)
			i += 6
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst, true
}

func hex4(b []byte) (r rune) {
	for _, c := range b[:4] {
		switch {
		case c <= '9':
			c -= '0'
		case c <= 'F':
			c -= 'A' - 10
		default:
			c -= 'a' - 10
		}
		r = r<<4 | rune(c)
	}
	return r
}
