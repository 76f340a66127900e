package filesystem

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// TestForeignDirectory: what a table's directory may hold beside our files, and
// what is refused instead of skipped.
func TestForeignDirectory(t *testing.T) {
	mem := vfs.NewMem()
	c := newConnector(mem)
	put := func(name, text string) {
		if err := mem.MkdirAll(mem.Dir(name)); err != nil {
			t.Fatal(err)
		}
		f, err := mem.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	cols := []connector.Column{column("id", types.NewBigInt()), column("dt", types.NewString()),
		{Field: types.Field{Name: "f", Type: types.NewString().NotNull()}, Metadata: "file.name", Virtual: true}}
	table := tableOf(c, cols, []int{1}, map[string]string{"path": "/t", "format": "json"})
	put("/t/dt=1/a.json", "{\"id\":1}\n\n{\"id\":2}\r\n{\"id\":\"x\"}\nnot json\n{\"id\":3}")
	put("/t/dt=1/_SUCCESS", "")
	put("/t/dt=1/.a.json.inprogress", "{\"id\":9}\n")
	put("/t/_tmp/dt=1/b.json", "{\"id\":9}\n")
	put("/t/dt=2/empty.json", "")
	var ids []int64
	notes, errs := 0, 0
	for _, b := range readTable(t, c, table, nil) {
		notes += len(b.Notes)
		for i := range b.Len {
			if e := b.Cols[0].Err(i); e != nil {
				errs++
				continue
			}
			ids = append(ids, b.Cols[0].I64[i])
			if string(b.Cols[2].Bytes(i)) != "a.json" || string(b.Cols[1].Bytes(i)) != "1" {
				t.Errorf("row %d: dt %s of %s", i, b.Cols[1].Bytes(i), b.Cols[2].Bytes(i))
			}
		}
	}
	if !slices.Equal(ids, []int64{1, 2, 3}) || notes != 2 || errs != 1 {
		t.Errorf("ids %v, %d notes, %d errors", ids, notes, errs)
	}
	ctx := context.Background()
	s, err := c.OpenSource(ctx, table)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := s.Partitions(ctx)
	if err != nil || len(parts) != 1 {
		t.Fatal(parts, err)
	}
	pos, err := s.Start(ctx, parts)
	if err != nil {
		t.Fatal(err)
	}
	// A file that changes is another file.
	put("/t/dt=1/a.json", "{\"id\":1}\n")
	later, err := c.OpenSource(ctx, table)
	if err != nil {
		t.Fatal(err)
	}
	checks, err := later.Check(ctx, pos)
	var mismatch *connector.MismatchError
	if err != nil || !errors.As(checks[0], &mismatch) || !mismatch.Recreated {
		t.Errorf("a changed file: %v %v", checks, err)
	}
	if r, err := s.Open(ctx, []connector.Split{{From: pos[0], End: 100}}, nil, nil); err == nil {
		b := new(batch.Batch)
		if err := r.Next(ctx, b, 10, 1000); err == nil || !strings.Contains(err.Error(), "has changed") {
			t.Errorf("reading a changed file: %v", err)
		}
	}
	put("/t/lost.json", "{\"id\":4}\n")
	if _, err := s.Partitions(ctx); err == nil || !strings.Contains(err.Error(), "no partition directory") {
		t.Errorf("a file outside of the partitions: %v", err)
	}
}

// TestUnsyncedDirectory: a partition directory that another goroutine has made
// and not synced yet does not lose a published file.
func TestUnsyncedDirectory(t *testing.T) {
	mem := vfs.NewMem()
	c := newConnector(mem)
	cols := []connector.Column{column("v", types.NewString()), column("dt", types.NewString())}
	table := tableOf(c, cols, []int{1}, map[string]string{"path": "/lake/t", "format": "csv", keyPolicy: "success-file"})
	if err := mem.MkdirAll("/lake/t/dt=1"); err != nil {
		t.Fatal(err)
	}
	as := publishBatch(t, c, table, textBatch(cols, []string{"a", "1"}), 1)
	if ok, err := vfs.Exists(mem.CrashClone(vfs.CrashOptions{}), as[0].Location); err != nil || !ok {
		t.Fatalf("the published file is lost: %v", err)
	}
}

// TestSettled: leftovers of fenced attempts go, pending artefacts stay.
func TestSettled(t *testing.T) {
	mem := vfs.NewMem()
	c := newConnector(mem)
	cols := []connector.Column{column("v", types.NewString())}
	table := tableOf(c, cols, nil, map[string]string{"path": "/t", "format": "json"})
	ctx := context.Background()
	cs, err := c.OpenSink(ctx, table, conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	s := cs.(*Sink)
	id := connector.ArtifactID{Job: conntest.UUID(1), Lane: connector.LaneID{Topic: conntest.UUID(3)}}
	var sealed []connector.Artifact
	for e := range uint64(2) {
		id.Epoch = e + 1
		w, err := s.OpenWriter(ctx, connector.Attempt{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		b := textBatch(cols, []string{"a"})
		ids, _ := w.Buckets(b, nil, nil)
		if err := w.Write(b, nil, ids[0]); err != nil {
			t.Fatal(err)
		}
		as, err := w.Seal(ctx, []connector.SealRequest{{Bucket: ids[0], Header: connector.Header{ID: id, Rows: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		sealed = append(sealed, as...)
	}
	id.Epoch = 3
	if _, err := s.OpenWriter(ctx, connector.Attempt{ID: id}); err != nil {
		t.Fatal(err)
	}
	before := id
	before.Epoch = 2
	if err := s.Settled(ctx, before); err != nil {
		t.Fatal(err)
	}
	out, err := s.Resolve(ctx, sealed)
	if err != nil || out[0] != connector.Absent || out[1] != connector.Sealed {
		t.Fatalf("after what lies before epoch 2 is settled: %v %v", out, err)
	}
	names, _ := mem.List(s.laneDir(id))
	if !slices.Equal(names, []string{"2.fenced", "3"}) {
		t.Errorf("attempts %v", names)
	}
	if e, err := s.MaxEpoch(ctx, id.Lane); e != 3 || err != nil {
		t.Error(e, err)
	}
	// Once every outcome is known nothing of lower epochs is kept.
	if err := s.Settled(ctx, id); err != nil {
		t.Fatal(err)
	}
	if names, _ := mem.List(s.laneDir(id)); !slices.Equal(names, []string{"3"}) {
		t.Errorf("attempts after everything is settled: %v", names)
	}
}

// TestForeignFileUnderAFinalName: publishing overwrites nothing. Invariant 2.
func TestForeignFileUnderAFinalName(t *testing.T) {
	mem := vfs.NewMem()
	c := newConnector(mem)
	cols := []connector.Column{column("v", types.NewString())}
	table := tableOf(c, cols, nil, map[string]string{"path": "/t", "format": "json"})
	ctx := context.Background()
	cs, err := c.OpenSink(ctx, table, conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	id := connector.ArtifactID{Job: conntest.UUID(1), Lane: connector.LaneID{Topic: conntest.UUID(3)}, Epoch: 1, Sequence: 1}
	w, err := cs.OpenWriter(ctx, connector.Attempt{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	b := textBatch(cols, []string{"a"})
	ids, _ := w.Buckets(b, nil, nil)
	if err := w.Write(b, nil, ids[0]); err != nil {
		t.Fatal(err)
	}
	as, err := w.Seal(ctx, []connector.SealRequest{{Bucket: ids[0], Header: connector.Header{ID: id, Rows: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	final := as[0].Location
	f, err := mem.Create(final)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("somebody else's")); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if errs := cs.Publish(ctx, as); errs[0] == nil {
		t.Error("published over a foreign file")
	}
	if info, err := mem.Stat(final); err != nil || info.Size() != int64(len("somebody else's")) {
		t.Errorf("the foreign file has %v bytes now: %v", info, err)
	}
	if out, err := cs.Resolve(ctx, as); err == nil && out[0] == connector.Published {
		t.Error("the foreign file counts as published")
	}
}
