package keyvalue

import (
	"slices"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
)

// goneDecoder makes rows of records without a value, of which nothing but the key's
// columns is known.
type goneDecoder struct {
	// key decodes one key at a time into a batch of its own; nil: the Decoder decodes
	// all keys, and puts their columns beside the rows in the end.
	key  *keyDecoder
	from []int // by column of the table's batch: that of the key's, -1 none
	null []int // columns of the table's batch that lie in the value alone
}

// newGoneDecoder compiles a decoder for columns as NewDecoder's.
func (l *Layout) newGoneDecoder(columns []int) (*goneDecoder, error) {
	g := &goneDecoder{from: slices.Repeat([]int{-1}, len(columns))}
	for at, i := range columns {
		if l.columns[i].Metadata == "" && !slices.Contains(l.written.columns, i) {
			g.null = append(g.null, at)
		}
	}
	if l.key != nil {
		return g, nil
	}
	var err error
	if g.key, err = l.written.decoder(columns); err != nil {
		return nil, err
	}
	for i, at := range g.key.to {
		g.from[at] = i
	}
	return g, nil
}

// upsert decodes a record of a table of newest rows: its row replaces the one of its
// key, a record without a value deletes it. Without a key there is nothing to replace.
func (d *Decoder) upsert(key, value []byte, offset int64, a *format.Appender) int {
	if key == nil {
		a.Note(offset, batch.CodeNullKey, "", "the record has no key")
		return 0
	}
	if value != nil {
		n := d.row(key, value, offset, a)
		a.Changes(n, batch.UpdateAfter)
		return n
	}
	why := ""
	if k := d.key; k != nil {
		if why = k.decode(key); why == "" {
			k.sel = append(k.sel, int32(k.a.Rows()-1))
		}
	} else {
		why = d.gone.copyKey(key, a)
	}
	if why != "" {
		a.Note(offset, batch.CodeMalformed, "", "the key: "+why)
		return 0
	}
	for _, at := range d.gone.null {
		format.AppendNull(a.Column(at))
	}
	a.Commit(offset, 1)
	a.Changes(1, batch.Delete)
	return 1
}

// copyKey appends the columns of a key, or says why there are none.
func (g *goneDecoder) copyKey(key []byte, a *format.Appender) string {
	k := g.key
	k.a.Begin(k.b, k.schema)
	k.a.BeginRun(0, 0)
	why := k.decode(key)
	k.a.EndRun(1, 0)
	k.a.Finish()
	for at, i := range g.from {
		if why == "" && i >= 0 {
			format.AppendFrom(a.Column(at), &k.b.Cols[i], 0)
		}
	}
	return why
}
