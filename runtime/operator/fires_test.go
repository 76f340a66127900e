package operator

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
)

// clickSchema is a key, a value and a row time.
var clickSchema = &batch.Schema{Fields: []types.Field{{Name: "k", Type: types.NewBigInt()}, {Name: "v", Type: types.NewBigInt()},
	{Name: "ts", Type: types.NewTimestamp(3)}}}

// click is a row that comes, or is taken back.
type click struct {
	k, v, ts int64
	back     bool
}

// clicksOf makes rows, read when their partition had come to a watermark.
func clicksOf(clicks []click, wm int64) *KeyedRows {
	b := &batch.Batch{Schema: clickSchema, Cols: make([]batch.Vec, 3), Len: len(clicks)}
	in := &KeyedRows{Batch: b, Sel: batch.Sel{}, Hashes: make([]uint64, len(clicks))}
	for c := range b.Cols {
		b.Cols[c].Reset(clickSchema.Fields[c].Type, len(clicks))
	}
	var buf []byte
	for i, x := range clicks {
		b.Cols[0].I64[i], b.Cols[1].I64[i], b.Cols[2].I64[i] = x.k, x.v, x.ts*1000
		b.Watermark = append(b.Watermark, wm)
		b.Kinds = append(b.Kinds, batch.Insert)
		if x.back {
			b.Kinds[i] = batch.UpdateBefore
		}
		in.Sel = append(in.Sel, int32(i))
		in.Hashes[i], buf = batch.HashKey(buf, []*batch.Vec{&b.Cols[0]}, i)
	}
	return in
}

// changesOut is COUNT(*), SUM(v), MAX(v) by key and window.
func changesOut(t testing.TB, op *graph.WindowAggregate) *batch.Schema {
	op.Keys, op.Time = []int{0}, 2
	op.Aggregates = []graph.Aggregate{aggregateOf(t, "COUNT"), aggregateOf(t, "SUM", 1), aggregateOf(t, "MAX", 1)}
	out := &batch.Schema{Fields: []types.Field{{Name: "k", Type: types.NewBigInt()}}}
	for i := range op.Aggregates {
		out.Fields = append(out.Fields, types.Field{Name: op.Aggregates[i].Text, Type: op.Aggregates[i].Bound.Return})
	}
	return &batch.Schema{Fields: append(out.Fields, types.Field{Name: "s", Type: types.NewTimestamp(3)}, types.Field{Name: "e", Type: types.NewTimestamp(3)})}
}

// journal is results with their kinds, in order.
type journal []string

func (j *journal) results(t testing.TB) *Results {
	return &Results{Emit: func(b *batch.Batch) error {
		for i := range b.Len {
			cells := []string{[]string{"+I", "-U", "+U", "-D"}[b.KindOf(i)]}
			for c := range b.Cols {
				switch {
				case b.Cols[c].IsNull(i):
					cells = append(cells, "NULL")
				case b.Cols[c].Type.IsTimestamp():
					cells = append(cells, fmt.Sprint(b.Cols[c].I64[i]/1000))
				default:
					cells = append(cells, cell(&b.Cols[c], i))
				}
			}
			*j = append(*j, strings.Join(cells, " "))
		}
		return nil
	}, Dead: func(_ *batch.Batch, e *batch.ValueError) { t.Fatalf("a row died: %v", e) }}
}

// take is what came since the last call.
func (j *journal) take() []string { out := *j; *j = nil; return out }

// fires runs an operator by hand.
type fires struct {
	t   *testing.T
	w   *WindowChanges
	out journal
}

func newFires(t *testing.T, op *graph.WindowAggregate) *fires {
	w, err := NewWindowChanges(op, clickSchema, changesOut(t, op))
	if err != nil {
		t.Fatal(err)
	}
	return &fires{t: t, w: w}
}

func (f *fires) fold(now int64, clicks ...click) {
	f.t.Helper()
	ctx := expr.NewContext(nil, 0)
	ctx.Now = now * 1000
	if err := f.w.Fold(ctx, clicksOf(clicks, batch.NoWatermark), f.out.results(f.t)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fires) advance(wm int64) {
	f.t.Helper()
	if err := f.w.Advance(nil, wm, f.out.results(f.t)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fires) fire(now int64) {
	f.t.Helper()
	if err := f.w.Fire(now, f.out.results(f.t)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fires) want(what string, rows ...string) {
	f.t.Helper()
	if got := f.out.take(); !slices.Equal(got, rows) {
		f.t.Fatalf("%s: %q, want %q", what, got, rows)
	}
}

func (f *fires) due(want int64) {
	f.t.Helper()
	if at, ok := f.w.NextFiring(); at != want || ok != (want != 0) {
		f.t.Fatalf("the next firing is at %d (%v), want %d", at, ok, want)
	}
}
