package filesystem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// TestSkippedLines: the lines of a head are no rows, however long it is, and reading
// goes on from every position with the row that follows it.
func TestSkippedLines(t *testing.T) {
	mem := vfs.NewMem()
	c := newConnector(mem)
	var text strings.Builder
	text.WriteString("\"a head, of\"\n" + strings.Repeat("long ", 200_000) + "\n")
	var want []int64
	for i := range int64(40) {
		fmt.Fprintf(&text, "%d\n", i)
		want = append(want, i)
	}
	putFile(t, mem, "/t/rows.csv", text.String())
	putFile(t, mem, "/t/short.csv", "a head")
	putFile(t, mem, "/t/empty.csv", "a\nb\n")
	columns := []connector.Column{{Field: types.Field{Name: "id", Type: types.NewBigInt()}}}
	table := tableOf(c, columns, nil, map[string]string{"path": "/t", "format": "csv", keySkipLines: "2"})
	ctx := context.Background()
	s, parts, from, ends := openTable(t, c, table)
	defer s.Close()
	var got []int64
	for i := range parts {
		// A new reader after each batch, as after a crash.
		for at := from[i]; at.Offset < ends[i]; {
			r, err := s.Open(ctx, []connector.Split{{From: at, End: ends[i]}}, nil, func() {})
			if err != nil {
				t.Fatal(err)
			}
			b := new(batch.Batch)
			if err := r.Next(ctx, b, 7, 1<<20); err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			if len(b.Runs) != 1 || b.Runs[0].BaseOffset != at.Offset || b.Runs[0].EndOffset <= at.Offset || len(b.Notes) > 0 {
				t.Fatalf("%s at %d: runs %+v, notes %+v", parts[i].Topic, at.Offset, b.Runs, b.Notes)
			}
			got = append(got, b.Cols[0].I64[:b.Len]...)
			at.Offset = b.Runs[0].EndOffset
			r.Close()
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows %v", got)
	}
	v := map[string]string{"connector": "filesystem", "path": "/t", "format": "parquet", keySkipLines: "1"}
	if _, errs := c.Spec().Resolve(v); len(errs) != 1 || errs[0].Key != keySkipLines {
		t.Errorf("lines of Parquet: %v", errs)
	}
}
