package csvfmt

import "github.com/millrace/millrace/connectors/format"

// split finds the end of the first line that is not within quotes.
func (s *settings) split(data []byte, atEOF bool) (advance int, record []byte) {
	quoted, start := false, true
	if s.hive || s.comments && len(data) > 0 && data[0] == '#' {
		return format.SplitLines(data, atEOF)
	}
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch {
		case c == s.escape && s.escape != 0:
			i++
			start = false
			continue
		case c == s.quote && s.quote != 0:
			// Within quotes a doubled quote closes and opens again.
			if quoted {
				quoted = false
				start = true
				continue
			}
			quoted = start
		case c == '\n' && !quoted:
			return i + 1, format.TrimCR(data[:i])
		}
		start = c == s.delimiter && !quoted
	}
	if !atEOF {
		return 0, nil
	}
	return len(data), format.TrimCR(data)
}

// fault is what is wrong with a record.
type fault struct {
	at   int
	what string
}

// field reads the field at p of a line. text is its content (in scratch if it
// had to be put together), next the position of the delimiter or line end.
func (s *settings) field(b []byte, p int, scratch []byte) (text []byte, next int, kept []byte, f *fault) {
	if s.quote != 0 && p < len(b) && b[p] == s.quote {
		return s.quotedField(b, p+1, scratch)
	}
	start, from := p, p
	kept = scratch
	for ; p < len(b); p++ {
		c := b[p]
		if c == s.delimiter || c == '\n' {
			break
		}
		if c == s.escape && s.escape != 0 && p+1 < len(b) {
			if s.hive { // the field's type decides
				if b[p+1] != '\n' {
					p++
				}
				continue
			}
			kept = append(append(kept, b[from:p]...), unescape(b[p+1]))
			p++
			from = p + 1
		}
	}
	end := p
	if (p == len(b) || b[p] == '\n') && end > from && b[end-1] == '\r' {
		end--
	}
	if from == start {
		return b[start:end], p, kept, nil
	}
	kept = append(kept, b[from:end]...)
	return kept[len(scratch):], p, kept, nil
}

func (s *settings) quotedField(b []byte, p int, scratch []byte) (text []byte, next int, kept []byte, f *fault) {
	start, from := p, p
	kept = scratch
	for ; ; p++ {
		if p >= len(b) {
			return nil, p, kept, &fault{start - 1, "the quote is not closed"}
		}
		c := b[p]
		if c == s.escape && s.escape != 0 && p+1 < len(b) {
			kept = append(append(kept, b[from:p]...), unescape(b[p+1]))
			p++
			from = p + 1
			continue
		}
		if c != s.quote {
			continue
		}
		if p+1 < len(b) && b[p+1] == s.quote {
			kept = append(kept, b[from:p+1]...)
			p++
			from = p + 1
			continue
		}
		break
	}
	text = b[start:p]
	if from != start {
		kept = append(kept, b[from:p]...)
		text = kept[len(scratch):]
	}
	for p++; p < len(b) && (b[p] == ' ' || b[p] == '\t' || b[p] == '\r') && b[p] != s.delimiter; p++ {
	}
	if p < len(b) && b[p] != s.delimiter && b[p] != '\n' {
		return nil, p, kept, &fault{p, "text behind a closing quote"}
	}
	return text, p, kept, nil
}

// unescape is what a character means behind the escape character.
func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case '0':
		return 0
	}
	return c
}
