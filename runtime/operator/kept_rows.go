package operator

import (
	"bytes"
	"encoding/binary"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// keptRows are rows that an operator keeps, each with its key's hash and its place in the
// order. What a place ends with, the row's own encoding, is as long as the row and hardly
// ever decides: it is not kept but made of the columns where it does.
type keptRows struct {
	batch  batch.Batch
	hashes []uint64
	order  *rowOrder // nil: rows have no places
	places batch.Vec // BYTES, by row: its place without its encoding
	peers  []int32   // by row: rowPlace.peers
	buf    [2][]byte
}

func newKeptRows(s *batch.Schema, order *rowOrder) *keptRows {
	k := &keptRows{order: order}
	resetRows(&k.batch, s)
	k.places.Reset(types.NewBytes(), 0)
	return k
}

func (k *keptRows) add(b *batch.Batch, row int32, hash uint64, p rowPlace) int32 {
	at := k.batch.Len
	appendRow(&k.batch, b, row)
	k.hashes = append(k.hashes, hash)
	if k.order != nil {
		k.places.Grow(1)
		k.places.PutBytes(at, p.bytes[:p.own])
		k.peers = append(k.peers, p.peers)
	}
	return int32(at)
}

// place is a row's place without its encoding.
func (k *keptRows) place(row int32) []byte { return k.places.Bytes(int(row)) }

// shared is the part of a row's place that rows have which are equal by the columns.
func (k *keptRows) shared(row int32) []byte { return k.place(row)[:k.peers[row]] }

// appendPlace appends the whole place of a row.
func (k *keptRows) appendPlace(dst []byte, row int32) []byte {
	dst = append(dst, k.place(row)...)
	from := len(dst)
	dst = appendRowValues(dst, &k.batch, int(row))
	k.order.flip(dst[from:])
	return dst
}

// compare compares the places of two rows.
func (k *keptRows) compare(a, b int32) int {
	if a == b {
		return 0
	}
	x, y := k.place(a), k.place(b)
	n := min(len(x), len(y))
	if c := bytes.Compare(x[:n], y[:n]); c != 0 {
		return c
	}
	k.buf[1] = k.appendPlace(k.buf[1][:0], b)
	return k.compareTo(a, k.buf[1])
}

// compareTo compares the place of a row with a whole one, or with the beginning of one.
func (k *keptRows) compareTo(row int32, place []byte) int {
	x := k.place(row)
	n := min(len(x), len(place))
	if c := bytes.Compare(x[:n], place[:n]); c != 0 {
		return c
	}
	if n < len(x) {
		return 1
	}
	return k.compareValues(row, place[n:])
}

// compareValues compares the encoding of a row as it is in places, of which no more is made
// than decides: many rows may be equal by the order.
func (k *keptRows) compareValues(row int32, rest []byte) int {
	for c := range k.batch.Cols {
		v := batch.AppendValue(k.buf[0][:0], &k.batch.Cols[c], int(row))
		k.order.flip(v)
		k.buf[0] = v
		n := min(len(v), len(rest))
		if c := bytes.Compare(v[:n], rest[:n]); c != 0 {
			return c
		}
		if n < len(v) {
			return 1
		}
		rest = rest[n:]
	}
	return -min(len(rest), 1)
}

// take gives the rows of sel, in its order, as rows of their own.
func (k *keptRows) take(sel batch.Sel) *keptRows {
	out := &keptRows{order: k.order, hashes: make([]uint64, len(sel))}
	out.batch.Take(&k.batch, sel)
	for i, row := range sel {
		out.hashes[i] = k.hashes[row]
	}
	out.places.Reset(types.NewBytes(), 0)
	if k.order != nil {
		out.places.Take(&k.places, sel)
		out.peers = make([]int32, len(sel))
		for i, row := range sel {
			out.peers[i] = k.peers[row]
		}
	}
	return out
}

// snapshot is the rows as they are now, for another goroutine to read while rows are added.
func (k *keptRows) snapshot() *keptRows {
	return &keptRows{batch: k.batch.Snapshot(), hashes: k.hashes, order: k.order, places: k.places.Snapshot(), peers: k.peers}
}

// later gives what appends a save of rows of a snapshot, and then other bytes.
func (k *keptRows) later(rows batch.Sel, rest []byte) func(dst []byte) []byte {
	return func(dst []byte) []byte { return append(k.save(dst, rows), rest...) }
}

func (k *keptRows) bytes() int64 {
	return state.BatchBytes(&k.batch) + int64(8*cap(k.hashes)+4*cap(k.peers)) + state.VecBytes(&k.places)
}

// shortPlaces is added to the number of saved rows whose places are without the rows'
// encodings. No number of rows is as high.
const shortPlaces = 1 << 40

// save appends the rows of sel; load adds those of the given key groups.
func (k *keptRows) save(dst []byte, sel batch.Sel) []byte {
	dst = binary.AppendUvarint(dst, shortPlaces+uint64(len(sel)))
	for _, row := range sel {
		dst = binary.BigEndian.AppendUint64(dst, k.hashes[row])
	}
	if k.order != nil {
		for _, row := range sel {
			dst = state.AppendBytes(dst, k.place(row))
			dst = binary.AppendUvarint(dst, uint64(k.peers[row]))
		}
	} else {
		dst = append(dst, make([]byte, 2*len(sel))...) // no bytes, of which none are shared
	}
	var v batch.Vec
	for i := range k.batch.Cols {
		v.Take(&k.batch.Cols[i], sel)
		dst = state.AppendVec(dst, &v)
	}
	return dst
}

// load takes in saved rows of the given key groups, and tells added of each: its place
// among the n that were saved, and its number now.
func (k *keptRows) load(r *state.Reader, groups state.Range, added func(saved int, row int32)) (n int, err error) {
	saved, err := k.read(r)
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

// read reads saved rows by themselves.
func (k *keptRows) read(r *state.Reader) (*keptRows, error) {
	out := &keptRows{order: k.order}
	next := *r
	n := next.Uvarint()
	short := n >= shortPlaces
	if !short {
		out.hashes = r.Hashes()
	} else {
		*r = next
		if n -= shortPlaces; n > uint64(r.Rest())/8 {
			return nil, state.ErrCorrupt
		}
		out.hashes = make([]uint64, n)
		for i := range out.hashes {
			out.hashes[i] = r.Uint64()
		}
	}
	places := make([][]byte, len(out.hashes))
	out.peers = make([]int32, len(out.hashes))
	for i := range places {
		places[i] = r.Bytes()
		peers := r.Uvarint()
		if peers > uint64(len(places[i])) {
			return nil, state.ErrCorrupt
		}
		out.peers[i] = int32(peers)
	}
	s := k.batch.Schema
	out.batch = batch.Batch{Schema: s, Cols: make([]batch.Vec, len(s.Fields)), Len: len(out.hashes)}
	for i, f := range s.Fields {
		v := r.Vec(f.Type)
		if v.Len != len(out.hashes) {
			return nil, state.ErrCorrupt
		}
		out.batch.Cols[i] = *v
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	return out, out.placed(places, short)
}

// placed takes the places of rows that were read, short ones or whole ones.
func (k *keptRows) placed(places [][]byte, short bool) error {
	if k.order == nil {
		return nil
	}
	k.places.Reset(types.NewBytes(), len(places))
	for i, p := range places {
		if !short {
			k.buf[0] = appendRowValues(k.buf[0][:0], &k.batch, i)
			k.order.flip(k.buf[0])
			if !bytes.HasSuffix(p, k.buf[0]) {
				return state.ErrCorrupt
			}
			if p = p[:len(p)-len(k.buf[0])]; int(k.peers[i]) > len(p) {
				return state.ErrCorrupt
			}
		}
		k.places.PutBytes(i, p)
	}
	return nil
}

// addSaved adds a row that was read.
func (k *keptRows) addSaved(saved *keptRows, i int) int32 {
	if k.order == nil {
		return k.add(&saved.batch, int32(i), saved.hashes[i], rowPlace{})
	}
	p := saved.place(int32(i))
	return k.add(&saved.batch, int32(i), saved.hashes[i], rowPlace{bytes: p, peers: saved.peers[i], own: int32(len(p))})
}

// columns are the columns of kept rows as keys.
func (k *keptRows) columns(cols []int, out []*batch.Vec) []*batch.Vec {
	return colsAt(&k.batch, cols, out)
}
