//go:build services

package hdfs_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/connectors/format/csvfmt"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/connectors/hdfs"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// cluster is the one that the tests of this package share: a NameNode and a
// DataNode. Each test works in directories of its own.
var cluster *services.HDFS

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(services.Main(m, 10*time.Minute, func(ctx context.Context, dir string) (_ *services.HDFS, err error) {
		cluster, err = services.StartHDFS(ctx, services.HDFSOptions{Dir: filepath.Join(dir, "cluster")})
		return cluster, err
	}))
}

var directories atomic.Int64

// newDir is a directory in HDFS that no other test uses.
func newDir() string { return fmt.Sprintf("/test/t%d", directories.Add(1)) }

// noEnv is an environment without Hadoop's variables, whatever this process has.
func noEnv(key string) string {
	if key == "TMPDIR" {
		return os.TempDir()
	}
	return ""
}

func newConnector(schemes ...filesystem.Scheme) *filesystem.Connector {
	if len(schemes) == 0 {
		schemes = append(schemes, hdfs.NewScheme(vfs.NewOS(), noEnv))
	}
	return filesystem.New(vfs.NewOS(), nil, jsonfmt.Format{}, csvfmt.Format{}).With(schemes...)
}

// tableAt is the suite's table in a directory of the shared cluster; more are
// further options, as key, value...
func tableAt(t testing.TB, c *filesystem.Connector, url, format string, more ...string) *connector.Table {
	t.Helper()
	with := map[string]string{"connector": "filesystem", "path": url, "format": format, "sink.partition-commit.policy.kind": "success-file",
		"hdfs.user": superuser(), "hdfs.rpc-timeout": "5 s"}
	for i := 0; i < len(more); i += 2 {
		with[more[i]] = more[i+1]
	}
	v, errs := c.Spec().Resolve(with)
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	return &connector.Table{Name: "t", Columns: conntest.Columns(), PartitionKeys: []int{2}, Options: v, Zone: time.UTC}
}

// superuser is the user that the NameNode runs as.
func superuser() string {
	if u := os.Getenv("USER"); u != "" {
		return u
	}
	return "root"
}

func url(dir string) string { return "hdfs://" + cluster.Addresses[0] + dir }

// world is a table on the shared cluster.
type world struct {
	conn  *filesystem.Connector
	table *connector.Table
}

func newWorld(t testing.TB, format string) *world {
	c := newConnector()
	return &world{conn: c, table: tableAt(t, c, url(newDir()), format)}
}

func (w *world) Open(ctx context.Context, o connector.Owner) (connector.Sink, error) {
	return w.conn.OpenSink(ctx, w.table, o)
}

func (w *world) Visible(t testing.TB) []int64 {
	t.Helper()
	return visible(t, w.conn, w.table)
}

// visible are the ids of a table's rows.
func visible(t testing.TB, c *filesystem.Connector, table *connector.Table) []int64 {
	t.Helper()
	var ids []int64
	for _, b := range readTable(t, c, table) {
		ids = append(ids, b.Cols[0].I64[:b.Len]...)
	}
	return ids
}

// readTable reads all splits of a table.
func readTable(t testing.TB, c *filesystem.Connector, table *connector.Table) []*batch.Batch {
	t.Helper()
	ctx := context.Background()
	s, err := c.OpenSource(ctx, table)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
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
	r, err := s.Open(ctx, splits, nil, func() {})
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
