package jsonfmt

import (
	"fmt"
	"unicode/utf8"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
)

// Decoder turns JSON records into rows; see the package comment.
type Decoder struct {
	settings
	skipper
	root    *object
	columns []int
	// a and begun are what the nodes are bound to.
	a     *format.Appender
	begun uint64
	// b is the record being decoded.
	b       []byte
	scratch []byte
	mapKeys keyTable
	// faults counts the errors of the record.
	faults int
}

var _ format.Decoder = (*Decoder)(nil)

// NewDecoder compiles a decoder for the needed fields of a table. Errors are
// *connector.OptionError and *format.FieldTypeError.
func NewDecoder(c format.DecoderConfig) (*Decoder, error) {
	s, err := parseSettings(c.Options)
	if err != nil {
		return nil, err
	}
	d := &Decoder{settings: s, root: newObject()}
	for i, f := range c.Fields {
		col := c.Column(i)
		if col < 0 {
			continue
		}
		n, err := (&compiler{settings: s, column: int32(col)}).node(f.Type, f.Name)
		if err != nil {
			return nil, err
		}
		d.root.add(f.Name, n)
		d.columns = append(d.columns, col)
	}
	return d, nil
}

// Policy is the error policy the decoder was compiled with.
func (d *Decoder) Policy() format.Policy { return d.policy }

// Decode implements format.Decoder.
func (d *Decoder) Decode(value []byte, offset int64, a *format.Appender) int {
	if d.a != a || d.begun != a.Begun() {
		for i, n := range d.root.fields {
			n.bind(a.Column(d.columns[i]))
		}
		d.a, d.begun = a, a.Begun()
	}
	d.b, d.faults = value, 0
	rows, p := d.record(value)
	d.b = nil
	switch {
	case p < 0:
		a.Rollback()
		a.Note(offset, batch.CodeMalformed, "", d.describe(value, ^p))
		d.tooDeep = false
		return 0
	case rows == 0:
		a.Note(offset, batch.CodeEmpty, "", "")
		return 0
	}
	a.Commit(offset, rows)
	return rows
}

// record decodes the objects of a record. Its position is as that of the
// scanning functions.
func (d *Decoder) record(b []byte) (rows, p int) {
	if len(b) >= 3 && b[0] == 0xef && b[1] == 0xbb && b[2] == 0xbf {
		p = 3
	}
	if p = skipSpace(b, p); p == len(b) {
		return 0, p
	}
	d.build(b)
	row := d.a.Rows()
	if b[p] == '[' {
		return d.array(b, p+1, row)
	}
	for {
		if b[p] != '{' {
			return rows, ^p
		}
		if p = d.object(d.root, p+1, row+rows, 1); p < 0 {
			return rows, p
		}
		rows++
		if p == len(b) {
			return rows, p
		}
		end := p
		if p = skipSpace(b, p); p == len(b) {
			return rows, p
		}
		if p == end {
			return rows, ^p
		}
	}
}

// array decodes a record that is an array of objects, from behind its '['.
func (d *Decoder) array(b []byte, p, row int) (rows, end int) {
	p = skipSpace(b, p)
	if p < len(b) && b[p] == ']' {
		if p = skipSpace(b, p+1); p != len(b) {
			return 0, ^p
		}
		return 0, p
	}
	for {
		if p >= len(b) || b[p] != '{' {
			return rows, ^p
		}
		if p = d.object(d.root, p+1, row+rows, 2); p < 0 {
			return rows, p
		}
		rows++
		p = skipSpace(b, p)
		if p >= len(b) {
			return rows, ^p
		}
		if b[p] == ']' {
			if p = skipSpace(b, p+1); p != len(b) {
				return rows, ^p
			}
			return rows, p
		}
		if b[p] != ',' {
			return rows, ^p
		}
		p = skipSpace(b, p+1)
	}
}

// object decodes an object from behind its '{' into row number row of its
// fields; depth counts the object itself.
func (d *Decoder) object(o *object, p, row, depth int) int {
	b := d.b
	filled := 0
	prev := int32(0)
	if p < len(b) && b[p] <= ' ' {
		p = skipSpace(b, p)
	}
	if p < len(b) && b[p] == '}' {
		goto closing
	}
	for {
		if p >= len(b) || b[p] != '"' {
			return ^p
		}
		p++
		i := o.keys[prev].next
		k := &o.keys[i]
		if p+8 <= len(b) && k.at(b, p) {
			p += int(k.size)
			prev = i
		} else {
			if i, p = d.key(o, p); p < 0 {
				return p
			}
			k = &o.keys[i]
			if i > 0 {
				o.follows(prev, i)
				prev = i
			}
			p = skipSpace(b, p)
			if p >= len(b) || b[p] != ':' {
				return ^p
			}
			p++
		}
		if p < len(b) && b[p] <= ' ' {
			p = skipSpace(b, p)
		}
		if n := k.node; n == nil {
			p = d.pass(b, p, depth)
		} else {
			if n.vec.Len > row {
				format.Truncate(n.vec, row)
				d.a.Count(int(n.column), format.DuplicateKey)
			} else {
				filled++
			}
			p = d.value(n, p, depth)
		}
		if p < 0 {
			return p
		}
		if p < len(b) && b[p] <= ' ' {
			p = skipSpace(b, p)
		}
		if p >= len(b) {
			return ^p
		}
		if b[p] != ',' {
			if b[p] == '}' {
				break
			}
			return ^p
		}
		p++
		if p < len(b) && b[p] <= ' ' {
			p = skipSpace(b, p)
		}
	}
closing:
	if filled < len(o.fields) {
		for _, n := range o.fields {
			if n.vec.Len == row {
				d.missing(n)
			}
		}
	}
	return p + 1
}

// pass is skip, quicker for short strings.
func (d *Decoder) pass(b []byte, p, depth int) int {
	if p < len(b) && b[p] == '"' {
		p++
		if n := near(d.words, p); n < nearLimit && p+n < len(b) && b[p+n] == '"' {
			return p + n + 1
		}
		p--
	}
	return d.skip(b, p, depth)
}

// key reads a key that was not the expected one, from behind its quote. It
// returns the key's number, 0 for one that nobody needs and that is not
// learned.
func (d *Decoder) key(o *object, p int) (int32, int) {
	end, plain := d.scanString(d.b, p)
	if end < 0 {
		return 0, end
	}
	raw := d.b[p:end]
	if !plain {
		var ok bool
		if d.scratch, ok = unescape(d.scratch[:0], raw); !ok {
			return 0, end + 1
		}
		return o.index[string(d.scratch)], end + 1
	}
	i, ok := o.index[string(raw)]
	if !ok {
		i = o.learn(raw)
	}
	return i, end + 1
}

// describe says what is wrong at a position of a malformed record.
func (d *Decoder) describe(b []byte, p int) string {
	switch {
	case d.tooDeep:
		return fmt.Sprintf("nested deeper than %d at byte %d", maxDepth, p)
	case p >= len(b):
		return fmt.Sprintf("text ends too early, at byte %d", len(b))
	case b[p] == '\\':
		return fmt.Sprintf("invalid escape sequence at byte %d", p)
	}
	r, n := utf8.DecodeRune(b[p:])
	if r == utf8.RuneError && n <= 1 {
		return fmt.Sprintf("invalid UTF-8 at byte %d", p)
	}
	return fmt.Sprintf("unexpected %q at byte %d", r, p)
}
