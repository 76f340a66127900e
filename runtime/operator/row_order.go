package operator

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
)

// rowOrder makes bytes that compare as rows are ordered: by columns, then by where
// the row comes from, then by its own encoding, so that the order says nothing
// about arrival.
type rowOrder struct {
	keys  []graph.SortKey
	place order
	// latest: of rows that are equal by the columns the last one comes first.
	latest bool
}

func newRowOrder(keys []graph.SortKey) *rowOrder {
	return &rowOrder{keys: keys, place: order{time: -1, whole: true}}
}

// start readies the order for the rows of in.
func (o *rowOrder) start(in *KeyedRows) { o.place.positions(in) }

// key makes the bytes of a row; rows with the same first peers bytes are equal by
// the columns.
func (o *rowOrder) key(in *KeyedRows, row int) (key []byte, peers int) {
	k := appendSortKeys(nil, o.keys, in.Batch, row)
	key = o.place.appendKey(k, in, nil, row)
	if o.latest {
		for i := len(k); i < len(key); i++ {
			key[i] ^= 0xff
		}
	}
	return key, len(k)
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

// keptRows are rows that an operator keeps, each with its key's hash and its place
// in the order.
type keptRows struct {
	batch  batch.Batch
	hashes []uint64
	order  [][]byte
	places int64   // bytes of order
	peers  []int32 // length of the part of order that equal rows share
}

func newKeptRows(s *batch.Schema) *keptRows {
	k := &keptRows{}
	resetRows(&k.batch, s)
	return k
}

func (k *keptRows) add(b *batch.Batch, row int32, hash uint64, order []byte, peers int32) int32 {
	appendRow(&k.batch, b, row)
	k.hashes, k.order, k.peers = append(k.hashes, hash), append(k.order, order), append(k.peers, peers)
	k.places += int64(cap(order))
	return int32(k.batch.Len - 1)
}

// take gives the rows of sel, in its order, as rows of their own.
func (k *keptRows) take(sel batch.Sel) *keptRows {
	out := &keptRows{}
	out.batch.Take(&k.batch, sel)
	for _, row := range sel {
		out.hashes, out.order, out.peers = append(out.hashes, k.hashes[row]), append(out.order, k.order[row]), append(out.peers, k.peers[row])
		out.places += int64(cap(k.order[row]))
	}
	return out
}

func (k *keptRows) bytes() int64 {
	return state.BatchBytes(&k.batch) + int64(36*cap(k.hashes)) + k.places
}

// save appends the rows of sel; load adds those of the given key groups.
func (k *keptRows) save(dst []byte, sel batch.Sel) []byte {
	t := k.take(sel)
	dst = state.AppendHashes(dst, t.hashes)
	for i := range t.order {
		dst = state.AppendBytes(dst, t.order[i])
		dst = binary.AppendUvarint(dst, uint64(t.peers[i]))
	}
	for i := range t.batch.Cols {
		dst = state.AppendVec(dst, &t.batch.Cols[i])
	}
	return dst
}

// load takes in saved rows of the given key groups, and tells added of each: its place
// among the n that were saved, and its number now.
func (k *keptRows) load(r *state.Reader, s *batch.Schema, groups state.Range, added func(saved int, row int32)) (n int, err error) {
	saved, err := readKept(r, s)
	if err != nil {
		return 0, err
	}
	for i, h := range saved.hashes {
		if groups.Has(h) {
			added(i, k.addSaved(saved, i))
		}
	}
	return len(saved.hashes), nil
}

// readKept reads saved rows, whose orders are those of r.
func readKept(r *state.Reader, s *batch.Schema) (*keptRows, error) {
	k := &keptRows{hashes: r.Hashes()}
	k.order, k.peers = make([][]byte, len(k.hashes)), make([]int32, len(k.hashes))
	for i := range k.hashes {
		k.order[i], k.peers[i] = r.Bytes(), int32(r.Uvarint())
	}
	k.batch = batch.Batch{Schema: s, Cols: make([]batch.Vec, len(s.Fields)), Len: len(k.hashes)}
	for i, f := range s.Fields {
		v := r.Vec(f.Type)
		if v.Len != len(k.hashes) {
			return nil, state.ErrCorrupt
		}
		k.batch.Cols[i] = *v
	}
	return k, r.Err()
}

// addSaved adds a row of readKept.
func (k *keptRows) addSaved(saved *keptRows, i int) int32 {
	return k.add(&saved.batch, int32(i), saved.hashes[i], slices.Clone(saved.order[i]), saved.peers[i])
}

// columns are the columns of kept rows as keys.
func (k *keptRows) columns(cols []int, out []*batch.Vec) []*batch.Vec {
	return colsAt(&k.batch, cols, out)
}

func (k *keptRows) compare(a, b int32) int { return bytes.Compare(k.order[a], k.order[b]) }
