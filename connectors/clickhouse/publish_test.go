package clickhouse

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/millrace/millrace/connectors/sealdir"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// scriptedConn is a connection whose answers a test gives. What it does not give
// must not be asked.
type scriptedConn struct {
	driver.Conn
	prepare func(ctx context.Context, query string) (driver.Batch, error)
	row     func(query string, dest []any) error
	exec    func(ctx context.Context, query string) error
}

func (c *scriptedConn) PrepareBatch(ctx context.Context, query string, _ ...driver.PrepareBatchOption) (driver.Batch, error) {
	return c.prepare(ctx, query)
}

func (c *scriptedConn) QueryRow(_ context.Context, query string, _ ...any) driver.Row {
	return scriptedRow{scan: func(dest []any) error { return c.row(query, dest) }}
}

func (c *scriptedConn) Exec(ctx context.Context, query string, _ ...any) error {
	return c.exec(ctx, query)
}

type scriptedRow struct {
	driver.Row
	scan func(dest []any) error
}

func (r scriptedRow) Scan(dest ...any) error { return r.scan(dest) }

// scriptedSink is a sink over a connection, with one sealed block of two rows.
func scriptedSink(t testing.TB, fsys vfs.FS, conn *scriptedConn, d *definition) (*sink, connector.Artifact) {
	t.Helper()
	st, err := sealdir.Open(fsys, "/data", "clickhouse", "events", connector.Owner{JobEpoch: 1})
	if err != nil {
		t.Fatal(err)
	}
	opts := tableOptions{database: "default", table: "events", exactlyOnce: true, connect: time.Minute, request: time.Minute}
	s := &sink{fs: fsys, opts: opts, staging: st, server: &server{conn: conn, opts: opts, settings: ch.Settings{}, soon: context.Background()},
		bound: &binding{def: d, method: methodColumn}, slots: make(chan struct{}, maxInserts), used: map[string]bool{}, busy: map[string]chan struct{}{}, reasons: map[string]string{}}
	if d.column(artifactColumn) != nil {
		if err := s.bound.bindArtifact(d, s.server); err != nil {
			t.Fatal(err)
		}
	}
	id := connector.ArtifactID{Epoch: 1, Sequence: 1}
	dir, err := st.Fence(id)
	if err != nil {
		t.Fatal(err)
	}
	c := columnOf(t, types.NewBigInt().NotNull(), "Int64")
	bufs := []buffer{{rows: 2, data: make([]byte, 16)}}
	h := sealedHead{id: id.String(), rows: 2, columns: []sealedColumn{{name: "id", typ: "Int64"}}}
	n, err := writeSealed(fsys, fsys.Join(dir, id.String()+sealdir.Sealed), &h, []*column{c}, bufs)
	if err != nil {
		t.Fatal(err)
	}
	if err := fsys.SyncDir(dir); err != nil {
		t.Fatal(err)
	}
	return s, connector.Artifact{Header: connector.Header{ID: id, Rows: 2}, Payload: payload{rows: 2, bytes: n}.encode()}
}

var plain = definition{engine: "MergeTree", columns: []tableColumn{{name: "id", typ: "Int64"}, {name: artifactColumn, typ: "String"}}}

// A machine that loses power after a block was sent must know that it was sent:
// what is "for certain not in the table" is sent without a look.
func TestPowerCutAfterABlockWasSent(t *testing.T) {
	fsys := vfs.NewMem()
	var after *vfs.MemFS
	conn := &scriptedConn{prepare: func(context.Context, string) (driver.Batch, error) {
		after = fsys.CrashClone(vfs.CrashOptions{})
		return nil, errors.New("the power is cut")
	}}
	s, a := scriptedSink(t, fsys, conn, &plain)
	if err := s.publish(t.Context(), a); err == nil {
		t.Fatal("published without a server")
	}
	st := *s.staging
	st.FS = after
	_, state, err := st.Find(a.Header.ID)
	if err != nil || state != sealdir.Tried {
		t.Fatalf("after the power cut the block is %q (%v), want %q", state, err, sealdir.Tried)
	}
}

// A block whose file is gone is absent only when its query is over, however well
// the table remembers tokens: its rows would come again under another id.
func TestAbsentOnlyWhenTheQueryIsOver(t *testing.T) {
	fsys := vfs.NewMem()
	conn := &scriptedConn{
		row: func(query string, dest []any) error {
			n := uint64(0)
			if strings.Contains(query, "system.processes") {
				n = 1 // it does not end
			}
			*dest[0].(*uint64) = n
			return nil
		},
		exec: func(context.Context, string) error { return nil },
	}
	d := plain
	d.window = 1000
	s, a := scriptedSink(t, fsys, conn, &d)
	s.server.tokens = true
	s.opts.request = 10 * time.Millisecond
	path, _, err := s.staging.Find(a.Header.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := fsys.Remove(path); err != nil {
		t.Fatal(err)
	}
	out, err := s.Resolve(t.Context(), []connector.Artifact{a})
	if err == nil {
		t.Fatalf("resolved as %s while its query runs", out[0])
	}
}

// Of several servers, the one that is asked may not know of a query on another.
func TestAbsentFromOneServerOfSeveral(t *testing.T) {
	fsys := vfs.NewMem()
	rows := uint64(0)
	conn := &scriptedConn{
		row: func(query string, dest []any) error {
			n := rows
			if strings.Contains(query, "system.processes") {
				n = 0
			}
			*dest[0].(*uint64) = n
			return nil
		},
		exec: func(context.Context, string) error { return nil },
	}
	d := plain
	d.engine = "ReplicatedMergeTree"
	s, a := scriptedSink(t, fsys, conn, &d)
	path, _, err := s.staging.Find(a.Header.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := fsys.Remove(path); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		hosts int
		rows  uint64
		want  connector.Outcome
	}{{1, 0, connector.Absent}, {2, 0, connector.Unknown}, {2, 2, connector.Published}} {
		s.opts.addr.hosts, rows = make([]string, c.hosts), c.rows
		out, err := s.Resolve(t.Context(), []connector.Artifact{a})
		if err != nil || out[0] != c.want {
			t.Errorf("%d servers, %d rows: %s (%v), want %s", c.hosts, c.rows, out[0], err, c.want)
		}
		if why := s.ExplainUnknown(a); c.want == connector.Unknown && !strings.Contains(why, "system.processes") {
			t.Errorf("explained as %q", why)
		}
	}
}

// Lanes that try refused rows at the same time have one trial table.
func TestTrialsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var trying, most atomic.Int64
		conn := &scriptedConn{
			exec: func(_ context.Context, query string) error {
				if trying.Load() > 0 {
					t.Errorf("%s while another lane tries its rows", query)
				}
				return nil
			},
			prepare: func(context.Context, string) (driver.Batch, error) {
				most.Store(max(most.Load(), trying.Add(1)))
				defer trying.Add(-1)
				<-release
				return nil, errors.New("over")
			},
		}
		s, _ := scriptedSink(t, vfs.NewMem(), conn, &definition{engine: "MergeTree"})
		b := &batch.Batch{Len: 1}
		for range 2 {
			w := &writer{sink: s, bound: &binding{def: s.bound.def}}
			go func() { _ = w.try(t.Context(), b, []int32{0}, func(int32, string) {}) }()
		}
		synctest.Wait()
		close(release)
		synctest.Wait()
		if most.Load() != 1 {
			t.Errorf("%d lanes tried their rows at once", most.Load())
		}
	})
}

// However many lanes publish at once, a few blocks are in memory.
func TestBlocksInMemoryAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var sending, most atomic.Int64
		conn := &scriptedConn{prepare: func(context.Context, string) (driver.Batch, error) {
			most.Store(max(most.Load(), sending.Add(1)))
			defer sending.Add(-1)
			<-release
			return nil, errors.New("over")
		}}
		s, a := scriptedSink(t, vfs.NewMem(), conn, &plain)
		path, _, err := s.staging.Find(a.Header.ID)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 * maxInserts {
			go func() { _ = s.send(t.Context(), a, path, true) }()
		}
		synctest.Wait()
		close(release)
		synctest.Wait()
		if most.Load() != maxInserts {
			t.Errorf("%d blocks were sent at once, want %d", most.Load(), maxInserts)
		}
	})
}

// A replica that has lost its Keeper does not know how many blocks were written: that
// is no reason to ask a person, and none to send again.
func TestReplicaWithoutKeeper(t *testing.T) {
	index := int64(100)
	conn := &scriptedConn{row: func(query string, dest []any) error {
		if strings.Contains(query, "system.processes") {
			*dest[0].(*uint64) = 0
			return nil
		}
		if !strings.Contains(query, "system.replicas") {
			t.Errorf("asked %s", query)
		}
		*dest[0].(*string), *dest[1].(*int64), *dest[2].(*int64), *dest[3].(*int64) = "", index, 1_700_000_000, 1
		return nil
	}}
	d := definition{engine: "ReplicatedMergeTree", window: 1000, columns: []tableColumn{{name: "id", typ: "Int64"}}}
	s, a := scriptedSink(t, vfs.NewMem(), conn, &d)
	s.bound.method, s.server.tokens = methodToken, true
	path, _, err := s.staging.Find(a.Header.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	blocks, now, _ := s.mark()
	h := sealedHead{id: a.Header.ID.String(), rows: 2, partsBefore: blocks, sealedAt: now, columns: []sealedColumn{{name: "id", typ: "Int64"}}}
	tried := strings.TrimSuffix(path, sealdir.Sealed) + sealdir.Tried
	if _, err := writeSealed(s.fs, tried, &h, []*column{columnOf(t, types.NewBigInt().NotNull(), "Int64")}, []buffer{{rows: 2, data: make([]byte, 16)}}); err != nil {
		t.Fatal(err)
	}
	if err := s.fs.Remove(path); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		index int64
		want  connector.Outcome
		fails bool
	}{{100, connector.Sealed, false}, {0, connector.Unknown, true}, {599, connector.Sealed, false}, {600, connector.Unknown, false}} {
		index = c.index
		out, err := s.Resolve(t.Context(), []connector.Artifact{a})
		if out[0] != c.want || (err != nil) != c.fails {
			t.Errorf("at entry %d of the log the outcome is %s (%v), want %s", index, out[0], err, c.want)
		}
	}
	index = 0
	if err := s.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if blocks, _, _ := s.mark(); blocks != 100 {
		t.Errorf("the count fell to %d", blocks)
	}
}

// A block that was sent before and is refused now is bad if none of its rows is there:
// else the lane would try it for ever. Without a way to count, nobody can say.
func TestRefusedAtASecondTry(t *testing.T) {
	for name, c := range map[string]struct {
		rows    uint64
		column  bool
		code    int32
		refused bool
	}{
		"not there":      {0, true, 469, true},
		"another table":  {0, true, 16, true},
		"there":          {2, true, 469, false},
		"not to be told": {0, false, 469, false},
		"for now":        {0, true, 241, false},
		"read-only":      {0, true, 242, false},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := vfs.NewMem()
			conn := &scriptedConn{
				prepare: func(context.Context, string) (driver.Batch, error) { return nil, &ch.Exception{Code: c.code} },
				row: func(query string, dest []any) error {
					n := c.rows
					if strings.Contains(query, "system.processes") {
						n = 0
					}
					*dest[0].(*uint64) = n
					return nil
				},
			}
			d := plain
			if !c.column {
				d.columns = d.columns[:1]
			}
			s, a := scriptedSink(t, fsys, conn, &d)
			path, _, err := s.staging.Find(a.Header.ID)
			if err != nil {
				t.Fatal(err)
			}
			if path, err = s.staging.Mark(path, sealdir.Sealed, sealdir.Tried); err != nil {
				t.Fatal(err)
			}
			err = s.send(t.Context(), a, path, true)
			if err == nil || errors.Is(err, connector.ErrRefused) != c.refused {
				t.Errorf("the second try: %v", err)
			}
			want := sealdir.Tried
			if c.refused {
				want = sealdir.Sealed
			}
			if _, state, err := s.staging.Find(a.Header.ID); err != nil || state != want {
				t.Errorf("the block is %q (%v), want %q", state, err, want)
			}
		})
	}
}

// What is in a URL is nobody's business when it is refused.
func TestRefusedURLsKeepTheirSecrets(t *testing.T) {
	for _, url := range []string{
		"clickhouse://u:hush@host:9000", "clickhouse://u:hush@host:9000/db", "clickhouse://host:9000?password=hush", "clickhouse://host:9000/?user=u&password=hush",
		"u:hush@host:9000", "clickhouse://u:hu,sh@host", "clickhouse://host:9000#hush", "clickhouse://u:hush%zz@host", "http://u:hush@host:8123",
	} {
		_, err := parseURL(url)
		if err == nil {
			t.Errorf("%s is taken", url)
		} else if strings.Contains(err.Error(), "hu") {
			t.Errorf("%s: %v", url, err)
		}
	}
	a, err := parseURL("clickhouse://one,two:9001,[::1]:9002/")
	if want := []string{"one:9000", "two:9001", "[::1]:9002"}; err != nil || !slices.Equal(a.hosts, want) {
		t.Errorf("%v, %v, want %v", a.hosts, err, want)
	}
}

// Servers that do not replicate a table are not each other's replicas: a block would
// be looked for on one and lie on the other.
func TestSeveralServersNeedReplication(t *testing.T) {
	table := &connector.Table{Columns: []connector.Column{{Field: types.Field{Name: "id", Type: types.NewBigInt().NotNull()}}}}
	for engine, fine := range map[string]bool{"MergeTree": false, "ReplicatedMergeTree": true} {
		d := plain
		d.engine = engine
		s := &server{opts: tableOptions{addr: address{hosts: []string{"one:9000", "two:9000"}}, exactlyOnce: true, method: methodAuto}, timeZone: types.UTC()}
		_, err := bind(table, &d, s)
		if fine != (err == nil) {
			t.Errorf("%s on two servers: %v", engine, err)
		}
		s.opts.exactlyOnce = false
		if _, err := bind(table, &d, s); err != nil {
			t.Errorf("%s on two servers, at least once: %v", engine, err)
		}
	}
}

// A disk that is full gets back what a block that did not fit has taken.
func TestSealOnAFullDisk(t *testing.T) {
	fsys := vfs.NewLimited(vfs.NewMem(), 1000)
	c := columnOf(t, types.NewBigInt().NotNull(), "Int64")
	bufs := []buffer{{rows: 1000, data: make([]byte, 8000)}}
	h := sealedHead{id: "b", rows: 1000, columns: []sealedColumn{{name: "id", typ: "Int64"}}}
	if _, err := writeSealed(fsys, "/b", &h, []*column{c}, bufs); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if n := fsys.Used(); n != 0 {
		t.Errorf("%d bytes of the block are left", n)
	}
}

// Too many parts (252): the block is kept, and each try waits longer, up to 30 s. Before
// that a partition with more than 100 parts makes blocks wait, by up to two seconds.
func TestTooManyPartsSlowTheLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &scriptedConn{prepare: func(context.Context, string) (driver.Batch, error) { return nil, &ch.Exception{Code: 252} }}
		s, a := scriptedSink(t, vfs.NewMem(), conn, &plain)
		for i, want := range []time.Duration{0, 1, 2, 4, 8, 16, 30, 30} {
			began := time.Now()
			err := s.publish(t.Context(), a)
			if err == nil || errors.Is(err, connector.ErrRefused) || !strings.Contains(err.Error(), "too many parts") {
				t.Fatalf("try %d: %v", i, err)
			}
			if took := time.Since(began); took != want*time.Second {
				t.Errorf("try %d waited %v, want %v", i, took, want*time.Second)
			}
		}
	})
	for parts, want := range map[int64]time.Duration{0: 0, 100: 0, 550: time.Second, 1000: 2 * time.Second, 5000: 2 * time.Second} {
		var p pressure
		p.seen(parts)
		if got := p.wait(); got != want {
			t.Errorf("with %d parts a block waits %v, want %v", parts, got, want)
		}
	}
}
