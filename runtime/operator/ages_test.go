package operator

import (
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// timedSchema is a key and a row time.
var timedSchema = &batch.Schema{Fields: []types.Field{{Name: "k", Type: types.NewBigInt()}, {Name: "ts", Type: types.NewTimestamp(3)}}}

// timed are rows of timedSchema: keys with times in ms.
func timed(rows ...[2]int64) *KeyedRows {
	var changes []change
	for _, r := range rows {
		changes = append(changes, change{r[0], r[1], batch.Insert})
	}
	in := changesOf(changes)
	in.Batch.Schema, in.Batch.Kinds = timedSchema, nil
	v := batch.Vec{}
	v.Reset(types.NewTimestamp(3), len(rows))
	for i, r := range rows {
		v.I64[i] = r[1] * v.Type.UnitsPerSecond() / 1000
	}
	in.Batch.Cols[1] = v
	return in
}

// aged runs an operator of row time: what it gave in all.
type aged struct {
	t   testing.TB
	k   Aging
	out []int64 // the last column of each row
}

func (a *aged) step(now, watermark int64, rows ...[2]int64) {
	a.t.Helper()
	a.k.Age(now)
	res := &Results{Emit: func(b *batch.Batch) error {
		for i := range b.Len {
			a.out = append(a.out, b.Cols[len(b.Cols)-1].Int64(i))
		}
		return nil
	}, Dead: func(_ *batch.Batch, e *batch.ValueError) { a.t.Fatal(e) }}
	if len(rows) > 0 {
		if err := a.k.Fold(expr.NewContext(nil, 0), timed(rows...), res); err != nil {
			a.t.Fatal(err)
		}
	}
	if err := a.k.Advance(expr.NewContext(nil, 0), watermark, res); err != nil {
		a.t.Fatal(err)
	}
}

// TestTimeToLiveOfRowTime: the first row of a key is given again, and a running count
// begins anew, after their time; not for a key whose rows still wait.
func TestTimeToLiveOfRowTime(t *testing.T) {
	number := &batch.Schema{Fields: append(slices.Clone(timedSchema.Fields), types.Field{Name: "n", Type: types.NewBigInt()})}
	first := func() Aging {
		k, err := NewFirstRow(&graph.FirstRow{Time: 1, Keys: []int{0}, Number: true, TTL: 100}, timedSchema, number)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	count := aggregateOf(t, "COUNT")
	over := func() Aging {
		k, err := NewOver(&graph.Over{Time: 1, Keys: []int{0}, Order: []graph.SortKey{{Column: 1}}, TTL: 100, Calls: []graph.OverCall{{Name: "n", Text: "COUNT(*)",
			Bound: count.Bound, Default: -1, Filter: -1, Frame: graph.Frame{Rows: true, End: graph.FrameBound{Kind: graph.CurrentRow}}}}}, timedSchema, number)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	for name, c := range map[string]struct {
		fresh func() Aging
		want  []int64
	}{"first row": {first, []int64{1, 1, 1, 1}}, "over": {over, []int64{1, 2, 1, 1, 1, 2}}} {
		a := &aged{t: t, k: c.fresh()}
		a.step(0, 1000, [2]int64{1, 1000})
		a.step(90, 2000, [2]int64{1, 2000}) // known
		a.step(190, 3000, [2]int64{1, 3000})
		a.step(190, 3000, [2]int64{2, 5000}) // waits
		a.step(500, 6000)
		if got := a.k.Age(599); got != 0 && name == "over" {
			t.Errorf("%s: %d keys gone that had rows waiting until now", name, got)
		}
		payload := a.k.Save()
		b := &aged{t: t, k: c.fresh(), out: a.out}
		b.k.Age(9000)
		if err := b.k.Load(payload, state.Range{From: 0, To: state.Groups}); err != nil {
			t.Fatal(err)
		}
		b.step(9200, 7000, [2]int64{1, 7000})
		b.step(9201, 8000, [2]int64{1, 8000})
		if !slices.Equal(b.out, c.want) {
			t.Errorf("%s: %v, want %v", name, b.out, c.want)
		}
	}
}
