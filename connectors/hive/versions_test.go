package hive

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

// sealed writes rows and seals them, without publishing.
func sealed(t testing.TB, s connector.Sink, epoch uint64, replace bool, b *batch.Batch) []connector.Artifact {
	t.Helper()
	ctx := context.Background()
	a := connector.Attempt{ID: connector.ArtifactID{Job: conntest.UUID(1), Table: conntest.UUID(9), Lane: connector.LaneID{Topic: conntest.UUID(7)}, Epoch: epoch}, Replace: replace}
	if replace {
		a.ID.Keyed, a.ID.Lane = true, connector.LaneID{}
	}
	w, err := s.OpenWriter(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ids, err := w.Buckets(b, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		if err := w.Write(b, batch.Sel{int32(i)}, id); err != nil {
			t.Fatal(err)
		}
	}
	var reqs []connector.SealRequest
	for _, k := range w.Open() {
		id := a.ID
		id.Sequence = uint64(len(reqs))
		reqs = append(reqs, connector.SealRequest{Bucket: k.ID, Header: connector.Header{ID: id, TablePartition: k.TablePartition, Rows: k.Rows}})
	}
	as, err := w.Seal(ctx, reqs)
	if err != nil {
		t.Fatal(err)
	}
	return as
}

const day = "dt=2024-05-01"

func replaceDay(t testing.TB, s connector.Sink, epoch, version uint64, first int64, n int) connector.Replacement {
	t.Helper()
	r := connector.Replacement{TablePartition: day, Version: version, Parts: sealed(t, s, epoch, true, conntest.OneDay(first, n))}
	noErrors(t, s.(*Sink).Replace(context.Background(), []connector.Replacement{r})...)
	return r
}

func noErrors(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// tableRows counts what a source of the metastore's table reads.
func tableRows(t testing.TB, w *world, table *connector.Table) []int64 {
	t.Helper()
	var ids []int64
	for _, b := range readAll(t, openSource(t, w, table), nil) {
		ids = append(ids, b.Cols[0].I64[:b.Len]...)
	}
	return ids
}

// TestRowsAppendedToAReplacedPartition: they come into the version when the
// partition is announced, once, and whoever asks for their files learns that they
// are published.
func TestRowsAppendedToAReplacedPartition(t *testing.T) {
	ctx := context.Background()
	w := newWorld()
	s := open(t, w, 1).(*Sink)
	before := sealed(t, s, 1, false, conntest.OneDay(0, 4))
	noErrors(t, s.Publish(ctx, before)...)
	announce(t, s, day)
	replaceDay(t, s, 1, 1, 100, 3)
	announce(t, s, day)
	if n := len(tableRows(t, w, w.table(nil))); n != 3 {
		t.Fatalf("%d rows after the replacement, want 3", n)
	}
	late := sealed(t, s, 2, false, conntest.OneDay(200, 2))
	noErrors(t, s.Publish(ctx, late)...)
	for range 2 {
		announce(t, s, day)
		if n := len(tableRows(t, w, w.table(nil))); n != 5 {
			t.Fatalf("%d rows with the late ones, want 5", n)
		}
	}
	if p := w.fake.params("t", day); p["numRows"] != "5" || p["numFiles"] != "2" {
		t.Errorf("the metastore has %v", p)
	}
	for _, name := range []string{"/warehouse/t/.versions/" + day + "/v1-" + conntest.UUID(1).String() + "/_SUCCESS", "/warehouse/t/" + day + "/_SUCCESS"} {
		if ok, err := vfs.Exists(w.mem, name); err != nil || !ok {
			t.Errorf("%s: %v %v", name, ok, err)
		}
	}
	// The next process, before it knows what was committed.
	s = open(t, w, 2).(*Sink)
	for what, as := range map[string][]connector.Artifact{"late": late, "replaced": before} {
		out, err := s.Resolve(ctx, as)
		if err != nil || out[0] != connector.Published {
			t.Errorf("%s rows: %v %v", what, out, err)
		}
		noErrors(t, s.Publish(ctx, as)...)
		if err := s.Discard(ctx, as); err == nil {
			t.Errorf("%s rows were discarded", what)
		}
	}
	replaceDay(t, s, 3, 2, 300, 1)
	if n := len(tableRows(t, w, w.table(nil))); n != 1 {
		t.Errorf("%d rows after the second replacement, want 1", n)
	}
	out, err := s.Resolve(ctx, late)
	if err != nil || out[0] != connector.Published {
		t.Errorf("late rows after a replacement: %v %v", out, err)
	}
}

// TestReplacedContentIsRemovedLater: not before the time that queries may take,
// and never what is visible.
func TestReplacedContentIsRemovedLater(t *testing.T) {
	w := newWorld()
	s := open(t, w, 1).(*Sink)
	before := sealed(t, s, 1, false, conntest.OneDay(0, 4))
	noErrors(t, s.Publish(context.Background(), before)...)
	replaceDay(t, s, 1, 1, 100, 3)
	replaceDay(t, s, 2, 2, 200, 2)
	count := func() string {
		versions, err := w.mem.List("/warehouse/t/.versions/" + day)
		if err != nil {
			t.Fatal(err)
		}
		names, err := w.mem.List("/warehouse/t/" + day)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(len(versions), " versions, ", len(names), " files")
	}
	if got := count(); got != "2 versions, 1 files" {
		t.Fatalf("at once: %s", got)
	}
	// The next process finds it, too.
	s = open(t, w, 2).(*Sink)
	s.clock = func() time.Time { return time.Now().Add(23 * time.Hour) }
	announce(t, s, day)
	if got := count(); got != "2 versions, 2 files" {
		t.Fatalf("after 23 hours: %s", got)
	}
	s.clock = func() time.Time { return time.Now().Add(25 * time.Hour) }
	announce(t, s, day)
	if got := count(); got != "1 versions, 1 files" { // _SUCCESS
		t.Fatalf("after 25 hours: %s", got)
	}
	if n := len(tableRows(t, w, w.table(nil))); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
	if out, err := s.Resolve(context.Background(), before); err != nil || out[0] != connector.Published {
		t.Errorf("rows whose file is gone: %v %v", out, err)
	}
}

// TestTableWithoutPartitionsIsReplaced: the table's own location is pointed to the
// version; the next process finds the table's directory nevertheless.
func TestTableWithoutPartitionsIsReplaced(t *testing.T) {
	ctx := context.Background()
	w := newWorld()
	table := w.tableOf(conntest.Columns(), nil, map[string]string{keyPolicy: ""})
	openIt := func(epoch uint64) *Sink {
		s, err := w.conn.OpenSink(ctx, table, conntest.OwnerOf(1, epoch))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s.(*Sink)
	}
	for epoch := range uint64(3) {
		s := openIt(epoch + 1)
		r := connector.Replacement{Version: epoch + 1, Parts: sealed(t, s, epoch+1, true, conntest.Rows(int64(epoch)*100, int(epoch)+2))}
		for range 2 {
			noErrors(t, s.Replace(ctx, []connector.Replacement{r})...)
			if out, err := s.ResolveReplace(ctx, []connector.Replacement{r}); err != nil || out[0] != connector.Published {
				t.Fatal(out, err)
			}
			if n := len(tableRows(t, w, table)); n != int(epoch)+2 {
				t.Errorf("%d rows, want %d", n, epoch+2)
			}
		}
	}
	s := openIt(9)
	noErrors(t, s.Publish(ctx, sealed(t, s, 9, false, conntest.Rows(900, 5)))...)
	if n := len(tableRows(t, w, table)); n != 9 {
		t.Errorf("%d rows with those that were appended, want 9", n)
	}
	if got := w.fake.tables["t"].Storage.Location; !strings.HasPrefix(got, "file:/warehouse/t/.versions/v3-") {
		t.Errorf("the table lies at %s", got)
	}
}

func TestReplaceNeedsTheMetastore(t *testing.T) {
	w := newWorld()
	if mode, why := w.conn.ReplaceMode(w.table(map[string]string{keyPolicy: "success-file"})); mode != connector.ReplaceNever || !strings.Contains(why, "needs 'metastore'") {
		t.Errorf("%v %s", mode, why)
	}
}

// merging are the options of the tests of merged files.
var merging = map[string]string{keyMerge: "true"}

// dataFiles are the names of a directory's data files.
func dataFiles(t testing.TB, fsys vfs.FS, dir string) int {
	t.Helper()
	n, _ := dirBytes(t, fsys, dir)
	return int(n)
}

// TestSmallFilesAreMergedBeforeTheAnnouncement: one file where the metastore points,
// the files themselves stay for those who read the directory; late rows are merged,
// too, and all artefacts stay published.
func TestSmallFilesAreMergedBeforeTheAnnouncement(t *testing.T) {
	ctx := context.Background()
	w := newWorld()
	s, err := w.conn.OpenSink(ctx, w.table(merging), conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var as []connector.Artifact
	add := func(epoch uint64, first int64, n int) {
		t.Helper()
		more := sealed(t, s, epoch, false, conntest.OneDay(first, n))
		noErrors(t, s.Publish(ctx, more)...)
		as = append(as, more...)
	}
	for i := range 3 {
		add(uint64(i+1), int64(i)*10, 10)
	}
	check := func(version string, rows int) {
		t.Helper()
		for range 2 {
			announce(t, s, day)
			ids := tableRows(t, w, w.table(merging))
			slices.Sort(ids)
			if len(ids) != rows || len(slices.Compact(ids)) != rows {
				t.Fatalf("%d rows, want %d", len(ids), rows)
			}
			loc := strings.TrimPrefix(w.fake.parts["t"][day].Storage.Location, "file:")
			if n := dataFiles(t, w.mem, loc); n != 1 || !strings.HasPrefix(loc, "/warehouse/t/.versions/"+day+"/"+version+"-") {
				t.Fatalf("%d files at %s", n, loc)
			}
			if p := w.fake.params("t", day); p["numFiles"] != "1" || p["numRows"] != fmt.Sprint(rows) {
				t.Fatalf("the metastore has %v", p)
			}
		}
		for range 2 {
			if out, err := s.Resolve(ctx, as); err != nil || slices.ContainsFunc(out, func(o connector.Outcome) bool { return o != connector.Published }) {
				t.Fatalf("outcomes %v %v", out, err)
			}
		}
	}
	check("c1", 30)
	if n := dataFiles(t, w.mem, "/warehouse/t/"+day); n != 3 {
		t.Errorf("%d files in the partition's own directory, want 3", n)
	}
	add(4, 30, 5)
	check("c2", 35)
	// All that was merged is removed after its time, and is published nevertheless.
	s.(*Sink).clock = func() time.Time { return time.Now().Add(25 * time.Hour) }
	check("c2", 35)
	if n := dataFiles(t, w.mem, "/warehouse/t/"+day); n != 0 {
		t.Errorf("%d files in the partition's own directory, want none", n)
	}
	if err := s.Discard(ctx, as); err == nil {
		t.Error("merged rows were discarded")
	}
	// Replacing goes on from there.
	replaceDay(t, s, 5, 1, 100, 2)
	if n := len(tableRows(t, w, w.table(merging))); n != 2 {
		t.Errorf("%d rows after a replacement, want 2", n)
	}
}

// TestLateRowsRewriteTheirPartition: the first announcement leaves the files, late
// rows make one of all.
func TestLateRowsRewriteTheirPartition(t *testing.T) {
	ctx := context.Background()
	w := newWorld()
	table := w.table(map[string]string{keyLate: lateRewrite})
	s, err := w.conn.OpenSink(ctx, table, conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 2 {
		noErrors(t, s.Publish(ctx, sealed(t, s, uint64(i+1), false, conntest.OneDay(int64(i)*10, 10)))...)
	}
	// Files are merged when a partition is announced again; the first time it is not
	// there yet.
	announce(t, s, day)
	if loc := w.fake.parts["t"][day].Storage.Location; loc != "file:/warehouse/t/"+day {
		t.Fatalf("announced at %s", loc)
	}
	noErrors(t, s.Publish(ctx, sealed(t, s, 3, false, conntest.OneDay(20, 1)))...)
	announce(t, s, day)
	loc := strings.TrimPrefix(w.fake.parts["t"][day].Storage.Location, "file:")
	if n := len(tableRows(t, w, table)); n != 21 || dataFiles(t, w.mem, loc) != 1 {
		t.Errorf("%d rows in %d files at %s, want 21 in 1", n, dataFiles(t, w.mem, loc), loc)
	}
}

// TestFilesOfOthersAreNotMerged: they may hold columns that the job does not know.
func TestFilesOfOthersAreNotMerged(t *testing.T) {
	ctx := context.Background()
	w := newWorld()
	more := append(cols("id", types.NewBigInt(), "extra", types.NewInt()), cols("dt", types.NewString())...)
	s, err := w.conn.OpenSink(ctx, w.tableOf(more, []int{2}, nil), conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	b := new(batch.Batch)
	b.Reset(&batch.Schema{Fields: []types.Field{more[0].Field, more[1].Field, more[2].Field}})
	for i := range b.Cols {
		b.Cols[i].Reset(b.Schema.Fields[i].Type, 1)
	}
	b.Cols[2].Data, b.Cols[2].Offsets, b.Len = []byte("2024-05-01"), []int32{0, 10}, 1
	noErrors(t, s.Publish(ctx, sealed(t, s, 1, false, b))...)
	s.Close()
	s, err = w.conn.OpenSink(ctx, w.tableOf(append(cols("id", types.NewBigInt()), more[2]), []int{1}, merging), conntest.OwnerOf(1, 2))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b = new(batch.Batch)
	b.Reset(&batch.Schema{Fields: []types.Field{more[0].Field, more[2].Field}})
	for i := range b.Cols {
		b.Cols[i].Reset(b.Schema.Fields[i].Type, 1)
	}
	b.Cols[1].Data, b.Cols[1].Offsets, b.Len = []byte("2024-05-01"), []int32{0, 10}, 1
	noErrors(t, s.Publish(ctx, sealed(t, s, 2, false, b))...)
	announce(t, s, day)
	if loc := w.fake.parts["t"][day].Storage.Location; loc != "file:/warehouse/t/"+day {
		t.Errorf("announced at %s", loc)
	}
	if p := w.fake.params("t", day); p["numFiles"] != "2" {
		t.Errorf("the metastore has %v", p)
	}
	if names, err := w.mem.List("/warehouse/t/.versions/" + day); err != nil || len(names) != 0 {
		t.Errorf("left behind: %v %v", names, err)
	}
}
