package parquetfmt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// readBack reads a whole file with our reader, a few rows at a time.
func readBack(t testing.TB, data []byte, fields []types.Field, limit int) [][]any {
	t.Helper()
	f, err := OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	rows := make([][]any, 0, f.Rows())
	for g := range f.RowGroups() {
		r, err := f.ReadRowGroup(g, fields)
		if err != nil {
			t.Fatal(err)
		}
		cols := make([]batch.Vec, len(fields))
		for {
			n, err := r.Read(cols, limit)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				row := make([]any, len(cols))
				for c := range cols {
					row[c] = plainValue(&cols[c], i)
				}
				rows = append(rows, row)
			}
		}
		r.Close()
	}
	return rows
}

// readArrow reads a whole file with Arrow's reader.
func readArrow(t testing.TB, data []byte, columns int) [][]any {
	t.Helper()
	pf, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	fr, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	tbl, err := fr.ReadTable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	rows := make([][]any, tbl.NumRows())
	for i := range rows {
		rows[i] = make([]any, columns)
	}
	for c := range columns {
		at := 0
		for _, chunk := range tbl.Column(c).Data().Chunks() {
			for i := range chunk.Len() {
				rows[at][c] = arrowValue(chunk, i)
				at++
			}
		}
	}
	return rows
}

func arrowValue(a arrow.Array, i int) any {
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.Boolean:
		return a.Value(i)
	case *array.Int8:
		return int64(a.Value(i))
	case *array.Int16:
		return int64(a.Value(i))
	case *array.Int32:
		return int64(a.Value(i))
	case *array.Int64:
		return a.Value(i)
	case *array.Float32:
		return float64(a.Value(i))
	case *array.Float64:
		return a.Value(i)
	case *array.String:
		return a.Value(i)
	case *array.Binary:
		return string(a.Value(i))
	case *array.Date32:
		return int64(a.Value(i))
	case *array.Time32:
		return int64(a.Value(i))
	case *array.Timestamp:
		return int64(a.Value(i))
	case *array.Decimal128:
		return a.Value(i).BigInt().String()
	case *array.Map:
		from, to := a.ValueOffsets(i)
		out := []any{}
		for k := from; k < to; k++ {
			out = append(out, []any{arrowValue(a.Keys(), int(k)), arrowValue(a.Items(), int(k))})
		}
		return out
	case *array.List:
		from, to := a.ValueOffsets(i)
		out := []any{}
		for k := from; k < to; k++ {
			out = append(out, arrowValue(a.ListValues(), int(k)))
		}
		return out
	case *array.Struct:
		out := []any{}
		for c := range a.NumField() {
			out = append(out, arrowValue(a.Field(c), i))
		}
		return out
	}
	panic(fmt.Sprintf("array type %T", a))
}

func compareRows(t testing.TB, what string, want, have [][]any) {
	t.Helper()
	if len(want) != len(have) {
		t.Fatalf("%s: %d rows, want %d", what, len(have), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(want[i], have[i]) {
			for c := range want[i] {
				if !reflect.DeepEqual(want[i][c], have[i][c]) {
					t.Fatalf("%s: row %d column %d: %v, want %v", what, i, c, have[i][c], want[i][c])
				}
			}
		}
	}
}

// TestRandomRoundTrip writes random columns of all types and encodings with
// random options and reads them back with three readers.
func TestRandomRoundTrip(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	for seed := range rounds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 7))
			var fields []types.Field
			for i := range 1 + r.IntN(6) {
				fields = append(fields, types.Field{Name: fmt.Sprintf("c%d", i), Type: randomType(r, 2)})
			}
			opts := Options{
				Compression:     []Compression{Snappy, None, Zstd, Gzip}[r.IntN(4)],
				RowGroupBytes:   []int{0, 1 << 10, 1 << 16}[r.IntN(3)],
				PageBytes:       []int{0, 100, 5000}[r.IntN(3)],
				DictionaryBytes: []int{0, -1, 300}[r.IntN(3)],
				DecimalIntegers: r.IntN(2) == 0,
			}
			var out bytes.Buffer
			w, err := NewWriter(&out, fields, opts)
			if err != nil {
				t.Fatal(err)
			}
			w.SetMetadata("seed", fmt.Sprint(seed))
			var want [][]any
			for range 1 + r.IntN(4) {
				n := r.IntN(3000)
				cols := make([]batch.Vec, len(fields))
				for c, f := range fields {
					cols[c] = *randomVec(r, f.Type, n, []float64{0, 0.1, 0.9, 1}[r.IntN(4)], []int{0, 1, 5, 200}[r.IntN(4)], true)
				}
				var sel batch.Sel
				if r.IntN(2) == 0 {
					sel = batch.Sel{}
					for i := range n {
						if r.IntN(3) == 0 {
							sel = append(sel, int32(i))
						}
					}
				}
				if err := w.Write(cols, sel); err != nil {
					t.Fatal(err)
				}
				take := func(i int) {
					row := make([]any, len(cols))
					for c := range cols {
						row[c] = plainValue(&cols[c], i)
					}
					want = append(want, row)
				}
				if sel == nil {
					for i := range n {
						take(i)
					}
				}
				for _, i := range sel {
					take(int(i))
				}
			}
			st, err := w.Close()
			if err != nil {
				t.Fatal(err)
			}
			data := out.Bytes()
			if st.Rows != int64(len(want)) || st.Bytes != int64(len(data)) {
				t.Fatalf("stats say %d rows, %d bytes; wrote %d rows, %d bytes", st.Rows, st.Bytes, len(want), len(data))
			}
			compareRows(t, "arrow", want, readArrow(t, data, len(fields)))
			compareRows(t, "our reader", want, readBack(t, data, fields, 1+r.IntN(1500)))
			rep, err := Verify(bytes.NewReader(data), int64(len(data)))
			if err != nil || !rep.OK() || rep.Rows != st.Rows {
				t.Fatalf("Verify: %v\n%s", err, rep)
			}
			meta, rows, err := Metadata(bytes.NewReader(data), int64(len(data)))
			if err != nil || rows != int64(len(want)) || meta["seed"] != fmt.Sprint(seed) {
				t.Fatalf("Metadata: %v %d %v", meta, rows, err)
			}
		})
	}
}
