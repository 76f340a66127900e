package watermark

import (
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/types"
)

// times makes a batch of TIMESTAMP(3) rows of partition 0, in ms; -1 is NULL.
func times(ms ...int64) *batch.Batch {
	b := &batch.Batch{}
	b.Reset(&batch.Schema{Fields: []types.Field{{Name: "ts", Type: types.NewTimestamp(3)}}})
	b.Len = len(ms)
	b.Cols[0].Reset(b.Schema.Fields[0].Type, b.Len)
	for i, x := range ms {
		if x == -1 {
			b.Cols[0].SetNull(i)
		} else {
			b.Cols[0].SetInt64(i, x*1000)
		}
	}
	b.Runs = []batch.Run{{Rows: int32(b.Len), EndOffset: int64(b.Len)}}
	return b
}

func assigner(t *testing.T, b *batch.Batch) *Assigner {
	t.Helper()
	a, err := NewAssigner(&expr.Column{Name: "ts", T: b.Schema.Fields[0].Type}, b.Schema, 1)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestWatermarkBeforeEachRow: a row sees the maximum of the rows before it,
// NULLs move nothing, and cutting the input into batches changes nothing.
func TestWatermarkBeforeEachRow(t *testing.T) {
	in := []int64{5, 3, -1, 9, 7}
	want := []int64{batch.NoWatermark, 5, 5, 5, 9}
	for size := 1; size <= len(in); size++ {
		var got []int64
		var a *Assigner
		ctx := expr.NewContext(nil, 0)
		for chunk := range slices.Chunk(in, size) {
			b := times(chunk...)
			if a == nil {
				a = assigner(t, b)
			}
			a.Advance(ctx, b)
			got = append(got, b.Watermark...)
		}
		if !slices.Equal(got, want) || a.Current(0) != 9 {
			t.Errorf("batches of %d: %v, then %d", size, got, a.Current(0))
		}
	}
}

func TestMillisRoundsDown(t *testing.T) {
	for _, c := range []struct{ ts, units, want int64 }{{1999, 1e6, 1}, {-1, 1e6, -1}, {-1000, 1e6, -1}, {-1001, 1e6, -2}, {1_999_999, 1e9, 1}} {
		if got := Millis(c.ts, c.units); got != c.want {
			t.Errorf("Millis(%d, %d) = %d, want %d", c.ts, c.units, got, c.want)
		}
	}
}

// TestLateEdge: Flink's edge. The window [0, 10 s) ends with 9,999 ms: a row is
// late once the watermark stands there, and not a millisecond before.
func TestLateEdge(t *testing.T) {
	for _, c := range []struct {
		watermark, lateness int64
		want                bool
	}{{9_998, 0, false}, {9_999, 0, true}, {9_999, 1, false}, {10_000, 1, true}, {batch.NoWatermark, 0, false}, {batch.MaxWatermark, 0, true}} {
		if got := Late(c.watermark, 10_000, c.lateness); got != c.want {
			t.Errorf("watermark %d, lateness %d: late is %v", c.watermark, c.lateness, got)
		}
	}
}

func TestIdleness(t *testing.T) {
	s := NewIdleness(100, 2)
	s.Observe(0, true, 1000)
	s.Observe(1, false, 1000)
	if got := s.Due(1099, nil); len(got) > 0 || s.Next() != 1100 {
		t.Errorf("idle %v before the timeout, next at %d", got, s.Next())
	}
	s.Observe(0, true, 1050) // still at the end: the time counts on
	if got := s.Due(1100, nil); !slices.Equal(got, []int32{0}) || !s.Idle(0) || s.Idle(1) {
		t.Errorf("idle %v", got)
	}
	if got := s.Due(1200, nil); len(got) > 0 {
		t.Errorf("told twice: %v", got)
	}
	s.Observe(0, false, 1300)
	s.Rejoined(0)
	s.Observe(1, true, 1300)
	s.Observe(1, false, 1350) // one record in between starts the time anew
	s.Observe(1, true, 1360)
	if got := s.Due(1400, nil); len(got) > 0 || s.Idle(0) {
		t.Errorf("idle %v", got)
	}
	if got := NewIdleness(0, 1); got.Next() != -1 {
		t.Error("timeout 0 is never")
	}
}
