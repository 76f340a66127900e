package rawfmt

import (
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

func notNull(t types.Type) types.Type { return t.WithNullable(false) }

// decodeAll decodes records into one column.
func decodeAll(t *testing.T, typ types.Type, options map[string]string, records ...[]byte) *batch.Batch {
	t.Helper()
	schema := &batch.Schema{Fields: []types.Field{{Name: "x", Type: typ}}}
	d, err := Format{}.NewDecoder(format.DecoderConfig{Fields: schema.Fields, Options: format.FromMap(options)})
	if err != nil {
		t.Fatal(err)
	}
	a, b := format.NewAppender(), new(batch.Batch)
	a.Begin(b, schema)
	a.BeginRun(0, 0)
	for i, r := range records {
		d.Decode(r, int64(i), a)
	}
	a.EndRun(int64(len(records)), 0)
	a.Finish()
	return b
}

// The bytes are those of Java's ByteBuffer, which Flink's format raw uses.
func TestForms(t *testing.T) {
	const little = "little-endian"
	for _, x := range []struct {
		typ   types.Type
		order string
		hex   string
		want  string
	}{
		{types.NewString(), "", "c3a9", "é"},
		{types.NewString(), "", "", ""},
		{types.NewVarchar(2), "", "c3a961", "éa"},
		{types.NewBytes(), "", "ff00", "\xff\x00"},
		{types.Simple(types.Boolean), "", "00", "false"},
		{types.Simple(types.Boolean), "", "02", "true"},
		{types.Simple(types.TinyInt), "", "ff", "-1"},
		{types.Simple(types.SmallInt), "", "0102", "258"},
		{types.Simple(types.SmallInt), little, "0102", "513"},
		{types.Simple(types.Int), "", "fffffffe", "-2"},
		{types.Simple(types.Int), little, "feffffff", "-2"},
		{types.NewBigInt(), "", "0000000000000100", "256"},
		{types.NewBigInt(), little, "0001000000000000", "256"},
		{types.Simple(types.Float), "", "3fc00000", "1.5"},
		{types.Simple(types.Double), "", "7ff0000000000000", "+Inf"},
		{types.Simple(types.Double), little, "000000000000f0bf", "-1"},
	} {
		record, err := hex.DecodeString(x.hex)
		if err != nil {
			t.Fatal(err)
		}
		options := map[string]string{}
		if x.order != "" {
			options["raw.endianness"] = x.order
		}
		b := decodeAll(t, x.typ, options, record)
		if got := text(&b.Cols[0], 0); b.Len != 1 || got != x.want || b.Cols[0].HasErrs() {
			t.Errorf("%s of %s %s is %q, want %q", x.typ, x.hex, x.order, got, x.want)
			continue
		}
		e, err := Format{}.NewEncoder(format.EncoderConfig{Fields: b.Schema.Fields, Options: format.FromMap(options)})
		if err != nil {
			t.Fatal(err)
		}
		back, err := e.AppendRow([]byte{7}, b, 0)
		if x.hex == "02" {
			x.hex = "01"
		}
		if err != nil || hex.EncodeToString(back) != "07"+x.hex {
			t.Errorf("%s %q is written as %x, %v; want %s", x.typ, x.want, back, err, x.hex)
		}
	}
}

func text(v *batch.Vec, i int) string {
	switch v.Type.Kind {
	case types.Boolean:
		return fmt.Sprint(v.Bools.Get(i))
	case types.TinyInt:
		return fmt.Sprint(v.I8[i])
	case types.SmallInt:
		return fmt.Sprint(v.I16[i])
	case types.Int:
		return fmt.Sprint(v.I32[i])
	case types.BigInt:
		return fmt.Sprint(v.I64[i])
	case types.Float:
		return fmt.Sprint(v.F32[i])
	case types.Double:
		return fmt.Sprint(v.F64[i])
	}
	return string(v.Bytes(i))
}

func TestFaults(t *testing.T) {
	b := decodeAll(t, types.Simple(types.Int), nil, []byte{1, 2, 3}, nil, []byte{0, 0, 0, 1})
	if b.Len != 2 || len(b.Notes) != 1 || b.Notes[0].Code != batch.CodeEmpty || b.Notes[0].Offset != 1 {
		t.Fatalf("%d rows, notes %+v", b.Len, b.Notes)
	}
	if e := b.Cols[0].Err(0); e == nil || e.Code != batch.CodeTypeMismatch || e.Message != "3 bytes are not INT, which has 4" {
		t.Errorf("three bytes: %+v", e)
	}
	for _, x := range []struct {
		typ    types.Type
		record string
		want   string
	}{
		{types.NewString(), "a\xff", "not UTF-8"},
		{types.NewVarchar(2), "abc", `"abc" is not VARCHAR(2)`},
		{types.NewBinary(2), "abc", "is not BINARY(2)"},
	} {
		b := decodeAll(t, x.typ, nil, []byte(x.record))
		if e := b.Cols[0].Err(0); e == nil || !strings.Contains(e.Message, x.want) {
			t.Errorf("%s of %q: %+v, want %q", x.typ, x.record, e, x.want)
		}
	}
	b = decodeAll(t, types.NewString(), map[string]string{"raw.on-error": "null"}, []byte("\xff"))
	if b.Cols[0].HasErrs() || !b.Cols[0].IsNull(0) {
		t.Error("on-error null leaves an error")
	}
	b = decodeAll(t, notNull(types.NewString()), map[string]string{"raw.on-error": "null"}, []byte("\xff"))
	if !b.Cols[0].HasErrs() {
		t.Error("NULL in a NOT NULL column")
	}
	for _, fields := range [][]types.Field{
		{{Name: "a", Type: types.NewString()}, {Name: "b", Type: types.NewString()}},
		{{Name: "a", Type: types.NewTimestamp(3)}},
		{{Name: "a", Type: types.NewDecimal(5, 2)}},
		{},
	} {
		if _, err := (Format{}).NewDecoder(format.DecoderConfig{Fields: fields}); err == nil {
			t.Errorf("columns %v are taken", fields)
		}
	}
	e, err := Format{}.NewEncoder(format.EncoderConfig{Fields: []types.Field{{Name: "x", Type: types.NewString()}}})
	if err != nil {
		t.Fatal(err)
	}
	null := new(batch.Batch)
	null.Reset(&batch.Schema{Fields: []types.Field{{Name: "x", Type: types.NewString()}}})
	null.Cols[0].Reset(types.NewString(), 0)
	format.AppendNull(&null.Cols[0])
	null.Len = 1
	if _, err := e.AppendRow(nil, null, 0); err == nil || !e.(format.Refuser).MayRefuse() {
		t.Errorf("NULL is written: %v", err)
	}
}

func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("12345678"), uint8(0), false)
	f.Add([]byte{0xff}, uint8(1), true)
	kinds := []types.Type{types.NewBigInt(), types.Simple(types.TinyInt), types.Simple(types.SmallInt), types.Simple(types.Int), types.Simple(types.Double), types.Simple(types.Float), types.NewBytes(), types.NewString()}
	f.Fuzz(func(t *testing.T, record []byte, kind uint8, little bool) {
		typ := kinds[int(kind)%len(kinds)]
		options := map[string]string{}
		if little {
			options["raw.endianness"] = "little-endian"
		}
		b := decodeAll(t, typ, options, append([]byte{}, record...))
		if b.Len != 1 || b.Cols[0].HasErrs() {
			return
		}
		e, err := Format{}.NewEncoder(format.EncoderConfig{Fields: b.Schema.Fields, Options: format.FromMap(options)})
		if err != nil {
			t.Fatal(err)
		}
		back, err := e.AppendRow(nil, b, 0)
		if err != nil || string(back) != string(record) && !(typ.Kind == types.Float && math.IsNaN(float64(b.Cols[0].F32[0]))) {
			t.Errorf("%s %x becomes %x, %v", typ, record, back, err)
		}
	})
}
