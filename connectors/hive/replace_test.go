package hive

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/connectors/hive/metastore"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// faultWorld is a world whose operations on files and calls of the metastore can
// fail, before their effect or, calls alone, after it; a power cut takes what was
// not synced.
type faultWorld struct {
	*world
	*conntest.Faulty
	with map[string]string
}

func newFaultWorld(mem *vfs.MemFS, with map[string]string) *faultWorld {
	w := &faultWorld{world: &world{mem: mem, fake: newFake()}, with: with, Faulty: conntest.NewFaulty()}
	w.conn = New(filesystem.New(vfs.NewFault(mem, w), nil))
	w.conn.dial = func(metastore.Options) catalog { return w.fake }
	w.fake.fault = func(string, bool) error {
		if err := w.Step(); err != nil {
			return &metastore.CallError{Method: "fake", Sent: true, Err: err}
		}
		return nil
	}
	return w
}

func (w *faultWorld) AfterCrash(seed uint64) conntest.FaultWorld {
	next := newFaultWorld(w.mem.CrashClone(conntest.PowerCut(seed)), w.with)
	w.fake.mu.Lock()
	defer w.fake.mu.Unlock()
	for name, t := range w.fake.tables {
		next.fake.tables[name], next.fake.parts[name] = t.Clone(), map[string]*metastore.Partition{}
		for n, p := range w.fake.parts[name] {
			next.fake.parts[name][n] = p.Clone()
		}
	}
	return next
}

func (w *faultWorld) ReplaceMode() connector.ReplaceMode {
	mode, _ := w.conn.ReplaceMode(w.table(w.with))
	return mode
}

func (w *faultWorld) Open(ctx context.Context, o connector.Owner) (connector.Sink, error) {
	return w.conn.OpenSink(ctx, w.table(w.with), o)
}

// Visible gives what readers of the table see: of partitions that are registered
// what lies where the metastore says, else what lies in their own directories.
func (w *faultWorld) Visible(t testing.TB) []int64 {
	t.Helper()
	w.fake.mu.Lock()
	at := map[string]string{}
	for name, p := range w.fake.parts["t"] {
		at[name] = strings.TrimPrefix(p.Storage.Location, "file:")
	}
	w.fake.mu.Unlock()
	names, err := w.mem.List("/warehouse/t")
	if err != nil {
		return nil
	}
	for _, n := range names {
		if strings.HasPrefix(n, "dt=") && at[n] == "" {
			at[n] = "/warehouse/t/" + n
		}
	}
	var ids []int64
	for _, dir := range slices.Sorted(maps.Values(at)) {
		if ok, err := vfs.Exists(w.mem, dir); err != nil || !ok {
			continue // registered before anything was there
		}
		for _, b := range readDir(t, w.mem, dir, conntest.Columns()[:2], nil) {
			ids = append(ids, b.Cols[0].I64[:b.Len]...)
		}
	}
	return ids
}

// TestReplacer takes replacements through an error and a power cut at each operation
// on files and each call of the metastore, before and after its effect.
func TestReplacer(t *testing.T) {
	conntest.RunReplacer(t, func(testing.TB) conntest.ReplaceWorld { return newFaultWorld(vfs.NewMem(), nil) })
}
