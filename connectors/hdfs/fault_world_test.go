//go:build services

package hdfs_test

import (
	"context"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/connectors/hdfs"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// faultScheme puts an injector before the filesystem of a scheme.
type faultScheme struct {
	*hdfs.Scheme
	inj vfs.Injector
}

func (s faultScheme) Mount(ctx context.Context, url string, v connector.Values) (vfs.FS, string, string, func() error, error) {
	fsys, dir, prefix, release, err := s.Scheme.Mount(ctx, url, v)
	if err != nil {
		return nil, "", "", nil, err
	}
	return vfs.NewFault(fsys, s.inj), dir, prefix, release, nil
}

// faultWorld is a table in HDFS whose changing operations fail on request or
// are cut off, as when the process is killed. HDFS itself loses nothing then.
type faultWorld struct {
	*conntest.Faulty
	conn, clean *filesystem.Connector
	table       *connector.Table
}

func newFaultWorld(t testing.TB, dir, format string) *faultWorld {
	w := &faultWorld{Faulty: conntest.NewFaulty(), clean: newConnector()}
	w.conn = newConnector(faultScheme{hdfs.NewScheme(vfs.NewOS(), noEnv), w})
	w.table = tableAt(t, w.conn, url(dir), format)
	return w
}

// changing are the operations that reach HDFS and change it; what only looks is
// the matrix of lost answers' business.
const changing = vfs.OpCreate | vfs.OpSync | vfs.OpRename | vfs.OpRemove | vfs.OpMkdir | vfs.OpLink

func (w *faultWorld) Inject(op vfs.Op) error {
	if op.Kind&changing != 0 {
		return w.Step()
	}
	return w.Down()
}

func (w *faultWorld) AfterCrash(uint64) conntest.FaultWorld {
	next := &faultWorld{Faulty: conntest.NewFaulty(), clean: w.clean, table: w.table}
	next.conn = newConnector(faultScheme{hdfs.NewScheme(vfs.NewOS(), noEnv), next})
	return next
}

func (w *faultWorld) Open(ctx context.Context, o connector.Owner) (connector.Sink, error) {
	return w.conn.OpenSink(ctx, w.table, o)
}

func (w *faultWorld) Visible(t testing.TB) []int64 {
	t.Helper()
	return visible(t, w.clean, w.table)
}

// TestFaults makes each changing operation fail, and cuts the process off before
// each.
func TestFaults(t *testing.T) {
	conntest.RunSink(t, func(t testing.TB) conntest.World { return newFaultWorld(t, newDir(), "parquet") })
}
