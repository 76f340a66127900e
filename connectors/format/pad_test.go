package format_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// TestNullRows: fields of rows that are NULL are NULL, wherever they stand, in fields
// of each layout, and after a row is taken back.
func TestNullRows(t *testing.T) {
	inner := types.NewRow(types.Field{Name: "x", Type: types.NewString()})
	typ := types.NewRow(
		types.Field{Name: "b", Type: types.NewBoolean()}, types.Field{Name: "i8", Type: types.NewTinyInt()}, types.Field{Name: "i16", Type: types.NewSmallInt()},
		types.Field{Name: "i", Type: types.NewInt()}, types.Field{Name: "l", Type: types.NewBigInt()}, types.Field{Name: "f", Type: types.NewFloat()},
		types.Field{Name: "d", Type: types.NewDouble()}, types.Field{Name: "n", Type: types.NewDecimal(30, 2)}, types.Field{Name: "s", Type: types.NewString()},
		types.Field{Name: "a", Type: types.NewArray(types.NewInt())}, types.Field{Name: "r", Type: inner})
	var v batch.Vec
	v.Reset(typ, 0)
	begin := func() {
		format.BeginRow(&v)
		c := v.Children
		format.AppendBool(c[0], true)
		format.AppendInt8(c[1], 1)
		format.AppendInt16(c[2], 2)
		format.AppendInt32(c[3], 3)
		format.AppendInt64(c[4], 4)
		format.AppendFloat32(c[5], 5)
		format.AppendFloat64(c[6], 6)
		format.AppendDecimal128(c[7], types.DecimalFromInt64(700))
		format.AppendString(c[8], "eight")
		format.AppendInt32(c[9].Children[0], 9)
		format.CloseList(c[9])
		format.BeginRow(c[10])
		format.AppendString(c[10].Children[0], "ten")
		c[10].Len++
	}
	var want []string
	const full, null = "full", "NULL"
	for i := range 300 {
		switch {
		case i%37 == 5: // a row that is begun and taken back
			begin()
			format.Truncate(&v, v.Len)
			format.AppendNull(&v)
			want = append(want, null)
		case i%37 == 9:
			format.AppendErr(&v, batch.CodeTypeMismatch, "r", "bad")
			want = append(want, null)
		case i%37 == 11: // several rows that are taken back
			format.Truncate(&v, v.Len-4)
			want = want[:len(want)-4]
		case i%7 < 3 || i > 120 && i < 200:
			format.AppendNull(&v)
			want = append(want, null)
		default:
			begin()
			v.Len++
			want = append(want, full)
		}
	}
	format.Seal(&v)
	if v.Len != len(want) {
		t.Fatalf("%d rows, want %d", v.Len, len(want))
	}
	for k, c := range v.Children {
		if c.Len != v.Len {
			t.Fatalf("field %d has %d values of %d", k, c.Len, v.Len)
		}
	}
	texts := strings.Fields("TRUE 1 2 3 4 5.0 6.0 7.00 eight")
	for i, w := range want {
		if v.IsNull(i) != (w == null) {
			t.Fatalf("row %d: null is %t, want %s", i, v.IsNull(i), w)
		}
		for k, c := range append(v.Children[:10:10], v.Children[10].Children[0]) {
			if got := string(batch.AppendText(nil, c, i, types.UTC())); w == null && got != null || w == full && k < len(texts) && got != texts[k] || w == full && got == null {
				t.Fatalf("row %d, %s: field %d is %s", i, w, k, got)
			}
		}
	}
}
