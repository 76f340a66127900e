package keyvalue

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// Decoder turns records into rows. Between Begin and Finish it fills one batch.
type Decoder struct {
	value format.Decoder
	key   *keyDecoder // nil: keys are not looked at
	// gone decodes the keys of records without a value, whose rows are gone; nil: such
	// records are none.
	gone *goneDecoder
}

// keyDecoder decodes keys into a batch of their own, a row a record; Finish puts
// them beside the rows of the values.
type keyDecoder struct {
	format.Decoder
	a      *format.Appender
	b      *batch.Batch
	schema *batch.Schema
	to     []int // columns of the table's batch
	sel    batch.Sel
}

// NewDecoder compiles a decoder of the columns listed, which are indexes into the
// table's columns and are columns 0, 1, ... of the batch.
func (l *Layout) NewDecoder(columns []int) (*Decoder, error) {
	d := &Decoder{}
	cfg := format.DecoderConfig{Fields: l.value.fields, Columns: []int{}, Options: l.value.options}
	for _, i := range l.value.columns {
		cfg.Columns = append(cfg.Columns, slices.Index(columns, i))
	}
	var err error
	if l.upserts {
		if d.gone, err = l.newGoneDecoder(columns); err != nil {
			return nil, err
		}
	}
	if d.value, err = l.value.format.NewDecoder(cfg); err != nil || l.key == nil {
		return d, err
	}
	d.key, err = l.key.decoder(columns)
	return d, err
}

// decoder compiles a decoder of keys for columns as NewDecoder's.
func (s *side) decoder(columns []int) (*keyDecoder, error) {
	k := &keyDecoder{a: format.NewAppender(), b: &batch.Batch{}, schema: &batch.Schema{}, sel: make(batch.Sel, 0, 64)}
	kc := format.DecoderConfig{Fields: s.fields, Columns: []int{}, Options: s.options}
	for f, i := range s.columns {
		at := slices.Index(columns, i)
		if at < 0 {
			kc.Columns = append(kc.Columns, -1)
			continue
		}
		kc.Columns = append(kc.Columns, len(k.to))
		k.to = append(k.to, at)
		k.schema.Fields = append(k.schema.Fields, s.fields[f])
	}
	var err error
	k.Decoder, err = s.format.NewDecoder(kc)
	return k, err
}

// Begin starts a batch.
func (d *Decoder) Begin() {
	if k := d.key; k != nil {
		k.a.Begin(k.b, k.schema)
		k.a.BeginRun(0, 0)
		k.sel = k.sel[:0]
	}
}

// Decode is format.Decoder's Decode of a record; a nil key or value is one that the
// record does not have.
func (d *Decoder) Decode(key, value []byte, offset int64, a *format.Appender) int {
	if d.gone != nil {
		return d.upsert(key, value, offset, a)
	}
	return d.row(key, value, offset, a)
}

// row decodes the rows of a record's value.
func (d *Decoder) row(key, value []byte, offset int64, a *format.Appender) int {
	k := d.key
	if k == nil {
		return d.value.Decode(value, offset, a)
	}
	if why := k.decode(key); why != "" {
		a.Note(offset, batch.CodeMalformed, "", "the key: "+why)
		return 0
	}
	n := d.value.Decode(value, offset, a)
	for range n {
		k.sel = append(k.sel, int32(k.a.Rows()-1))
	}
	return n
}

// decode adds a row to the keys, or says why there is none.
func (k *keyDecoder) decode(key []byte) string {
	before := k.a.Rows()
	if key != nil {
		switch n := k.Decode(key, int64(before), k.a); {
		case n == 1:
			return ""
		case n > 1:
			return fmt.Sprintf("it holds %d rows, not one", n)
		}
		if note := k.b.Notes[len(k.b.Notes)-1]; note.Code != batch.CodeEmpty {
			return note.Message
		}
	}
	for i, f := range k.schema.Fields {
		absent(k.a.Column(i), f)
	}
	k.a.Commit(int64(before), 1)
	return ""
}

// absent appends the value of a column that lies in a key which is not there.
func absent(v *batch.Vec, f types.Field) {
	if f.Type.Nullable {
		format.AppendNull(v)
		return
	}
	format.AppendErr(v, batch.CodeNullInNotNull, f.Name, "the record has no key")
}

// Finish completes the columns that lie in the key; a.Finish comes after it.
func (d *Decoder) Finish(a *format.Appender) {
	k := d.key
	if k == nil {
		return
	}
	k.a.EndRun(int64(k.a.Rows()), 0)
	k.a.Finish()
	for i, at := range k.to {
		a.Column(at).Take(&k.b.Cols[i], k.sel)
	}
}
