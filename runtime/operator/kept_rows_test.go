package operator

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// placedRows are rows by chance with few values, some from a source and some not, as they
// are kept, with their whole places.
func placedRows(rng *rand.Rand, order *rowOrder, n int) (*keptRows, []rowPlace) {
	k := newKeptRows(pairSchema, order)
	var all []rowPlace
	for range n {
		in := changesOf([]change{{k: rng.Int64N(2), v: rng.Int64N(2)}})
		if rng.IntN(2) == 0 {
			in.Topic, in.Partitions = "t", []int32{int32(rng.IntN(2))}
			in.Batch.Runs = []batch.Run{{Rows: 1, BaseOffset: rng.Int64N(2)}}
		}
		order.start(in)
		p := order.of(in, 0).clone()
		k.add(in.Batch, 0, rng.Uint64(), p)
		all = append(all, p)
	}
	return k, all
}

// TestPlacesCompareAsWholeOnes: rows, which keep a part of their places, compare as the
// bytes of the whole ones.
func TestPlacesCompareAsWholeOnes(t *testing.T) {
	for _, latest := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(1, 1))
		order := newRowOrder([]graph.SortKey{{Column: 1, Desc: latest}})
		order.latest = latest
		k, all := placedRows(rng, order, 60)
		ties := 0
		for a := range int32(len(all)) {
			if got := k.appendPlace(nil, a); !bytes.Equal(got, all[a].bytes) {
				t.Fatalf("place %x, want %x", got, all[a].bytes)
			}
			for b := range int32(len(all)) {
				x, y := all[a], all[b]
				want := bytes.Compare(x.bytes, y.bytes)
				if got := k.compare(a, b); got != want {
					t.Fatalf("latest %t: %x against %x: %d, want %d", latest, x.bytes, y.bytes, got, want)
				}
				if got := k.compareTo(a, y.bytes); got != want {
					t.Fatalf("latest %t: %x against a place %x: %d, want %d", latest, x.bytes, y.bytes, got, want)
				}
				if got, want := k.compareTo(a, y.bytes[:y.peers]), bytes.Compare(x.bytes, y.bytes[:y.peers]); got != want {
					t.Fatalf("latest %t: %x against what rows share %x: %d, want %d", latest, x.bytes, y.bytes[:y.peers], got, want)
				}
				if want != 0 && bytes.Equal(x.bytes[:x.own], y.bytes[:y.own]) {
					ties++
				}
			}
		}
		if ties == 0 {
			t.Error("the rows' encodings never decided")
		}
	}
}

// TestKeptRowsFromBefore: saved rows had whole places. They are taken in, unless a place
// does not end with its row.
func TestKeptRowsFromBefore(t *testing.T) {
	for _, latest := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(2, 2))
		order := newRowOrder([]graph.SortKey{{Column: 1}})
		order.latest = latest
		k, all := placedRows(rng, order, 40)
		old := func() []byte {
			dst := state.AppendHashes(nil, k.hashes)
			for i := range all {
				dst = binary.AppendUvarint(state.AppendBytes(dst, all[i].bytes), uint64(all[i].peers))
			}
			for i := range k.batch.Cols {
				dst = state.AppendVec(dst, &k.batch.Cols[i])
			}
			return dst
		}
		every := state.Range{From: 0, To: state.Groups}
		got, now := newKeptRows(pairSchema, order), newKeptRows(pairSchema, order)
		sel := batch.Sel(slotsOf(0, len(all), nil))
		for into, saved := range map[*keptRows][]byte{got: old(), now: k.save(nil, sel)} {
			n, err := into.load(state.NewReader(saved), every, func(int, int32) {})
			if err != nil || n != len(all) {
				t.Fatal(n, err)
			}
			for i := range all {
				if x := into.appendPlace(nil, int32(i)); !bytes.Equal(x, all[i].bytes) || into.peers[i] != all[i].peers || into.hashes[i] != k.hashes[i] {
					t.Fatalf("row %d: place %x, want %x", i, x, all[i].bytes)
				}
			}
		}
		all[7].bytes[len(all[7].bytes)-1] ^= 1
		if _, err := got.load(state.NewReader(old()), every, func(int, int32) {}); !errors.Is(err, state.ErrCorrupt) {
			t.Errorf("a place of another row: %v", err)
		}
	}
}

// TestSavedStateStays: what a payload writes is the state of when it was made, whatever
// comes before it is written.
func TestSavedStateStays(t *testing.T) {
	type stayCase struct {
		keyedCase
		joins bool
	}
	var cases []stayCase
	for _, c := range keyedCases(t) {
		cases = append(cases, stayCase{keyedCase: c})
	}
	for _, c := range []pairJoin{{kind: graph.InnerJoin}, {kind: graph.FullJoin}, {kind: graph.SemiJoin}} {
		fresh := c.operator(t, [2]bool{true, true}, 0)
		cases = append(cases, stayCase{keyedCase{name: fmt.Sprintf("%+v", c), retracts: true, fresh: fresh}, true})
	}
	for i, c := range cases {
		rng := rand.New(rand.NewPCG(3, uint64(i)))
		r := &keyedRun{keyedCase: c.keyedCase, rng: rng, keys: 300}
		k := c.fresh().(Spilling)
		out := &Results{Emit: func(*batch.Batch) error { return nil }, Dead: func(_ *batch.Batch, e *batch.ValueError) { t.Fatal(e) }}
		feed := func() {
			r.now, r.wm = r.now+1, r.wm+10
			in := r.batch(500)
			if c.joins {
				in = sideOf(rng.IntN(2), drawChanges(rng, 500, r.keys, 10, true, &r.there))
			}
			if err := r.step(k, in, out); err != nil {
				t.Fatal(err)
			}
		}
		written := func(p *state.Payload) []byte {
			var b bytes.Buffer
			for i := range p.Parts() {
				if _, err := p.WritePart(&b, i, nil); err != nil {
					t.Fatal(err)
				}
			}
			return b.Bytes()
		}
		for range 6 {
			feed()
		}
		now, later := new(state.Payload), new(state.Payload)
		for _, p := range []*state.Payload{now, later} {
			if err := k.SaveTo(p); err != nil {
				t.Fatal(err)
			}
		}
		want := written(now)
		for range 12 {
			feed()
		}
		if got := written(later); !bytes.Equal(got, want) || len(want) < 50 {
			t.Errorf("%s: %d bytes are others after more rows (%d)", c.name, len(want), len(got))
		}
	}
}

// TestSavingCopiesNoRows: a payload refers to the rows that are there; what it takes by
// itself goes by their number.
func TestSavingCopiesNoRows(t *testing.T) {
	wide := &batch.Schema{Fields: append(pairSchema.Fields[:2:2], types.Field{Name: "s", Type: types.NewString()})}
	const rows, each = 4000, 2000
	in := changesOf(make([]change, rows))
	in.Batch.Schema, in.Batch.Kinds = wide, nil
	text := batch.Vec{}
	text.Reset(types.NewString(), rows)
	for i := range rows {
		in.Batch.Cols[0].I64[i] = int64(i)
		in.Hashes[i], _ = batch.HashKey(nil, []*batch.Vec{&in.Batch.Cols[0]}, i)
		text.PutString(i, strings.Repeat("x", each))
	}
	in.Batch.Cols = append(in.Batch.Cols, text)
	top := &graph.Rank{Keys: []int{0}, Order: []graph.SortKey{{Column: 1}}, N: 1, Changes: true}
	first, err := NewTopN(top, wide, wide)
	if err != nil {
		t.Fatal(err)
	}
	op, out := pairJoin{kind: graph.InnerJoin}.join(t, wide)
	op.Changes = true
	join, err := NewJoin(op, wide, wide, out)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []Keyed{first, NewNormalize(&graph.Normalize{Keys: []int{0}}, wide), join} {
		if err := k.Fold(expr.NewContext(nil, 1), in, &Results{Emit: func(*batch.Batch) error { return nil }}); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p := new(state.Payload)
		if err := k.(Spilling).SaveTo(p); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(rows*each/4); got > most {
			t.Errorf("%s: %d bytes for a payload of %d, at most %d", k.Kind(), got, rows*each, most)
		}
	}
}
