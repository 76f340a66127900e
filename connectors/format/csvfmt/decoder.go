package csvfmt

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// Decoder turns lines into rows; see the package comment.
type Decoder struct {
	settings
	policy  format.Policy
	columns []column // one a field of the line
	scratch []byte
	a       *format.Appender
	begun   uint64
}

type column struct {
	field  types.Field
	vec    *batch.Vec
	number int // of the batch, -1: not needed
}

var _ format.Decoder = (*Decoder)(nil)

// NewDecoder compiles a decoder. All fields of the table are needed to count
// positions. Errors are *connector.OptionError and *format.FieldTypeError.
func NewDecoder(c format.DecoderConfig) (*Decoder, error) {
	s, err := parseSettings(c.Options)
	if err != nil {
		return nil, err
	}
	d := &Decoder{settings: s}
	if d.policy, err = format.ParsePolicy("csv", c.Options); err != nil {
		return nil, err
	}
	for i, f := range c.Fields {
		if c.Column(i) >= 0 {
			if err := checkType(f); err != nil {
				return nil, err
			}
		}
		d.columns = append(d.columns, column{field: f, number: c.Column(i)})
	}
	return d, nil
}

func checkType(f types.Field) error {
	t := f.Type
	if t.Kind == types.Array {
		t = *t.Elem
	}
	if t.IsNested() || t.Kind == types.Null || t.Kind == types.Invalid {
		return &format.FieldTypeError{Format: "csv", Column: f.Name, Type: f.Type, Reason: "fields are scalars or arrays of scalars"}
	}
	return nil
}

// Decode implements format.Decoder.
func (d *Decoder) Decode(value []byte, offset int64, a *format.Appender) int {
	if d.a != a || d.begun != a.Begun() {
		for i := range d.columns {
			if c := &d.columns[i]; c.number >= 0 {
				c.vec = a.Column(c.number)
			}
		}
		d.a, d.begun = a, a.Begun()
	}
	rows, f := d.record(value)
	switch {
	case f != nil:
		a.Rollback()
		a.Note(offset, batch.CodeMalformed, "", fmt.Sprintf("%s, at byte %d", f.what, f.at))
		return 0
	case rows == 0:
		a.Note(offset, batch.CodeEmpty, "", "")
		return 0
	}
	a.Commit(offset, rows)
	return rows
}

func (d *Decoder) record(b []byte) (rows int, f *fault) {
	if !utf8.Valid(b) {
		return 0, &fault{invalidByte(b), "invalid UTF-8"}
	}
	p := 0
	if bytes.HasPrefix(b, []byte("\ufeff")) {
		p = 3
	}
	for p < len(b) {
		line := b[p:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end]
		}
		if blank := len(format.TrimCR(line)) == 0; blank || d.comments && line[0] == '#' {
			p += len(line) + 1
			continue
		}
		if p, f = d.line(b, p); f != nil {
			return 0, f
		}
		rows++
	}
	return rows, nil
}

func invalidByte(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(b)
}

// line decodes the line at p into a row and returns where the next one begins.
func (d *Decoder) line(b []byte, p int) (int, *fault) {
	start := p
	n := 0
	d.scratch = d.scratch[:0]
	for {
		text, next, kept, f := d.field(b, p, d.scratch)
		d.scratch = kept
		if f != nil {
			return 0, f
		}
		if n < len(d.columns) {
			if c := &d.columns[n]; c.number >= 0 {
				d.append(c, text)
			}
		}
		n++
		p = next + 1
		if next >= len(b) || b[next] == '\n' {
			break
		}
	}
	if n == len(d.columns) {
		return p, nil
	}
	if !d.policy.Nulls() && !d.anyCount {
		return 0, &fault{start, fmt.Sprintf("the line has %d fields, the table %d columns", n, len(d.columns))}
	}
	for ; n < len(d.columns); n++ {
		if c := &d.columns[n]; c.number >= 0 {
			d.missing(c)
		}
	}
	return p, nil
}
