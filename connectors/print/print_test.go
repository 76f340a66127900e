package print

import (
	"bytes"
	"context"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// TestLines: Flink's form of a row, kinds, the identifier, and one printing
// whatever is called how often.
func TestLines(t *testing.T) {
	var out, errOut bytes.Buffer
	c := New(&out, &errOut)
	v, errs := c.Spec().Resolve(map[string]string{"connector": "print", "print-identifier": "orders"})
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	ctx := context.Background()
	s, err := c.OpenSink(ctx, &connector.Table{Options: v}, connector.Owner{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.OpenWriter(ctx, connector.Attempt{})
	if err != nil {
		t.Fatal(err)
	}
	fields := []types.Field{
		{Name: "id", Type: types.NewBigInt()}, {Name: "name", Type: types.NewString()}, {Name: "d", Type: types.NewDecimal(9, 2)},
		{Name: "at", Type: types.NewTimestamp(3)}, {Name: "ltz", Type: types.NewTimestampLTZ(3)}, {Name: "tags", Type: types.NewArray(types.NewInt())},
		{Name: "m", Type: types.NewMap(types.NewString(), types.NewBoolean())}, {Name: "r", Type: types.NewRow(types.Field{Name: "x", Type: types.NewDouble()})},
		{Name: "b", Type: types.NewBytes()}, {Name: "day", Type: types.NewDate()}, {Name: "tm", Type: types.NewTime(3)},
	}
	b := new(batch.Batch)
	b.Reset(&batch.Schema{Fields: fields})
	for i, f := range fields {
		b.Cols[i].Reset(f.Type, 2)
	}
	b.Len = 2
	copy(b.Cols[0].I64, []int64{1, -2})
	b.Cols[1].Data, b.Cols[1].Offsets = []byte("hello"), []int32{0, 5, 5}
	copy(b.Cols[2].I64, []int64{-5, 110})
	copy(b.Cols[3].I64, []int64{1714550400000000, -1000})
	copy(b.Cols[4].I64, []int64{1714550400123000, 0})
	b.Cols[5].Offsets = []int32{0, 2, 2}
	b.Cols[5].Children[0].Reset(types.NewInt(), 2)
	copy(b.Cols[5].Children[0].I32, []int32{7, 8})
	b.Cols[6].Offsets = []int32{0, 1, 1}
	b.Cols[6].Children[0].Reset(types.NewString().NotNull(), 1)
	b.Cols[6].Children[0].Data, b.Cols[6].Children[0].Offsets = []byte("k"), []int32{0, 1}
	b.Cols[6].Children[1].Reset(types.NewBoolean(), 1)
	b.Cols[7].Children[0].F64[0] = 1.5
	b.Cols[7].SetNull(1)
	b.Cols[8].Data, b.Cols[8].Offsets = []byte{1, 255}, []int32{0, 2, 2}
	copy(b.Cols[9].I32, []int32{19844, -1})
	copy(b.Cols[10].I32, []int32{28800000, 1})
	b.Cols[1].SetNull(1)
	b.Kinds = []batch.Kind{batch.Insert, batch.UpdateAfter}
	ids, err := w.Buckets(b, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(b, nil, ids[0]); err != nil {
		t.Fatal(err)
	}
	as, err := w.Seal(ctx, []connector.SealRequest{{Header: connector.Header{Rows: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	if out.Len() > 0 {
		t.Error("printed before it was published")
	}
	if o, _ := s.Resolve(ctx, as); o[0] != connector.Sealed {
		t.Errorf("outcome %v", o)
	}
	for range 2 {
		if errs := s.Publish(ctx, as); errs[0] != nil {
			t.Fatal(errs)
		}
	}
	want := "orders> +I[1, hello, -0.05, 2024-05-01T08:00:00, 2024-05-01T08:00:00.123Z, [7, 8], {k=false}, +I[1.5], [1, -1], 2024-05-01, 08:00:00]\n" +
		"orders> +U[-2, null, 1.10, 1969-12-31T23:59:59.999, 1970-01-01T00:00:00Z, [], {}, null, [], 1969-12-31, 00:00:00.001]\n"
	if out.String() != want || errOut.Len() > 0 {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}
