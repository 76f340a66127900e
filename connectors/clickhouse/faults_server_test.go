//go:build services

package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// faultTable is a table of numbers with a sink before it.
type faultTable struct {
	t     testing.TB
	name  string
	dir   string
	with  map[string]string
	sink  connector.Sink
	w     connector.Writer
	id    connector.ArtifactID
	epoch uint64 // of the job
}

// Engines with the one guarantee or the other.
const (
	tokenTable  = "MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 100"
	columnTable = "MergeTree ORDER BY n"
)

func newFaultTable(t testing.TB, columns, engine string, with map[string]string) *faultTable {
	t.Helper()
	f := &faultTable{t: t, name: newTable(t), dir: t.TempDir(), with: map[string]string{"sink.compression": "none"},
		id: laneOfItsOwn()}
	for k, v := range with {
		f.with[k] = v
	}
	f.with["table-name"] = f.name
	if db := f.with[keyDatabase]; db != "" {
		f.name = db + "." + f.name
	}
	ask(t, "CREATE TABLE %s (%s) ENGINE = %s", f.name, columns, engine)
	f.restart()
	t.Cleanup(func() { f.sink.Close() })
	return f
}

// laneOfItsOwn makes ids that no other test has: a query that a fault left behind
// may hold its id for long.
func laneOfItsOwn() connector.ArtifactID {
	topic, n := conntest.UUID(7), tables.Add(1)
	topic[1], topic[2] = byte(n), byte(n>>8)
	return connector.ArtifactID{Job: conntest.UUID(1), Table: conntest.UUID(9), Lane: connector.LaneID{Topic: topic}}
}

// freshWriter opens a writer of such a lane.
func freshWriter(t testing.TB, s connector.Sink) (connector.Writer, connector.ArtifactID) {
	t.Helper()
	id := laneOfItsOwn()
	id.Epoch = 1
	w, err := s.OpenWriter(context.Background(), connector.Attempt{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return w, id
}

// restart is another run of the job, after a SIGKILL of the one before.
func (f *faultTable) restart() {
	f.t.Helper()
	if f.sink != nil {
		f.sink.Close()
	}
	f.epoch++
	conn := New(vfs.NewOS(), f.dir)
	table := tableOf(f.t, conn, []connector.Column{
		{Field: types.Field{Name: "n", Type: types.NewBigInt()}}, {Field: types.Field{Name: "s", Type: types.NewString()}},
	}, nil, f.with)
	s, err := conn.OpenSink(context.Background(), table, conntest.OwnerOf(1, f.epoch))
	if err != nil {
		f.t.Fatal(err)
	}
	f.sink = s
	f.open()
}

// open is another attempt.
func (f *faultTable) open() {
	f.t.Helper()
	f.id.Epoch++
	f.id.Sequence = 0
	w, err := f.sink.OpenWriter(context.Background(), connector.Attempt{ID: f.id})
	if err != nil {
		f.t.Fatal(err)
	}
	f.w = w
}

func (f *faultTable) batch(first, n int) *batch.Batch {
	var numbers, texts []any
	for i := range n {
		numbers, texts = append(numbers, first+i), append(texts, fmt.Sprintf("text of row %d", first+i))
	}
	return &batch.Batch{Len: n, Cols: []batch.Vec{*vec(f.t, types.NewBigInt(), numbers...), *vec(f.t, types.NewString(), texts...)}}
}

func (f *faultTable) seal(first, n int) []connector.Artifact {
	f.t.Helper()
	return sealRows(f.t, f.w, f.batch(first, n), nil, &f.id)
}

func (f *faultTable) publish(as []connector.Artifact) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return errors.Join(f.sink.Publish(ctx, as)...)
}

// complete does what the lane does with an intent, until it is through.
func (f *faultTable) complete(as []connector.Artifact) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var last error
	for try := 0; try < 100; try++ {
		out, err := f.sink.Resolve(ctx, as)
		last = err
		if err != nil {
			continue
		}
		switch out[0] {
		case connector.Published:
			return
		case connector.Sealed:
			last = f.publish(as)
		default:
			f.t.Fatalf("the outcome is %s: %s", out[0], f.sink.(connector.UnknownExplainer).ExplainUnknown(as[0]))
		}
	}
	f.t.Fatalf("not published: %v", last)
}

// want compares rows 0 to n-1 with the table, by count and sums of hashes.
func (f *faultTable) want(n int) {
	f.t.Helper()
	got := ask(f.t, "SELECT count(), sum(cityHash64(n, s)) FROM %s", f.name)
	want := ask(f.t, "SELECT count(), sum(cityHash64(toInt64(number), concat('text of row ', toString(number)))) FROM numbers(%d)", n)
	if got != want {
		f.t.Errorf("the table has %s rows and hash, want %s", got, want)
	}
}

// tableKinds are the columns and engines of the two methods.
var tableKinds = map[string][2]string{
	"token":  {"n Int64, s String", tokenTable},
	"column": {"n Int64, s String, _mr_artifact LowCardinality(String)", columnTable},
}

// A value that a constraint refuses is found among its neighbours, which are kept.
func TestRowsThatTheServerRefuses(t *testing.T) {
	for method, k := range tableKinds {
		t.Run(method, func(t *testing.T) {
			f := newFaultTable(t, k[0]+", CONSTRAINT odd CHECK n % 100 != 37", k[1], nil)
			as := f.seal(0, 500)
			err := f.publish(as)
			if !errors.Is(err, connector.ErrRefused) {
				t.Fatalf("a block with refused values: %v", err)
			}
			out, err := f.sink.Resolve(context.Background(), as)
			if err != nil || out[0] != connector.Sealed {
				t.Fatalf("%v, %v", out, err)
			}
			if err := f.sink.Discard(context.Background(), as); err != nil {
				t.Fatal(err)
			}
			f.open()
			b := f.batch(0, 500)
			bad := f.w.(connector.RowChecker).Check(b, nil, nil)
			var sel batch.Sel
			refused := map[int32]bool{}
			for _, e := range bad {
				refused[e.Row] = true
				if e.Row%100 != 37 || !strings.Contains(e.Message, "odd") {
					t.Errorf("row %d: %s", e.Row, e.Message)
				}
			}
			if len(bad) != 5 {
				t.Fatalf("%d rows are refused, want 5", len(bad))
			}
			for i := range int32(500) {
				if !refused[i] {
					sel = append(sel, i)
				}
			}
			f.complete(sealRows(t, f.w, b, sel, &f.id))
			if got := ask(t, "SELECT count(), countIf(n %% 100 = 37) FROM %s", f.name); got != "495\t0" {
				t.Errorf("the table has %s", got)
			}
			if left := ask(t, "SELECT count() FROM system.tables WHERE name LIKE '_mr_trial_%%'"); left != "0" {
				t.Errorf("%s tables of trials are left", left)
			}
		})
	}
}

// The answer to an INSERT is lost after success, or the INSERT is cut off in the
// middle, or nobody answers: afterwards the rows are there once, also when the
// process is killed between.
func TestConnectionFaults(t *testing.T) {
	for method, k := range tableKinds {
		for name, fault := range map[string]services.Fault{
			"answer lost":     {Kind: services.LoseReply},
			"cut at the head": {Kind: services.CutRequest, After: 1},
			"cut in a block":  {Kind: services.CutRequest, After: 100_000},
			"no answer":       {Kind: services.Hang},
			"not arriving":    {Kind: services.Swallow, After: 100_000},
		} {
			for _, killed := range []bool{false, true} {
				if killed && fault.Kind == services.Swallow {
					continue // the process knows no more than with "no answer"
				}
				t.Run(fmt.Sprintf("%s/%s/killed %t", method, name, killed), func(t *testing.T) {
					f := newFaultTable(t, k[0], k[1], map[string]string{keyRequest: "3 s"})
					connectionFault(t, f, shared.Proxy, fault, killed)
				})
			}
			if method == "column" || name == "cut at the head" {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s/http", method, name), func(t *testing.T) {
				f := newFaultTable(t, k[0], k[1], map[string]string{keyRequest: "3 s", "url": shared.WebURL()})
				connectionFault(t, f, shared.Web, fault, false)
			})
		}
	}
}

func connectionFault(t *testing.T, f *faultTable, proxy *services.Proxy, fault services.Fault, killed bool) {
	t.Helper()
	f.complete(f.seal(0, 100))
	as := f.seal(100, 10_000)
	before, _ := proxy.Struck()
	arrives := fault.Kind == services.LoseReply || fault.Kind == services.Hang
	if arrives {
		fault.After = as[0].Bytes - 200 // with the end of the block
	}
	proxy.Break(fault)
	err := f.publish(as)
	if struck, _ := proxy.Struck(); struck != before+1 {
		t.Fatalf("the fault did not happen (%v)", err)
	}
	t.Logf("publish: %v", err)
	if err == nil && fault.After > 1 {
		t.Fatal("a fault was not noticed")
	}
	for end := time.Now().Add(30 * time.Second); arrives && ask(t, "SELECT count() FROM %s", f.name) != "10100"; {
		if time.Now().After(end) {
			t.Fatal("the block did not arrive")
		}
	}
	if killed {
		f.restart()
	}
	f.complete(as)
	f.want(10_100)
}

// The server is killed before, and restarted after, each step of the cycle.
func TestServerKilledAtEachStep(t *testing.T) {
	start := func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := shared.Start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	kill := func() {
		shared.Kill()
		shared.Proxy.CloseAll()
	}
	for method, k := range tableKinds {
		t.Run(method, func(t *testing.T) {
			f := newFaultTable(t, k[0], k[1], map[string]string{keyRequest: "5 s"})
			kill()
			one := f.seal(0, 1000) // sealing needs no server
			if err := f.publish(one); err == nil {
				t.Fatal("published without a server")
			}
			start(t)
			f.complete(one)
			two := f.seal(1000, 1000)
			kill()
			start(t)
			f.complete(two)
			if err := f.publish(two); err != nil {
				t.Fatal(err)
			}
			kill() // after success, before the ledger knows
			start(t)
			f.complete(two)
			f.restart()
			f.complete(two)
			f.want(2000)
			// In the middle of the INSERT.
			for i := range 3 {
				as := f.seal(2000+i*200_000, 200_000)
				shared.Proxy.Break(services.Fault{Kind: services.Hang, After: int64(1_000_000 * (i + 1))})
				_, struck := shared.Proxy.Struck()
				done := make(chan error, 1)
				go func() { done <- f.publish(as) }()
				<-struck
				kill()
				<-done
				start(t)
				f.complete(as)
			}
			f.want(602_000)
		})
	}
}

// The table changes between seal and publish.
func TestTableChangedUnderneath(t *testing.T) {
	t.Run("a column was added", func(t *testing.T) {
		f := newFaultTable(t, tableKinds["token"][0], tokenTable, nil)
		as := f.seal(0, 10)
		ask(t, "ALTER TABLE %s ADD COLUMN more Int64 DEFAULT 7", f.name)
		f.complete(as)
		f.want(10)
	})
	t.Run("a column has another type", func(t *testing.T) {
		f := newFaultTable(t, tableKinds["token"][0], "MergeTree ORDER BY tuple() SETTINGS non_replicated_deduplication_window = 100", nil)
		as := f.seal(0, 10)
		ask(t, "ALTER TABLE %s MODIFY COLUMN n Int16", f.name)
		if err := f.publish(as); !errors.Is(err, connector.ErrRefused) {
			t.Fatalf("a block of another type: %v", err)
		}
		if err := f.sink.Discard(context.Background(), as); err != nil {
			t.Fatal(err)
		}
		f.open()
		b := f.batch(32_760, 10)
		if bad := f.w.(connector.RowChecker).Check(b, nil, nil); len(bad) != 2 {
			t.Errorf("%d rows do not fit the new type, want 2", len(bad))
		}
		f.complete(f.seal(0, 10))
		if got := ask(t, "SELECT count(), sum(n) FROM %s", f.name); got != "10\t45" {
			t.Errorf("the table has %s", got)
		}
	})
	t.Run("a column was dropped", func(t *testing.T) {
		f := newFaultTable(t, tableKinds["token"][0], tokenTable, nil)
		as := f.seal(0, 10)
		ask(t, "ALTER TABLE %s DROP COLUMN s", f.name)
		if err := f.publish(as); !errors.Is(err, connector.ErrRefused) {
			t.Fatalf("a block with a column too many: %v", err)
		}
		f.id.Epoch++
		if _, err := f.sink.OpenWriter(context.Background(), connector.Attempt{ID: f.id}); err == nil || !strings.Contains(err.Error(), "column s") {
			t.Errorf("the next attempt: %v", err)
		}
	})
	t.Run("dropped", func(t *testing.T) {
		f := newFaultTable(t, tableKinds["token"][0], tokenTable, nil)
		as := f.seal(0, 10)
		ask(t, "DROP TABLE %s SYNC", f.name)
		err := f.publish(as)
		if err == nil {
			t.Fatal("published into no table")
		}
		f.id.Epoch++
		if _, err := f.sink.OpenWriter(context.Background(), connector.Attempt{ID: f.id}); err == nil || !strings.Contains(err.Error(), "does not exist") {
			t.Errorf("the next attempt: %v", err)
		}
	})
	t.Run("dropped and made again", func(t *testing.T) {
		// Tables of this kind of database have an identity.
		ask(t, "CREATE DATABASE IF NOT EXISTS atomic ENGINE = Atomic")
		f := newFaultTable(t, tableKinds["token"][0], tokenTable, map[string]string{keyDatabase: "atomic"})
		as := f.seal(0, 10)
		ask(t, "DROP TABLE %s SYNC", f.name)
		ask(t, "CREATE TABLE %s (%s) ENGINE = %s", f.name, tableKinds["token"][0], tokenTable)
		if err := f.publish(as); err == nil || !strings.Contains(err.Error(), "dropped or replaced") {
			t.Errorf("publishing into another table: %v", err)
		}
	})
}

// The table is exchanged while the answer to a block is lost: its rows are in the other
// table now. Nothing is sent into the new one, and the sentence says why.
func TestTableExchangedUnderneath(t *testing.T) {
	ask(t, "CREATE DATABASE IF NOT EXISTS atomic ENGINE = Atomic")
	for method, k := range tableKinds {
		t.Run(method, func(t *testing.T) {
			f := newFaultTable(t, k[0], k[1], map[string]string{keyDatabase: "atomic", keyRequest: "3 s"})
			f.complete(f.seal(0, 10))
			as := f.seal(10, 10_000)
			shared.Proxy.Break(services.Fault{Kind: services.LoseReply, After: as[0].Bytes - 200})
			if err := f.publish(as); err == nil {
				t.Fatal("a lost answer was not noticed")
			}
			for end := time.Now().Add(30 * time.Second); ask(t, "SELECT count() FROM %s", f.name) != "10010"; {
				if time.Now().After(end) {
					t.Fatal("the block did not arrive")
				}
			}
			ask(t, "CREATE TABLE %s_new AS %s", f.name, f.name)
			ask(t, "EXCHANGE TABLES %s AND %s_new", f.name, f.name)
			defer ask(t, "DROP TABLE %s_new", f.name)
			for range 2 {
				out, err := f.sink.Resolve(context.Background(), as)
				if err != nil || out[0] != connector.Unknown {
					t.Fatalf("%v, %v", out, err)
				}
				if err := f.publish(as); err == nil {
					t.Fatal("it was sent again")
				}
				why := f.sink.(connector.UnknownExplainer).ExplainUnknown(as[0])
				for _, text := range []string{"exchanged", ".done", ".sealed"} {
					if !strings.Contains(why, text) {
						t.Errorf("%q does not say %q", why, text)
					}
				}
				f.restart()
			}
			if got := ask(t, "SELECT count() FROM %s", f.name); got != "0" {
				t.Errorf("%s rows in the new table", got)
			}
			// Back again: the rows are there, or their copy is kept out.
			ask(t, "EXCHANGE TABLES %s AND %s_new", f.name, f.name)
			f.restart()
			f.complete(as)
			f.want(10_010)
		})
	}
}

// A block that was sent and not answered is not sent again once the table may have
// forgotten it: the lane stops, and its sentence says how to go on.
func TestOlderThanTheWindow(t *testing.T) {
	f := newFaultTable(t, tableKinds["token"][0], tokenTable, map[string]string{keyRequest: "3 s"})
	as := f.seal(0, 10_000)
	shared.Proxy.Break(services.Fault{Kind: services.LoseReply, After: 100_000})
	if err := f.publish(as); err == nil {
		t.Fatal("a lost answer was not noticed")
	}
	for i := range 50 {
		ask(t, "INSERT INTO %s VALUES (%d, 'other')", f.name, -i-1)
	}
	out, err := f.sink.Resolve(context.Background(), as)
	if err != nil || out[0] != connector.Unknown {
		t.Fatalf("%v, %v", out, err)
	}
	why := f.sink.(connector.UnknownExplainer).ExplainUnknown(as[0])
	for _, text := range []string{"remembers 100", ".done", ".sealed", "resume"} {
		if !strings.Contains(why, text) {
			t.Errorf("%q does not say %q", why, text)
		}
	}
	if err := f.publish(as); err == nil {
		t.Fatal("it was sent again")
	}
	if got := ask(t, "SELECT count() FROM %s WHERE n >= 0", f.name); got != "10000" {
		t.Errorf("%s rows", got)
	}
}

// The server refuses a block for now; the same block goes in afterwards.
func TestRefusedForNow(t *testing.T) {
	for name, c := range map[string]struct{ set, unset, code string }{
		"too many parts": {"ALTER TABLE %s MODIFY SETTING parts_to_throw_insert = 1", "ALTER TABLE %s MODIFY SETTING parts_to_throw_insert = 1000", "252"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFaultTable(t, tableKinds["token"][0], tokenTable, nil)
			ask(t, "SYSTEM STOP MERGES %s", f.name)
			for i := range 3 {
				f.complete(f.seal(i*10, 10))
			}
			ask(t, c.set, f.name)
			as := f.seal(30, 10)
			err := f.publish(as)
			if err == nil || errors.Is(err, connector.ErrRefused) || !strings.Contains(err.Error(), c.code) {
				t.Fatalf("publish: %v", err)
			}
			out, err := f.sink.Resolve(context.Background(), as)
			if err != nil || out[0] != connector.Sealed {
				t.Fatalf("%v, %v", out, err)
			}
			ask(t, c.unset, f.name)
			f.complete(as)
			f.want(40)
		})
	}
	t.Run("memory limit", func(t *testing.T) {
		f := newFaultTable(t, tableKinds["token"][0], tokenTable, map[string]string{"settings.max_memory_usage": "1000", "settings.max_untracked_memory": "1"})
		as := f.seal(0, 50_000)
		err := f.publish(as)
		if err == nil || errors.Is(err, connector.ErrRefused) || !strings.Contains(err.Error(), "241") {
			t.Fatalf("publish: %v", err)
		}
		delete(f.with, "settings.max_memory_usage")
		f.restart()
		f.complete(as)
		f.want(50_000)
	})
}

// A query that broke before its block was sent may hold its id on the server for
// minutes; the block goes in under another one.
func TestQueryIDThatIsHeld(t *testing.T) {
	f := newFaultTable(t, tableKinds["token"][0], tokenTable, nil)
	as := f.seal(0, 10)
	ctx, cancel := context.WithCancel(context.Background())
	holder := make(chan error, 1)
	go func() {
		_, err := shared.QueryAs(ctx, as[0].Header.ID.String(), "SELECT sleepEachRow(1) FROM numbers(60) SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 0 FORMAT Null")
		holder <- err
	}()
	defer func() { cancel(); <-holder }()
	for ask(t, "SELECT count() FROM system.processes WHERE query_id = '%s'", as[0].Header.ID) != "1" {
		select {
		case err := <-holder:
			t.Fatal(err)
		default:
		}
	}
	f.complete(as)
	f.want(10)
}
