package jsonfmt

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

func field(name string, t types.Type) types.Field { return types.Field{Name: name, Type: t} }

// fixture decodes records of a schema and renders what came out.
type fixture struct {
	t      testing.TB
	fields []types.Field
	d      *Decoder
	a      *format.Appender
	b      *batch.Batch
}

func newFixture(t testing.TB, fields []types.Field, options ...string) *fixture {
	t.Helper()
	m := map[string]string{}
	for _, o := range options {
		k, v, _ := strings.Cut(o, "=")
		m[k] = v
	}
	d, err := NewDecoder(format.DecoderConfig{Fields: fields, Options: format.FromMap(m)})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t: t, fields: fields, d: d, a: format.NewAppender(), b: new(batch.Batch)}
}

// decode gives one line a row, and a line "!code message" for each record
// that gave none.
func (f *fixture) decode(records ...string) []string {
	f.t.Helper()
	f.a.Begin(f.b, &batch.Schema{Fields: f.fields})
	f.a.BeginRun(0, 0)
	var notes int
	var out []string
	rows := 0
	for i, r := range records {
		// The exact capacity shows reads behind the end.
		value := append(make([]byte, 0, len(r)), r...)
		n := f.d.Decode(value[:len(r):len(r)], int64(i), f.a)
		rows += n
		if n == 0 {
			notes++
			if len(f.b.Notes) != notes {
				f.t.Fatalf("record %q: no row and no note", r)
			}
		}
	}
	f.a.EndRun(int64(len(records)), 0)
	f.a.Finish()
	if f.b.Len != rows {
		f.t.Fatalf("batch has %d rows, Decode said %d", f.b.Len, rows)
	}
	row, note := 0, 0
	for i := range records {
		if note < len(f.b.Notes) && f.b.Notes[note].Offset == int64(i) {
			n := f.b.Notes[note]
			out = append(out, strings.TrimSpace("!"+string(n.Code)+" "+n.Message))
			note++
			continue
		}
		for row < f.b.Len && f.b.Offset(&f.b.Runs[0], row) == int64(i) {
			out = append(out, f.row(row))
			row++
		}
	}
	if row != f.b.Len || note != len(f.b.Notes) {
		f.t.Fatalf("offsets are wrong: %d of %d rows, %d of %d notes", row, f.b.Len, note, len(f.b.Notes))
	}
	return out
}

func (f *fixture) row(i int) string {
	var s []string
	for c := range f.b.Cols {
		s = append(s, show(&f.b.Cols[c], i))
	}
	return strings.Join(s, " | ")
}

func (f *fixture) want(records []string, want ...string) {
	f.t.Helper()
	got := f.decode(records...)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		f.t.Errorf("records %q\n got:\n\t%s\nwant:\n\t%s", records, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// show renders a value; an error is E(code where: message).
func show(v *batch.Vec, i int) string {
	if e := v.Err(i); e != nil {
		return fmt.Sprintf("E(%s %s: %s)", e.Code, e.Where, e.Message)
	}
	if v.IsNull(i) {
		return "NULL"
	}
	list := func(f func(k int) string) string {
		var s []string
		for k := v.Offsets[i]; k < v.Offsets[i+1]; k++ {
			s = append(s, f(int(k)))
		}
		return strings.Join(s, ", ")
	}
	t := v.Type
	switch t.Kind {
	case types.Boolean:
		return strconv.FormatBool(v.Bools.Get(i))
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
	case types.Decimal:
		x := new(big.Int)
		if t.Precision <= 18 {
			x.SetInt64(v.I64[i])
		} else {
			x.Lsh(big.NewInt(v.D128[i].Hi), 64)
			x.Add(x, new(big.Int).SetUint64(v.D128[i].Lo))
		}
		r := new(big.Rat).SetFrac(x, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Scale)), nil))
		return r.FloatString(t.Scale)
	case types.Char, types.Varchar:
		return "'" + string(v.Bytes(i)) + "'"
	case types.Binary, types.Varbinary:
		return "x" + hex.EncodeToString(v.Bytes(i))
	case types.Date:
		return time.Unix(int64(v.I32[i])*86400, 0).UTC().Format("2006-01-02")
	case types.Time:
		return time.UnixMilli(int64(v.I32[i])).UTC().Format("15:04:05.999")
	case types.Timestamp, types.TimestampLTZ:
		at := time.UnixMicro(v.I64[i])
		if t.Precision > 6 {
			at = time.Unix(0, v.I64[i])
		}
		if t.Kind == types.TimestampLTZ {
			return at.UTC().Format("2006-01-02T15:04:05.999999999Z")
		}
		return at.UTC().Format("2006-01-02 15:04:05.999999999")
	case types.Array:
		return "[" + list(func(k int) string { return show(v.Children[0], k) }) + "]"
	case types.Map:
		return "{" + list(func(k int) string { return show(v.Children[0], k) + ": " + show(v.Children[1], k) }) + "}"
	case types.Row:
		var s []string
		for _, c := range v.Children {
			s = append(s, show(c, i))
		}
		return "(" + strings.Join(s, ", ") + ")"
	}
	return "?" + t.String()
}

func (f *fixture) count(column int, c format.Counter) int64 { return f.a.Counts(column)[c] }
