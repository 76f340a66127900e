//go:build services

package hdfs_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/connector"
)

// TestLateRowsInHDFS: the suite over a table whose late rows have a directory of their
// own on the cluster, and both artefacts of an intent over two processes.
func TestLateRowsInHDFS(t *testing.T) {
	open := func(t testing.TB) *world {
		c, dir := newConnector(), newDir()
		return &world{conn: c, table: tableAt(t, c, url(dir), "parquet", "sink.late-data", "side-table", "sink.late-data.path", url(dir+"_late"))}
	}
	conntest.RunSink(t, func(t testing.TB) conntest.World { return open(t) })
	w, ctx := open(t), context.Background()
	s, err := w.Open(ctx, conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	as, err := conntest.SealAside(s, 1, 0)
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if s, err = w.Open(ctx, conntest.OwnerOf(1, 2)); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, want := range []connector.Outcome{connector.Sealed, connector.Published} {
		if out, err := s.Resolve(ctx, as); err != nil || out[0] != want || out[1] != want {
			t.Fatalf("outcomes %v, %v, want %v", out, err, want)
		}
		if err := errors.Join(s.Publish(ctx, as)...); err != nil {
			t.Fatal(err)
		}
	}
	late := tableAt(t, w.conn, w.table.Options.String("sink.late-data.path"), "parquet")
	late.PartitionKeys = nil
	ids, rest := visible(t, w.conn, late), w.Visible(t)
	slices.Sort(ids)
	slices.Sort(rest)
	if !slices.Equal(ids, []int64{3, 4}) || !slices.Equal(rest, []int64{0, 1, 2, 5, 6, 7, 8, 9}) {
		t.Errorf("late rows %v, the others %v", ids, rest)
	}
}
