//go:build services

package redis

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
var shared *services.Redis

func TestMain(m *testing.M) {
	os.Exit(services.Main(m, 5*time.Minute, func(ctx context.Context, dir string) (_ *services.Redis, err error) {
		shared, err = services.StartRedis(ctx, dir)
		return shared, err
	}))
}

func ask(t testing.TB, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := shared.Ask(ctx, command...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// keysOf lists the keys of a pattern.
func keysOf(t testing.TB, pattern string) []string {
	t.Helper()
	return strings.Fields(ask(t, "--scan", "--pattern", pattern))
}

var prefixes atomic.Int64

// world is the suite's table as keys under a prefix of its own, with faults of the
// disk in front of the sealed files.
type world struct {
	t      testing.TB
	mem    *vfs.MemFS
	conn   *Connector
	prefix string
	faults *faults
}

type faults struct {
	ops, fail, crash atomic.Int64
	crashed          atomic.Bool
}

// Inject implements vfs.Injector.
func (f *faults) Inject(vfs.Op) error {
	op := f.ops.Add(1) - 1
	if op == f.crash.Load() {
		f.crashed.Store(true)
	}
	if f.crashed.Load() || op == f.fail.Load() {
		return fmt.Errorf("injected error at operation %d", op)
	}
	return nil
}

func newWorld(t testing.TB, mem *vfs.MemFS, prefix string) *world {
	w := &world{t: t, mem: mem, prefix: prefix, faults: &faults{}}
	w.faults.fail.Store(-1)
	w.faults.crash.Store(-1)
	w.conn = New(vfs.NewFault(mem, w.faults), "/staging")
	return w
}

func freshWorld(t testing.TB) conntest.World {
	t.Helper()
	// The fences of jobs that share ids with earlier worlds are theirs.
	if keys := keysOf(t, fencePrefix+"*"); len(keys) > 0 {
		ask(t, append([]string{"DEL"}, keys...)...)
	}
	return newWorld(t, vfs.NewMem(), "w"+strconv.FormatInt(prefixes.Add(1), 10))
}

// Shared says that several jobs may write the keys.
func (w *world) Shared() {}

func (w *world) Operations() int { return int(w.faults.ops.Load()) }
func (w *world) FailAt(op int)   { w.faults.fail.Store(int64(op)) }
func (w *world) CrashAt(op int)  { w.faults.crash.Store(int64(op)) }

func (w *world) AfterCrash(seed uint64) conntest.FaultWorld {
	return newWorld(w.t, w.mem.CrashClone(conntest.PowerCut(seed)), w.prefix)
}

func (w *world) Open(ctx context.Context, o connector.Owner) (connector.Sink, error) {
	return w.conn.OpenSink(ctx, tableOf(w.t, w.conn, conntest.Columns(), []int{0}, map[string]string{"key": w.prefix + ":{id}"}), o)
}

// Visible gives an id for each key: a key cannot be there twice, so that the fields
// are looked at, too.
func (w *world) Visible(t testing.TB) []int64 {
	t.Helper()
	const script = "local out = {} for _, k in ipairs(redis.call('KEYS', ARGV[1])) do " +
		"if redis.call('HGET', k, 'name') == 'row' and redis.call('HLEN', k) == 2 then out[#out+1] = k end end return out"
	var ids []int64
	for line := range strings.FieldsSeq(ask(t, "EVAL", script, "0", w.prefix+":*")) {
		id, err := strconv.ParseInt(strings.TrimPrefix(line, w.prefix+":"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// TestAcceptance takes the sink through the runtime's commit cycle against the real
// server: repeats, fences, errors and power cuts at each operation of the disk.
func TestAcceptance(t *testing.T) {
	conntest.RunSink(t, freshWorld)
}

// tableOf is a SQL table of columns with checked options; the key is that of all
// tests unless with says another.
func tableOf(t testing.TB, c *Connector, columns []connector.Column, key []int, with map[string]string) *connector.Table {
	t.Helper()
	if with["url"] == "" && with[keyMode] == "" {
		with["url"] = shared.URL()
	}
	return tableWith(t, c, columns, key, with)
}
