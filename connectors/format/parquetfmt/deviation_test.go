package parquetfmt

import (
	"bytes"
	"testing"

	xparquet "github.com/xitongsys/parquet-go/parquet"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// TestDiffersFromFlinkTimestampsAreInt64: Flink writes INT96 in the zone of the
// host; here INT64 microseconds, as UTC, and INT96 only by option.
func TestDiffersFromFlinkTimestampsAreInt64(t *testing.T) {
	fields := []types.Field{{Name: "ts", Type: types.NewTimestamp(6)}, {Name: "ltz", Type: types.NewTimestampLTZ(6)}}
	const noon = 1714566896789000
	cols := []batch.Vec{i64Vec(fields[0].Type, noon), i64Vec(fields[1].Type, noon)}
	for o, want := range map[Options]xparquet.Type{{}: xparquet.Type_INT64, {Int96Timestamps: true}: xparquet.Type_INT96} {
		data := writeFile(t, o, fields, cols...)
		m, err := readFooter(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for i := range fields {
			if got := m.Schema[i+1].Type; !got.Valid || got.V.String() != want.String() {
				t.Errorf("%+v: column %d is %v, want %v", o, i, got.V, want)
			}
		}
	}
}
