//go:build services

package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// Every good value arrives as it is, every bad one is refused with its column,
// beside good rows, which are kept.
func TestTypesOnTheServer(t *testing.T) {
	for i, c := range typeCases() {
		t.Run(c.name, func(t *testing.T) { roundTrip(t, uint64(i+1), c) })
	}
}

// Times are the same wherever the process runs: as numbers, never as text.
func TestTimesInAnotherZone(t *testing.T) {
	was := time.Local
	defer func() { time.Local = was }()
	var err error
	if time.Local, err = time.LoadLocation("Asia/Shanghai"); err != nil {
		t.Fatal(err)
	}
	times := 0
	for i, c := range typeCases() {
		if strings.Contains(c.ch, "Date") {
			times++
			t.Run(c.name, func(t *testing.T) { roundTrip(t, uint64(i+1), c) })
		}
	}
	if times < 10 {
		t.Errorf("%d types of times", times)
	}
}

func roundTrip(t *testing.T, epoch uint64, c typeCase) {
	ctx := context.Background()
	name := newTable(t)
	ask(t, "CREATE TABLE %s (n UInt32, x %s, _mr_artifact LowCardinality(String)) ENGINE = MergeTree ORDER BY n SETTINGS allow_nullable_key = 1", name, c.ch)
	conn := New(vfs.NewOS(), t.TempDir())
	table := tableOf(t, conn, []connector.Column{
		{Field: types.Field{Name: "n", Type: types.NewInt().NotNull()}}, {Field: types.Field{Name: "x", Type: c.sql}},
	}, nil, map[string]string{"table-name": name})
	s, err := conn.OpenSink(ctx, table, conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	values := append(slices.Clone(c.good), c.bad...)
	b := &batch.Batch{Schema: table.Schema(nil), Len: len(values)}
	var n []any
	for i := range values {
		n = append(n, i)
	}
	b.Cols = []batch.Vec{*vec(t, types.NewInt(), n...), *vec(t, c.sql, values...)}
	id := connector.ArtifactID{Job: conntest.UUID(1), Table: conntest.UUID(9), Lane: connector.LaneID{Topic: conntest.UUID(7)}, Epoch: epoch}
	w, err := s.OpenWriter(ctx, connector.Attempt{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	bad := w.(connector.RowChecker).Check(b, nil, nil)
	for i, e := range bad {
		t.Logf("refused: %s", e.Message)
		if e.Where != "x" || int(e.Row) != len(c.good)+i {
			t.Errorf("row %d is refused in column %q: %s", e.Row, e.Where, e.Message)
		}
	}
	if len(bad) != len(c.bad) {
		t.Fatalf("%d rows are refused, want %d", len(bad), len(c.bad))
	}
	var sel batch.Sel
	for i := range c.good {
		sel = append(sel, int32(i))
	}
	publishRows(t, s, w, b, sel, id)
	got := ask(t, "SELECT x FROM %s ORDER BY n", name)
	if c.text == nil {
		// Texts that a table of lines cannot hold: their bytes.
		got = ask(t, "SELECT hex(x) FROM %s ORDER BY n", name)
		for _, x := range c.good {
			c.text = append(c.text, strings.ToUpper(fmt.Sprintf("%x", x)))
		}
	}
	if want := strings.Join(c.text, "\n"); got != want {
		t.Errorf("the server has\n%s\nwant\n%s", got, want)
	}
	// And back, by both protocols.
	want := &b.Cols[1]
	if c.back != nil {
		want = vec(t, c.sql, c.back...)
	}
	table.PrimaryKey = []int{0}
	for _, url := range []string{shared.URL(), shared.WebURL()} {
		back := readTable(t, table, map[string]string{"table-name": name, "url": url}, []int{1})
		if back.Len != len(c.good) {
			t.Fatalf("%s: %d rows were read, want %d", url, back.Len, len(c.good))
		}
		for i := range back.Len {
			if v := &back.Cols[0]; v.HasDeepErrs() || v.IsNull(i) != want.IsNull(i) || !v.IsNull(i) && !batch.ValueEqual(v, i, want, i) {
				t.Errorf("%s: row %d was read as %s (%v), want %s", url, i, v.Text(i), v.DeepErr(i), want.Text(i))
			}
		}
	}
}

// publishRows takes rows through the whole cycle.
func publishRows(t testing.TB, s connector.Sink, w connector.Writer, b *batch.Batch, sel batch.Sel, id connector.ArtifactID) {
	t.Helper()
	for _, err := range s.Publish(context.Background(), sealRows(t, w, b, sel, &id)) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// sealRows writes rows and seals every bucket.
func sealRows(t testing.TB, w connector.Writer, b *batch.Batch, sel batch.Sel, id *connector.ArtifactID) []connector.Artifact {
	t.Helper()
	ids, err := w.Buckets(b, sel, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := all(nil, sel, b.Len)
	sels := map[connector.BucketID]batch.Sel{}
	for i, k := range ids {
		sels[k] = append(sels[k], rows[i])
	}
	for k, sel := range sels {
		if err := w.Write(b, sel, k); err != nil {
			t.Fatal(err)
		}
	}
	var reqs []connector.SealRequest
	for _, k := range w.Open() {
		id.Sequence++
		reqs = append(reqs, connector.SealRequest{Bucket: k.ID, Header: connector.Header{ID: *id, TablePartition: k.TablePartition, Rows: k.Rows}})
	}
	as, err := w.Seal(context.Background(), reqs)
	if err != nil {
		t.Fatal(err)
	}
	return as
}
