package filesystem

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/format/csvfmt"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// farScheme is a filesystem in memory behind paths "far://": without links, and
// with files that get their name when they are synced, another one than asked
// for.
type farScheme struct {
	fs       vfs.FS
	released int
}

func (*farScheme) Name() string { return "far" }

func (*farScheme) Options() []connector.Option {
	return []connector.Option{{Key: "far.away", Type: connector.OptInt, Default: "1"}}
}

func (*farScheme) CheckPath(url string) error {
	if !strings.HasPrefix(url, "far://host/") {
		return errors.New("there is one host")
	}
	return nil
}

func (*farScheme) Validate(v connector.Values) error {
	if v.Int("far.away") > 9 {
		return &connector.OptionError{Key: "far.away", OnValue: true, Message: "too far"}
	}
	return nil
}

func (s *farScheme) Mount(_ context.Context, url string, _ connector.Values) (vfs.FS, string, string, func() error, error) {
	return farFS{s.fs}, strings.TrimPrefix(url, "far://host"), "far://host", func() error { s.released++; return nil }, nil
}

type farFS struct{ vfs.FS }

func (farFS) Link(string, string) error { return vfs.ErrNotSupported }

// RenameNoReplace is, for directories, what a rename is where only a directory
// that is not empty is safe.
func (f farFS) RenameNoReplace(oldName, newName string) error {
	if names, err := f.List(newName); err == nil && len(names) > 0 {
		return vfs.ErrExist
	}
	return f.FS.RenameNoReplace(oldName, newName)
}

func (f farFS) CreateNew(name string) (vfs.File, error) {
	return &farFile{fs: f.FS, name: name}, nil
}

// farFile keeps what is written until it is synced.
type farFile struct {
	vfs.File
	fs   vfs.FS
	name string
	data []byte
}

func (f *farFile) Write(b []byte) (int, error) {
	f.data = append(f.data, b...)
	return len(b), nil
}

func (f *farFile) SyncContext(context.Context) error {
	f.name += "~1"
	h, err := f.fs.CreateNew(f.name)
	if err != nil {
		return err
	}
	if _, err := h.Write(f.data); err != nil {
		return err
	}
	f.File = h
	return h.Sync()
}

func (f *farFile) Name() string { return f.name }

func (f *farFile) Close() error {
	if f.File == nil {
		return nil
	}
	return f.File.Close()
}

// farWorld is a table behind the scheme.
type farWorld struct {
	*world
	scheme *farScheme
}

func newFarWorld(format string) *farWorld {
	w := newWorld(vfs.NewMem(), format)
	s := &farScheme{fs: vfs.NewFault(w.mem, w)}
	w.conn = New(vfs.NewMem(), nil, jsonfmt.Format{}, csvfmt.Format{}).With(s)
	return &farWorld{w, s}
}

func (w *farWorld) table() *connector.Table {
	return tableOf(w.conn, conntest.Columns(), []int{2}, map[string]string{"path": "far://host/lake/t", "format": w.format, keyPolicy: "success-file"})
}

func (w *farWorld) Open(ctx context.Context, o connector.Owner) (connector.Sink, error) {
	return w.conn.OpenSink(ctx, w.table(), o)
}

func (w *farWorld) AfterCrash(seed uint64) conntest.FaultWorld {
	next := newFarWorld(w.format)
	next.mem = w.world.AfterCrash(seed).(*world).mem
	next.scheme.fs = vfs.NewFault(next.mem, next.world)
	return next
}

func (w *farWorld) Visible(t testing.TB) []int64 {
	t.Helper()
	return w.world.Visible(t)
}

// TestAcceptanceOfAScheme runs the suite where there are no links and files are
// named late.
func TestAcceptanceOfAScheme(t *testing.T) {
	conntest.RunSink(t, func(testing.TB) conntest.World { return newFarWorld("parquet") })
}

// TestSchemeIsReleased: sinks and sources give their filesystem back, also when
// they could not be opened.
func TestSchemeIsReleased(t *testing.T) {
	w := newFarWorld("parquet")
	ctx := t.Context()
	s, err := w.Open(ctx, conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Open(ctx, conntest.OwnerOf(2, 1)); err == nil || !strings.Contains(err.Error(), "far://host/lake/t") {
		t.Fatalf("another job: %v", err)
	}
	src, err := w.conn.OpenSource(ctx, w.table())
	if err != nil {
		t.Fatal(err)
	}
	if w.scheme.released != 1 {
		t.Fatalf("released %d times while two are open and one was refused", w.scheme.released)
	}
	if err := errors.Join(s.Close(), src.Close()); err != nil || w.scheme.released != 3 {
		t.Fatalf("released %d times of 3: %v", w.scheme.released, err)
	}
}

// TestPathsAndFormatsThatAreRefused: each says why.
func TestPathsAndFormatsThatAreRefused(t *testing.T) {
	c := New(vfs.NewMem(), nil, jsonfmt.Format{}).With(&farScheme{})
	for _, x := range []struct {
		with map[string]string
		want string
	}{
		{map[string]string{"path": "s3://bucket/t", "format": "json"}, `not_yet: paths of scheme "s3"; there is far, file`},
		{map[string]string{"path": "far://elsewhere/t", "format": "json"}, "there is one host"},
		{map[string]string{"path": "far://host/t", "format": "json", "far.away": "10"}, "too far"},
		{map[string]string{"path": "/lake/t", "format": "json", "far.away": "2"}, "'far.away' has no effect"},
		{map[string]string{"path": "file:///lake/t", "format": "json", "far.away": "2"}, "'far.away' has no effect"},
		{map[string]string{"path": "/lake/t", "format": "orc"}, "not_yet: ORC"},
	} {
		x.with["connector"] = "filesystem"
		_, errs := c.Spec().Resolve(x.with)
		if len(errs) != 1 || !strings.Contains(errs[0].Message, x.want) {
			t.Errorf("%v: %v, want %q", x.with, errs, x.want)
		}
	}
}

// TestPartitionDroppedWhileTheJobRuns: somebody removes an old partition; a late
// row of it is published all the same.
func TestPartitionDroppedWhileTheJobRuns(t *testing.T) {
	w := newWorld(vfs.NewMem(), "parquet")
	ctx := t.Context()
	s, err := w.Open(ctx, conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := connector.ArtifactID{Job: conntest.UUID(1), Table: conntest.UUID(9), Lane: connector.LaneID{Topic: conntest.UUID(7)}, Epoch: 1}
	wr, err := s.OpenWriter(ctx, connector.Attempt{ID: id, MemoryBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer wr.Close()
	for round := range int64(2) {
		b := conntest.Rows(round, 1)
		buckets, err := wr.Buckets(b, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := wr.Write(b, nil, buckets[0]); err != nil {
			t.Fatal(err)
		}
		id.Sequence++
		as, err := wr.Seal(ctx, []connector.SealRequest{{Bucket: buckets[0], Header: connector.Header{ID: id, TablePartition: wr.Open()[0].TablePartition, Rows: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Publish(ctx, as)[0]
		if err != nil && round == 1 {
			// The first try finds out; the lane tries again.
			err = s.Publish(ctx, as)[0]
		}
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if round == 0 {
			if err := w.mem.RemoveAll("/lake/t/" + as[0].Header.TablePartition); err != nil {
				t.Fatal(err)
			}
		}
	}
	if ids := w.Visible(t); len(ids) != 1 || ids[0] != 1 {
		t.Fatalf("visible are %v", ids)
	}
}
