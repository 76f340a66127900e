package keyvalue

import (
	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
)

// Encoder turns rows into records. It may be used by several goroutines.
type Encoder struct {
	value format.Encoder
	key   format.Encoder // nil: records have no key
	// text bounds key and value together.
	text      format.TextBound
	mayRefuse bool
}

// NewEncoder compiles an encoder of batches that have the table's columns.
func (l *Layout) NewEncoder() (*Encoder, error) {
	e := &Encoder{}
	var err error
	if e.value, err = e.compile(&l.value); err != nil || l.written == nil {
		return e, err
	}
	e.key, err = e.compile(l.written)
	return e, err
}

func (e *Encoder) compile(s *side) (format.Encoder, error) {
	enc, err := s.format.NewEncoder(format.EncoderConfig{Fields: s.fields, Columns: s.columns, Options: s.options})
	if err != nil {
		return nil, err
	}
	for _, f := range s.fields {
		e.text.Add(f)
	}
	r, ok := enc.(format.Refuser)
	e.mayRefuse = e.mayRefuse || e.text.Maps || ok && r.MayRefuse()
	return enc, nil
}

// HasKey reports whether records have a key.
func (e *Encoder) HasKey() bool { return e.key != nil }

// AppendKey appends the key of a row; records have one. Errors are those of
// format.Encoder.
func (e *Encoder) AppendKey(dst []byte, b *batch.Batch, row int) ([]byte, error) {
	return e.key.AppendRow(dst, b, row)
}

// AppendValue appends the value of a row.
func (e *Encoder) AppendValue(dst []byte, b *batch.Batch, row int) ([]byte, error) {
	return e.value.AppendRow(dst, b, row)
}

// Append puts a row into key and value, which are emptied first; key stays as it is
// when records have none.
func (e *Encoder) Append(key, value []byte, b *batch.Batch, row int) (k, v []byte, err error) {
	k = key
	if e.key != nil {
		if k, err = e.AppendKey(key[:0], b, row); err != nil {
			return key, value, err
		}
	}
	v, err = e.AppendValue(value[:0], b, row)
	return k, v, err
}

// MayRefuse reports whether a row can be refused whatever its length.
func (e *Encoder) MayRefuse() bool { return e.mayRefuse }

// Bound is an upper bound of the bytes that rows from to to-1 have as keys and
// values.
func (e *Encoder) Bound(b *batch.Batch, from, to int) int {
	n := e.text.Rows(b, from, to)
	if e.key != nil {
		n = format.AddBound(n, n)
	}
	return n
}
