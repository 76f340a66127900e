//go:build services

package clickhouse

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// shared is the server of all tests of the package.
var shared *services.ClickHouse

func TestMain(m *testing.M) {
	os.Exit(services.Main(m, 5*time.Minute, func(ctx context.Context, dir string) (_ *services.ClickHouse, err error) {
		shared, err = services.StartClickHouse(ctx, dir)
		return shared, err
	}))
}

// ask runs a statement on the server itself.
func ask(t testing.TB, format string, args ...any) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := shared.Query(ctx, fmt.Sprintf(format, args...))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var tables atomic.Int64

// newTable names a table that no other test has, and drops it at the end.
func newTable(t testing.TB) string {
	name := "t" + strconv.FormatInt(tables.Add(1), 10)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := shared.Query(ctx, "DROP TABLE IF EXISTS "+name); err != nil {
			t.Error(err)
		}
	})
	return name
}

// tableOf is a SQL table of columns with checked options.
func tableOf(t testing.TB, c *Connector, columns []connector.Column, keys []int, with map[string]string) *connector.Table {
	t.Helper()
	with["connector"] = "clickhouse"
	if with["url"] == "" {
		with["url"] = shared.URL()
	}
	v, errs := c.Spec().Resolve(with)
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	return &connector.Table{Name: "events", Columns: columns, PartitionKeys: keys, Options: v, Zone: time.UTC}
}

// suiteWorld is the table of the acceptance suite.
type suiteWorld struct {
	t     testing.TB
	conn  *Connector
	table string
	with  map[string]string
}

func newSuiteWorld(t testing.TB, ddl string, with map[string]string) *suiteWorld {
	w := &suiteWorld{t: t, conn: New(vfs.NewOS(), t.TempDir()), table: newTable(t), with: map[string]string{"table-name": "", "sink.compression": "none"}}
	for k, v := range with {
		w.with[k] = v
	}
	w.with["table-name"] = w.table
	ask(t, "CREATE TABLE %s (id Int64, name String, dt LowCardinality(String)) ENGINE = MergeTree PARTITION BY dt ORDER BY id", w.table)
	if ddl != "" {
		ask(t, ddl, w.table)
	}
	return w
}

// Shared says that several jobs may write the table.
func (w *suiteWorld) Shared() {}

// ReplaceMode implements conntest.ReplaceWorld.
func (w *suiteWorld) ReplaceMode() connector.ReplaceMode { return connector.ReplaceResults }

func (w *suiteWorld) Open(ctx context.Context, o connector.Owner) (connector.Sink, error) {
	return w.conn.OpenSink(ctx, tableOf(w.t, w.conn, conntest.Columns(), nil, w.with), o)
}

func (w *suiteWorld) Visible(t testing.TB) []int64 {
	t.Helper()
	var ids []int64
	for line := range strings.FieldsSeq(ask(t, "SELECT id FROM %s", w.table)) {
		id, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func TestReplacer(t *testing.T) {
	conntest.RunReplacer(t, func(t testing.TB) conntest.ReplaceWorld {
		return newSuiteWorld(t, "", map[string]string{keyMethod: methodReplace})
	})
}

// protocols are the server's addresses by protocol.
func protocols() map[string]string {
	return map[string]string{"native": shared.URL(), "http": shared.WebURL()}
}

func TestAcceptance(t *testing.T) {
	for name, ddl := range map[string]string{
		"token":  "ALTER TABLE %s MODIFY SETTING non_replicated_deduplication_window = 1000",
		"column": "ALTER TABLE %s ADD COLUMN _mr_artifact LowCardinality(String)",
	} {
		for protocol, url := range protocols() {
			if protocol == "http" && name != "token" {
				continue
			}
			t.Run(name+"/"+protocol, func(t *testing.T) {
				conntest.RunSink(t, func(t testing.TB) conntest.World {
					return newSuiteWorld(t, ddl, map[string]string{keyMethod: name, "url": url})
				})
			})
		}
	}
}
