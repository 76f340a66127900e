//go:build services

package hive

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/connectors/hive/metastore"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// lake is a real metastore, with a client of ours beside the connector's.
type lake struct {
	*services.Metastore
	client *metastore.Client
}

func startLake(t *testing.T, o services.MetastoreOptions) *lake {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	o.Dir = t.TempDir()
	m, err := services.StartMetastore(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the metastore's log:\n%s", m.Log())
		}
		m.Kill()
	})
	c := metastore.New(metastore.Options{Addresses: []string{m.Address}})
	t.Cleanup(func() { c.Close() })
	return &lake{Metastore: m, client: c}
}

// newProxy stands before a metastore.
func newProxy(t *testing.T, m *services.Metastore) *services.MetastoreProxy {
	t.Helper()
	p, err := services.NewMetastoreProxy(m.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// realWorld is a new table in it; uri may be a proxy's.
type realWorld struct {
	lake *lake
	conn *Connector
	name string
	uri  string
}

func (l *lake) world(name, uri string) *realWorld {
	return &realWorld{lake: l, conn: New(filesystem.New(vfs.NewOS(), nil)), name: name, uri: uri}
}

func (w *realWorld) table(cols []connector.Column, keys []int, with map[string]string) *connector.Table {
	all := map[string]string{"connector": "hive", keyURIs: w.uri, keyTable: w.name, keyCreate: "true", keyPolicy: "metastore,success-file"}
	for k, v := range with {
		all[k] = v
	}
	v, errs := w.conn.Spec().Resolve(all)
	if len(errs) > 0 {
		panic(errs[0])
	}
	return &connector.Table{Name: w.name, Columns: cols, PartitionKeys: keys, Options: v, Zone: time.UTC}
}

func (w *realWorld) Open(ctx context.Context, o connector.Owner) (connector.Sink, error) {
	return w.conn.OpenSink(ctx, w.table(conntest.Columns(), []int{2}, nil), o)
}

func (w *realWorld) open(t testing.TB, epoch uint64) *Sink {
	t.Helper()
	s, err := w.Open(context.Background(), conntest.OwnerOf(1, epoch))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.(*Sink)
}

func (w *realWorld) dir() string {
	return filepath.Join(strings.TrimPrefix(w.lake.Warehouse, "file://"), w.name)
}

func (w *realWorld) Visible(t testing.TB) []int64 {
	t.Helper()
	var ids []int64
	for _, b := range readDir(t, vfs.NewOS(), w.dir(), conntest.Columns(), []int{2}) {
		ids = append(ids, b.Cols[0].I64[:b.Len]...)
	}
	return ids
}

func (w *realWorld) partition(t testing.TB, name string) *metastore.Partition {
	t.Helper()
	ps, err := w.lake.client.Partitions(context.Background(), "default", w.name, []string{name})
	if err != nil {
		t.Fatal(err)
	}
	if len(ps) == 0 {
		return nil
	}
	return ps[0]
}

// wantPartitions checks that exactly these are registered, where their files
// are, with these rows.
func (w *realWorld) wantPartitions(t testing.TB, rows map[string]int) {
	t.Helper()
	names, err := w.lake.client.PartitionNames(context.Background(), "default", w.name)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != len(rows) {
		t.Errorf("registered %v, want %v", names, rows)
	}
	for name, n := range rows {
		p := w.partition(t, name)
		if p == nil {
			t.Errorf("%s is not registered", name)
			continue
		}
		files, bytes := dirBytes(t, vfs.NewOS(), filepath.Join(w.dir(), name))
		want := fmt.Sprintf("%d files, %d bytes, %d rows", files, bytes, n)
		have := fmt.Sprintf("%s files, %s bytes, %s rows", p.Parameters["numFiles"], p.Parameters["totalSize"], p.Parameters["numRows"])
		if have != want || normal(p.Storage.Location) != normal(filepath.Join(w.dir(), name)) {
			t.Errorf("%s: %s at %s, want %s", name, have, p.Storage.Location, want)
		}
		if _, err := os.Stat(filepath.Join(w.dir(), name, "_SUCCESS")); err != nil {
			t.Error(err)
		}
	}
}
