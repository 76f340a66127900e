package hive

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/connectors/hive/metastore"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// fakeCatalog is a metastore in memory. fault, when set, is asked before and
// after the effect of each call; its error is the call's.
type fakeCatalog struct {
	mu     sync.Mutex
	tables map[string]*metastore.Table
	parts  map[string]map[string]*metastore.Partition
	fault  func(method string, done bool) error
	calls  []string
	adds   map[string]int
	// refuse is a value of the first partition column that is not taken.
	refuse string
}

func newFake() *fakeCatalog {
	return &fakeCatalog{tables: map[string]*metastore.Table{}, parts: map[string]map[string]*metastore.Partition{}, adds: map[string]int{}}
}

func (f *fakeCatalog) do(method string, effect func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, method)
	if f.fault != nil {
		if err := f.fault(method, false); err != nil {
			return err
		}
	}
	err := effect()
	if err == nil && f.fault != nil {
		err = f.fault(method, true)
	}
	return err
}

func fault(cause error) error { return &metastore.Fault{Method: "fake", Cause: cause} }

func (f *fakeCatalog) Database(_ context.Context, name string) (db *metastore.Database, err error) {
	err = f.do("database", func() error {
		if name != "default" {
			return fault(metastore.ErrNoSuchObject)
		}
		db = &metastore.Database{Name: name}
		return nil
	})
	return db, err
}

func (f *fakeCatalog) Table(_ context.Context, db, name string) (t *metastore.Table, err error) {
	err = f.do("table", func() error {
		if f.tables[name] == nil {
			return fault(metastore.ErrNoSuchObject)
		}
		t = f.tables[name].Clone()
		return nil
	})
	return t, err
}

func (f *fakeCatalog) CreateTable(_ context.Context, t *metastore.Table) error {
	return f.do("create", func() error {
		if t.Database != "default" {
			return fault(metastore.ErrInvalidObject)
		}
		if f.tables[t.Name] != nil {
			return fault(metastore.ErrAlreadyExists)
		}
		c := t.Clone()
		if c.Storage.Location == "" {
			c.Storage.Location = "file:/warehouse/" + t.Name
		}
		f.tables[t.Name], f.parts[t.Name] = c, map[string]*metastore.Partition{}
		return nil
	})
}

func (f *fakeCatalog) AlterTable(_ context.Context, t *metastore.Table, cascade bool) error {
	return f.do("alter table", func() error {
		f.tables[t.Name] = t.Clone()
		if cascade {
			for _, p := range f.parts[t.Name] {
				p.Storage.Columns = t.Clone().Storage.Columns
			}
		}
		return nil
	})
}

func partName(t *metastore.Table, values []string) string {
	var parts []string
	for i, k := range t.PartitionKeys {
		parts = append(parts, k.Name+"="+strings.NewReplacer(":", "%3A", "/", "%2F", "%", "%25").Replace(values[i]))
	}
	return strings.Join(parts, "/")
}

func (f *fakeCatalog) Partitions(_ context.Context, db, table string, names []string) (out []*metastore.Partition, err error) {
	err = f.do("partitions", func() error {
		for _, n := range names {
			if p := f.parts[table][n]; p != nil {
				out = append(out, p.Clone())
			}
		}
		return nil
	})
	return out, err
}

func (f *fakeCatalog) AddPartitions(_ context.Context, db, table string, parts []*metastore.Partition) (added []*metastore.Partition, err error) {
	err = f.do("add", func() error {
		t := f.tables[table]
		if t == nil {
			return fault(metastore.ErrInvalidObject)
		}
		for _, p := range parts {
			if p.Values[0] == f.refuse {
				return fault(metastore.ErrMeta)
			}
		}
		for _, p := range parts {
			n := partName(t, p.Values)
			if f.parts[table][n] == nil {
				f.parts[table][n] = p.Clone()
				f.adds[n]++
				added = append(added, p.Clone())
			}
		}
		return nil
	})
	return added, err
}

func (f *fakeCatalog) AlterPartitions(_ context.Context, db, table string, parts []*metastore.Partition) error {
	return f.do("alter", func() error {
		for _, p := range parts {
			if p.Values[0] == f.refuse {
				return fault(metastore.ErrMeta)
			}
		}
		for _, p := range parts {
			n := partName(f.tables[table], p.Values)
			if f.parts[table][n] == nil {
				return fault(metastore.ErrInvalidOperation)
			}
			f.parts[table][n] = p.Clone()
		}
		return nil
	})
}

func (f *fakeCatalog) PartitionNames(_ context.Context, db, table string) (names []string, err error) {
	err = f.do("names", func() error {
		for n := range f.parts[table] {
			names = append(names, n)
		}
		slices.Sort(names)
		return nil
	})
	return names, err
}

func (f *fakeCatalog) Close() error { return nil }

// params are a partition's properties, nil when it is not there.
func (f *fakeCatalog) params(table, name string) map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.parts[table][name]; p != nil {
		return maps.Clone(p.Parameters)
	}
	return nil
}

// world is a table of a metastore and a filesystem, both in memory.
type world struct {
	mem  *vfs.MemFS
	fake *fakeCatalog
	conn *Connector
}

func newWorld() *world {
	w := &world{mem: vfs.NewMem(), fake: newFake()}
	w.conn = New(filesystem.New(w.mem, nil))
	w.conn.dial = func(metastore.Options) catalog { return w.fake }
	return w
}

// table has the suite's columns and these options beside the usual ones.
func (w *world) table(with map[string]string) *connector.Table {
	return w.tableOf(conntest.Columns(), []int{2}, with)
}

func (w *world) tableOf(cols []connector.Column, keys []int, with map[string]string) *connector.Table {
	all := map[string]string{"connector": "hive", keyURIs: "thrift://meta:9083", keyCreate: "true", keyPolicy: "metastore,success-file"}
	for k, v := range with {
		all[k] = v
		if v == "" {
			delete(all, k)
		}
	}
	v, errs := w.conn.Spec().Resolve(all)
	if len(errs) > 0 {
		panic(errs[0])
	}
	return &connector.Table{Name: "T", Columns: cols, PartitionKeys: keys, Options: v, Zone: time.UTC}
}

// Open implements conntest.World.
func (w *world) Open(ctx context.Context, o connector.Owner) (connector.Sink, error) {
	return w.conn.OpenSink(ctx, w.table(nil), o)
}

// Visible implements conntest.World: it reads the directory.
func (w *world) Visible(t testing.TB) []int64 {
	t.Helper()
	var ids []int64
	for _, b := range readDir(t, w.mem, "/warehouse/t", conntest.Columns(), []int{2}) {
		ids = append(ids, b.Cols[0].I64[:b.Len]...)
	}
	return ids
}

// readDir reads a table's directory by connector filesystem.
func readDir(t testing.TB, fsys vfs.FS, dir string, cols []connector.Column, keys []int) []*batch.Batch {
	t.Helper()
	ctx := context.Background()
	c := filesystem.New(fsys, nil)
	v, errs := c.Spec().Resolve(map[string]string{"connector": "filesystem", "format": "parquet", "path": dir})
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	s, err := c.OpenSource(ctx, &connector.Table{Name: "t", Columns: cols, PartitionKeys: keys, Options: v, Zone: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return readAll(t, s, nil)
}

// readAll reads the columns of a source.
func readAll(t testing.TB, s connector.Source, columns []int) []*batch.Batch {
	t.Helper()
	ctx := context.Background()
	parts, err := s.Partitions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	from, err := s.Start(ctx, parts)
	if err != nil {
		t.Fatal(err)
	}
	ends, err := s.End(ctx, parts)
	if err != nil {
		t.Fatal(err)
	}
	var splits []connector.Split
	for i := range parts {
		splits = append(splits, connector.Split{Number: int32(i), From: from[i], End: ends[i]})
	}
	r, err := s.Open(ctx, splits, columns, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []*batch.Batch
	for {
		b := new(batch.Batch)
		err := r.Next(ctx, b, 1000, 1<<20)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
}
