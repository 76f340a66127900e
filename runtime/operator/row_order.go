package operator

import (
	"bytes"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/graph"
)

// rowOrder makes bytes that compare as rows are ordered: by columns, then by where
// the row comes from, then by its own encoding, so that the order says nothing
// about arrival.
type rowOrder struct {
	keys  []graph.SortKey
	place order
	// latest: of rows that are equal by the columns the last one comes first.
	latest bool
	buf    []byte
}

// rowPlace is where a row stands in the order, as bytes: its columns', of which rows that
// are equal by them have the same, up to peers, where it comes from up to own, then its
// own encoding.
type rowPlace struct {
	bytes      []byte
	peers, own int32
}

func newRowOrder(keys []graph.SortKey) *rowOrder {
	return &rowOrder{keys: keys, place: order{time: -1, whole: true}}
}

// start readies the order for the rows of in.
func (o *rowOrder) start(in *KeyedRows) { o.place.positions(in) }

// of is the place of a row. Its bytes are good until the next call.
func (o *rowOrder) of(in *KeyedRows, row int) rowPlace {
	b := appendSortKeys(o.buf[:0], o.keys, in.Batch, row)
	p := rowPlace{peers: int32(len(b))}
	b = o.place.appendOrigin(b, in, nil, row)
	p.own = int32(len(b))
	p.bytes = appendRowValues(b, in.Batch, row)
	o.flip(p.bytes[p.peers:])
	o.buf = p.bytes
	return p
}

// flip turns the bytes behind those of the columns around where the last row comes first.
func (o *rowOrder) flip(b []byte) {
	if o.latest {
		for i := range b {
			b[i] ^= 0xff
		}
	}
}

// clone is a place of its own.
func (p rowPlace) clone() rowPlace {
	p.bytes = bytes.Clone(p.bytes)
	return p
}

// appendSortKeys appends what compares as ORDER BY says.
func appendSortKeys(k []byte, keys []graph.SortKey, b *batch.Batch, row int) []byte {
	for _, c := range keys {
		from := len(k)
		k = batch.AppendOrderValue(k, &b.Cols[c.Column], row)
		null := b.Cols[c.Column].IsNull(row)
		if c.Desc {
			for i := from; i < len(k); i++ {
				k[i] ^= 0xff
			}
		}
		// The first byte says where NULLs go: 1 is the values' place.
		switch {
		case !null:
			k[from] = 1
		case c.NullsLast:
			k[from] = 2
		default:
			k[from] = 0
		}
	}
	return k
}
