package operator

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
)

// squares is a table of (k, k*k) for every even k, and notes what it was asked for.
type squares struct {
	asked []int64
	fail  error
}

func (s *squares) Find(_ context.Context, keys *connector.LookupKeys, out *connector.Found) error {
	if s.fail != nil {
		return s.fail
	}
	out.Reset()
	rows := new(batch.Batch)
	rows.Reset(&batch.Schema{Fields: []types.Field{{Name: "sq", Type: types.NewBigInt()}}})
	rows.Cols[0].Reset(types.NewBigInt(), keys.Len())
	rows.Len = keys.Len()
	for i := range keys.Len() {
		k := keys.Cols[0].Int64(i)
		s.asked = append(s.asked, k)
		if rows.Cols[0].SetInt64(i, k*k); k%2 == 0 {
			out.Sel = append(out.Sel, int32(i))
		}
		out.EndKey()
	}
	out.Rows = rows
	return nil
}

func (*squares) Local() bool  { return false }
func (*squares) Close() error { return nil }

// TestLookupAsksOnce: a key that many rows of a batch have is asked for once; a table
// that does not answer leaves an error and no rows.
func TestLookupAsksOnce(t *testing.T) {
	in := &batch.Schema{Fields: []types.Field{{Name: "k", Type: types.NewBigInt()}}}
	out := &batch.Schema{Fields: []types.Field{in.Fields[0], {Name: "sq", Type: types.NewBigInt()}}}
	table := &connector.Table{Name: "d", Columns: []connector.Column{{Field: in.Fields[0]}, {Field: out.Fields[1]}}}
	op := &graph.Lookup{Table: table, Columns: []int{1}, Outer: true, Keys: []graph.LookupKey{{Column: 0, Value: &expr.Column{Index: 0, Name: "k", T: in.Fields[0].Type}}}}
	s := &squares{}
	l, err := NewLookup(op, s, in, out)
	if err != nil {
		t.Fatal(err)
	}
	waits := 0
	l.wait = func(f func(context.Context) error) error { waits++; return f(context.Background()) }
	b := &batch.Batch{Schema: in, Cols: make([]batch.Vec, 1), Len: 6}
	b.Cols[0].Reset(in.Fields[0].Type, 6)
	for i, k := range []int64{4, 3, 4, 4, 6, 3} {
		b.Cols[0].SetInt64(i, k)
	}
	var got Rows
	for range 2 { // the second call re-uses the memory of the first
		s.asked = nil
		l.Eval(expr.NewContext(nil, 0), &Rows{Batch: b, Sel: batch.Sel{0, 1, 2, 4, 5}}, &got)
		if got.Err != nil || !slices.Equal(s.asked, []int64{4, 3, 6}) {
			t.Fatalf("asked for %v (%v)", s.asked, got.Err)
		}
		sq := &got.Batch.Cols[1]
		var values []int64
		for i := range got.Batch.Len {
			if sq.IsNull(i) {
				values = append(values, -1)
			} else {
				values = append(values, sq.Int64(i))
			}
		}
		if !slices.Equal(values, []int64{16, -1, 16, 36, -1}) || !slices.Equal(got.Origin, []int32{0, 1, 2, 4, 5}) {
			t.Errorf("values %v of rows %v", values, got.Origin)
		}
	}
	if waits != 2 {
		t.Errorf("it waited %d times, want 2", waits)
	}
	s.fail = errors.New("no answer")
	if l.Eval(expr.NewContext(nil, 0), &Rows{Batch: b}, &got); !errors.Is(got.Err, s.fail) {
		t.Errorf("error %v", got.Err)
	}
}
