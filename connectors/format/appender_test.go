package format

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

var oneColumn = &batch.Schema{Fields: []types.Field{{Name: "a", Type: types.NewBigInt()}}}

// TestOffsets gives records of 0 to 3 rows at offsets with gaps and looks
// every row's origin up again.
func TestOffsets(t *testing.T) {
	const seed = 3
	r := rand.New(rand.NewPCG(seed, 1))
	for round := range 300 {
		a, b := NewAppender(), new(batch.Batch)
		a.Begin(b, oneColumn)
		type origin struct {
			split  int32
			offset int64
			index  int32
		}
		var want []origin
		var notes []int64
		runs := 1 + r.IntN(3)
		for s := range int32(runs) {
			offset := r.Int64N(1 << 40)
			a.BeginRun(s, offset)
			for range r.IntN(6) {
				rows := 1
				if round%3 > 0 {
					rows = r.IntN(4)
				}
				for i := range rows {
					AppendInt64(a.Column(0), offset)
					want = append(want, origin{s, offset, int32(i)})
				}
				if rows == 0 {
					a.Note(offset, batch.CodeEmpty, "", "")
					notes = append(notes, offset)
				} else {
					a.Commit(offset, rows)
				}
				offset++
				if round%3 == 2 {
					offset += r.Int64N(3)
				}
				if round%30 == 29 {
					offset += math.MaxInt32 - 5
				}
			}
			a.EndRun(offset, 1)
		}
		a.Finish()
		if b.Len != len(want) {
			t.Fatalf("seed %d: %d rows, want %d", seed, b.Len, len(want))
		}
		row, note := 0, 0
		for i := range b.Runs {
			run := &b.Runs[i]
			if int(run.FirstRow) != row || int(run.FirstNote) != note {
				t.Fatalf("seed %d: run %+v does not follow row %d, note %d", seed, run, row, note)
			}
			for range run.Rows {
				if w := want[row]; w != (origin{run.Partition, b.Offset(run, row), b.Index(row)}) {
					t.Fatalf("seed %d: row %d is (%d %d %d), want %v", seed, row, run.Partition, b.Offset(run, row), b.Index(row), w)
				}
				if o := b.Offset(run, row); o < run.BaseOffset || o >= run.EndOffset {
					t.Fatalf("seed %d: offset %d is outside of %+v", seed, o, run)
				}
				row++
			}
			for range run.Notes {
				if b.Notes[note].Offset != notes[note] {
					t.Fatal("note", note)
				}
				note++
			}
		}
		if row != b.Len || note != len(notes) {
			t.Fatalf("seed %d: runs cover %d rows, %d notes", seed, row, note)
		}
		if round%3 == 0 && round%30 != 29 && (b.OffsetDelta != nil || b.RowIndex != nil) {
			t.Fatal("consecutive offsets were written out")
		}
	}
}

func TestFinishRefusesUnevenColumns(t *testing.T) {
	a, b := NewAppender(), new(batch.Batch)
	a.Begin(b, oneColumn)
	a.BeginRun(0, 0)
	a.Commit(0, 1)
	a.EndRun(1, 0)
	defer func() {
		if recover() == nil {
			t.Error("a column without values passed")
		}
	}()
	a.Finish()
}

// TestTruncateUndoesAppends appends and drops at random to a nested column and
// compares with one built at once.
func TestTruncateUndoesAppends(t *testing.T) {
	const seed = 9
	r := rand.New(rand.NewPCG(seed, 1))
	f := func(n string, t types.Type) types.Field { return types.Field{Name: n, Type: t} }
	typ := types.NewRow(f("b", types.NewBoolean()), f("s", types.NewString()), f("l", types.NewArray(types.NewMap(types.NewString(), types.NewDecimal(20, 2)))))
	value := func(v *batch.Vec, x int) {
		switch x % 5 {
		case 0:
			AppendNull(v)
		case 1:
			AppendErr(v, batch.CodeTypeMismatch, "v", fmt.Sprint(x))
		default:
			AppendBool(v.Children[0], x%3 == 0)
			if x%7 == 0 {
				AppendNull(v.Children[1])
			} else {
				AppendString(v.Children[1], fmt.Sprint(x))
			}
			l := v.Children[2]
			m := l.Children[0]
			for i := range x % 4 {
				AppendString(m.Children[0], fmt.Sprint(i))
				if i == 1 {
					AppendErr(m.Children[1], batch.CodeTypeMismatch, "m", "")
				} else {
					AppendDecimal128(m.Children[1], types.Decimal128{Lo: uint64(x)})
				}
				CloseList(m)
			}
			CloseList(l)
			v.Len++
		}
	}
	var got, want batch.Vec
	got.Reset(typ, 0)
	var kept []int
	for range 2000 {
		if r.IntN(4) == 0 {
			n := r.IntN(len(kept) + 1)
			Truncate(&got, n)
			kept = kept[:n]
			continue
		}
		x := r.IntN(1000)
		value(&got, x)
		kept = append(kept, x)
		if len(kept) > 60 {
			Truncate(&got, 0)
			kept = kept[:0]
		}
	}
	want.Reset(typ, 0)
	for _, x := range kept {
		value(&want, x)
	}
	Seal(&got)
	Seal(&want)
	same(t, "v", &got, &want)
}

func same(t *testing.T, path string, a, b *batch.Vec) {
	t.Helper()
	if a.Len != b.Len || len(a.Errs) != len(b.Errs) || string(a.Data) != string(b.Data) || fmt.Sprint(a.Offsets, a.D128) != fmt.Sprint(b.Offsets, b.D128) {
		t.Errorf("%s differs: %d and %d values, %d and %d errors", path, a.Len, b.Len, len(a.Errs), len(b.Errs))
		return
	}
	for i := range a.Len {
		if a.IsNull(i) != b.IsNull(i) || (a.Err(i) == nil) != (b.Err(i) == nil) {
			t.Errorf("%s row %d differs", path, i)
		}
		if a.Type.Kind == types.Boolean && !a.IsNull(i) && a.Bools.Get(i) != b.Bools.Get(i) {
			t.Errorf("%s row %d differs", path, i)
		}
	}
	for i := range a.Children {
		same(t, fmt.Sprint(path, ".", i), a.Children[i], b.Children[i])
	}
}

func TestExcerpt(t *testing.T) {
	if got := Excerpt([]byte("日本語日本語日本語日本語日本語日本語日本語日本語")); got != "日本語日本語日本語日本語日本語日本語日本語..." {
		t.Error(got)
	}
}
