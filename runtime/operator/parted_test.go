package operator

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/storage/vfs"
)

// TestPartsOfTheOtherForm: a job that was in batch mode and goes on in streaming mode, or
// the other way round, has on disk several parts of a group, or several copies of it. It
// must not spill them again before all of them are there.
func TestPartsOfTheOtherForm(t *testing.T) {
	const keys, rounds = 700, 5
	ctx := expr.NewContext(nil, 1)
	for _, updates := range []bool{false, true} {
		counts := map[int64]int64{}
		out := &Results{Emit: func(b *batch.Batch) error {
			for i := range b.Len {
				if b.Kinds == nil || b.Kinds[i] == batch.Insert || b.Kinds[i] == batch.UpdateAfter {
					counts[b.Cols[0].I64[i]] = b.Cols[1].I64[i]
				}
			}
			return nil
		}, Dead: func(_ *batch.Batch, e *batch.ValueError) { t.Fatal(e) }}
		fresh := func(updates bool) *GroupAggregate {
			op := &graph.GroupAggregate{Updates: updates}
			g, err := NewGroupAggregate(op, pairSchema, groupsOut(t, op), 0)
			if err != nil {
				t.Fatal(err)
			}
			g.SpillTo(spill.New(vfs.NewMem(), "/spill"), 1<<14)
			return g
		}
		var rows []change
		for k := range int64(keys) {
			rows = append(rows, change{k: k})
		}
		g := fresh(updates)
		for range rounds {
			if err := g.Fold(ctx, changesOf(rows), out); err != nil {
				t.Fatal(err)
			}
			if err := g.Spill(); err != nil {
				t.Fatal(err)
			}
		}
		p := new(state.Payload)
		if err := g.SaveTo(p); err != nil {
			t.Fatal(err)
		}
		if p.Parts() < 4 {
			t.Fatalf("%d parts", p.Parts())
		}
		next := fresh(!updates)
		for i := range p.Parts() {
			var b bytes.Buffer
			if _, err := p.WritePart(&b, i, nil); err != nil {
				t.Fatal(err)
			}
			if err := next.Load(b.Bytes(), state.Range{From: 0, To: state.Groups}); err != nil {
				t.Fatal(err)
			}
			if err := next.Spill(); err != nil { // as the task may ask for it
				t.Fatal(err)
			}
		}
		p.Release()
		if !next.Spilled() {
			t.Error("nothing was spilled in the end")
		}
		clear(counts)
		if err := next.Fold(ctx, changesOf(rows), out); err != nil {
			t.Fatal(err)
		}
		if err := next.Advance(ctx, batch.MaxWatermark, out); err != nil {
			t.Fatal(err)
		}
		for k := range int64(keys) {
			if counts[k] != rounds+1 {
				t.Fatalf("updates %t: key %d has %d rows, want %d", updates, k, counts[k], rounds+1)
			}
		}
	}
}

// TestLargeStateInMemoryIsSavedInParts: state that never was on disk is cut, too, and goes
// on from its parts. What cannot spill is one part.
func TestLargeStateInMemoryIsSavedInParts(t *testing.T) {
	type largeCase struct {
		keyedCase
		joins bool
		least int
	}
	var cases []largeCase
	for _, c := range keyedCases(t) {
		cases = append(cases, largeCase{keyedCase: c, least: 2})
	}
	for _, c := range []struct {
		pairJoin
		least int
	}{{pairJoin{kind: graph.InnerJoin}, 2}, {pairJoin{kind: graph.SemiJoin}, 2}, {pairJoin{kind: graph.MarkJoin, nullAware: true}, 1}} {
		cases = append(cases, largeCase{keyedCase{name: fmt.Sprintf("%+v", c.pairJoin), fresh: c.operator(t, [2]bool{}, 0)}, true, c.least})
	}
	for i, c := range cases {
		rng := rand.New(rand.NewPCG(1, uint64(300+i)))
		r := &keyedRun{keyedCase: c.keyedCase, rng: rng, keys: 60_000}
		r.retracts = false
		s := newSpilled(t, rng, c.fresh)
		k := c.fresh().(Spilling)
		s.disk = k // it has no disk
		feed := func(rows int) {
			r.now, r.wm = r.now+1, r.wm+10
			in := r.batch(rows)
			if c.joins {
				in = sideOf(rng.IntN(2), r.there[len(r.there)-rows:])
			}
			s.both(func(k Keyed, out *Results) error { return r.step(k, in, out) })
			s.same("%s", c.name)
		}
		for range 10 {
			feed(2000)
		}
		p := new(state.Payload)
		if err := s.disk.SaveTo(p); err != nil {
			t.Fatal(err)
		}
		var parts [][]byte
		for i := range p.Parts() {
			var b bytes.Buffer
			if _, err := p.WritePart(&b, i, nil); err != nil {
				t.Fatal(err)
			}
			if b.Len() > 2*PartBytes && c.least > 1 {
				t.Errorf("%s: part %d has %d bytes", c.name, i, b.Len())
			}
			parts = append(parts, b.Bytes())
		}
		if len(parts) < c.least {
			t.Errorf("%s: %d parts", c.name, len(parts))
		}
		next := c.fresh().(Spilling)
		if a, ok := next.(Aging); ok && c.aging {
			a.Age(r.now)
		}
		loadParts(t, next, parts, state.Range{From: 0, To: state.Groups})
		s.disk = next
		for range 2 {
			feed(2000)
		}
	}
}
