//go:build services

package filesystem

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/connectors/conntest/oracle"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// TestCompressedByDuckDB: DuckDB reads compressed files of several pieces by their names,
// as text and by Hive's layout, and what it writes is read here.
func TestCompressedByDuckDB(t *testing.T) {
	const rows = 30_000
	dir := t.TempDir()
	c := newConnector(vfs.NewOS())
	cols := []connector.Column{column("v", types.NewString()), column("dt", types.NewString())}
	var text [][]string
	for i := range rows {
		text = append(text, []string{fmt.Sprintf("row %d, 数据 \"%x\"", i, i*7919), fmt.Sprint("2024-05-0", 1+i%2)})
	}
	for _, x := range []struct{ format, compression, ending, from string }{
		{"json", compressionGzip, "json.gz", "read_json(%s, format = 'newline_delimited', hive_partitioning = true)"},
		{"json", compressionZstd, "json.zst", "read_json(%s, format = 'newline_delimited', hive_partitioning = true)"},
		{"csv", compressionGzip, "csv.gz", "read_csv(%s, header = false, names = ['v'], hive_partitioning = true)"},
		{"csv", compressionZstd, "csv.zst", "read_csv(%s, header = false, names = ['v'], hive_partitioning = true)"},
	} {
		path := filepath.Join(dir, x.ending)
		table := tableOf(c, cols, []int{1}, map[string]string{"path": path, "format": x.format, keyCompression: x.compression, keyPolicy: "success-file"})
		publishBatch(t, c, table, textBatch(cols, text...), 1)
		from := fmt.Sprintf(x.from, oracle.Quote(filepath.Join(path, "dt=*", "*."+x.ending)))
		got := oracle.Query(t, "SELECT count(*), count(DISTINCT v), min(v), max(v), count(DISTINCT dt) FROM "+from)
		if want := fmt.Sprint([]any{rows, rows, text[0][0], text[9999][0], 2}); fmt.Sprint(got.Rows[0]) != want {
			t.Errorf("%s: %v, want %v", x.ending, got.Rows[0], want)
		}
	}
	for _, x := range []struct{ file, options string }{{"a.csv.gz", "COMPRESSION gzip"}, {"b.csv.zst", "COMPRESSION zstd"}} {
		oracle.Query(t, fmt.Sprintf("COPY (SELECT range AS v FROM range(%d)) TO %s (FORMAT csv, HEADER false, %s)", rows, oracle.Quote(filepath.Join(dir, x.file)), x.options))
		table := tableOf(c, []connector.Column{column("id", types.NewBigInt())}, nil, map[string]string{"path": filepath.Join(dir, x.file), "format": "csv"})
		n, sum := 0, int64(0)
		for _, b := range readTable(t, c, table, nil) {
			n += b.Len
			for _, v := range b.Cols[0].I64[:b.Len] {
				sum += v
			}
		}
		if n != rows || sum != rows*(rows-1)/2 {
			t.Errorf("%s: %d rows, sum %d", x.file, n, sum)
		}
	}
}
