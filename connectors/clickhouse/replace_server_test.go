//go:build services

package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// faultyConn fails one of its calls, before or after it is carried out.
type faultyConn struct {
	driver.Conn
	left  *int // calls until the fault
	after bool
}

var errCut = errors.New("the line is cut")

func (c *faultyConn) call(f func() error) error {
	*c.left--
	if *c.left == 0 && !c.after {
		return errCut
	}
	err := f()
	if *c.left == 0 {
		return errCut
	}
	return err
}

func (c *faultyConn) Exec(ctx context.Context, query string, args ...any) error {
	return c.call(func() error { return c.Conn.Exec(ctx, query, args...) })
}

func (c *faultyConn) Query(ctx context.Context, query string, args ...any) (rows driver.Rows, err error) {
	err = c.call(func() error {
		rows, err = c.Conn.Query(ctx, query, args...)
		return err
	})
	return rows, err
}

func (c *faultyConn) PrepareBatch(ctx context.Context, query string, opts ...driver.PrepareBatchOption) (b driver.Batch, err error) {
	err = c.call(func() error {
		b, err = c.Conn.PrepareBatch(ctx, query, opts...)
		return err
	})
	return b, err
}

// replaceWorld is an hourly or daily table that is written by method replace.
type replaceWorld struct {
	t     *testing.T
	name  string
	dir   string
	url   string
	ask   func(format string, args ...any) string
	epoch uint64
	sink  *sink
	id    connector.ArtifactID
}

func (w *replaceWorld) open() {
	w.t.Helper()
	if w.sink != nil {
		w.sink.Close()
	}
	w.epoch++
	c := New(vfs.NewOS(), w.dir)
	s, err := c.OpenSink(context.Background(), w.table(c), conntest.OwnerOf(1, w.epoch))
	if err != nil {
		w.t.Fatal(err)
	}
	w.sink = s.(*sink)
	w.t.Cleanup(func() { s.Close() })
}

func (w *replaceWorld) table(c *Connector) *connector.Table {
	return tableOf(w.t, c, []connector.Column{field("n", types.NewBigInt()), field("ts", types.NewTimestampLTZ(0)), field("s", types.NewString())}, nil,
		map[string]string{"table-name": w.name, keyMethod: methodReplace, "url": w.url})
}

// content seals rows of an hour, in two parts, as the content of a version.
func (w *replaceWorld) content(version uint64, hour string, numbers ...int) connector.Replacement {
	w.t.Helper()
	r := connector.Replacement{Version: version}
	w.id.Manifest = version
	for part := range 2 {
		var n, ts, s []any
		for i, x := range numbers {
			if i%2 == part {
				n, ts, s = append(n, x), append(ts, hour+":00:00"), append(s, "equal")
			}
		}
		if len(n) == 0 {
			continue
		}
		w.id.Subtask, w.id.Epoch = uint32(part), w.epoch<<20+w.id.Sequence+1
		wr, err := w.sink.OpenWriter(context.Background(), connector.Attempt{ID: w.id, Replace: true})
		if err != nil {
			w.t.Fatal(err)
		}
		b := &batch.Batch{Len: len(n), Cols: []batch.Vec{*vec(w.t, types.NewBigInt(), n...), *vec(w.t, types.NewTimestampLTZ(0), ts...), *vec(w.t, types.NewString(), s...)}}
		r.Parts = append(r.Parts, sealRows(w.t, wr, b, nil, &w.id)...)
		if err := wr.Close(); err != nil {
			w.t.Fatal(err)
		}
	}
	ts := vec(w.t, types.NewTimestampLTZ(0), hour+":00:00")
	name, err := w.sink.PartitionOf(&batch.Batch{Len: 1, Cols: []batch.Vec{{}, *ts, {}}}, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, a := range r.Parts {
		if a.Header.TablePartition != name {
			w.t.Fatalf("a block is of %q, a row of %q", a.Header.TablePartition, name)
		}
	}
	r.TablePartition = name
	return r
}

func (w *replaceWorld) replace(r connector.Replacement) {
	w.t.Helper()
	if err := w.sink.Replace(context.Background(), []connector.Replacement{r})[0]; err != nil {
		w.t.Fatal(err)
	}
}

func (w *replaceWorld) outcome(r connector.Replacement) connector.Outcome {
	w.t.Helper()
	out, err := w.sink.ResolveReplace(context.Background(), []connector.Replacement{r})
	if err != nil {
		w.t.Fatal(err)
	}
	return out[0]
}

func (w *replaceWorld) want(hour string, numbers ...int) {
	w.t.Helper()
	slices.Sort(numbers)
	want := strings.ReplaceAll(fmt.Sprint(numbers), " ", ",")
	if got := w.ask("SELECT arraySort(groupArray(n)) FROM %s WHERE toString(ts) = '%s:00:00'", w.name, hour); got != want {
		w.t.Errorf("hour %s has %s, want %s", hour, got, want)
	}
}

const (
	hourOne = "2024-05-01 08"
	hourTwo = "2024-05-01 09"
)

func newReplaceWorld(t *testing.T, columns, engine string) *replaceWorld {
	t.Helper()
	w := &replaceWorld{t: t, name: newTable(t), dir: t.TempDir(), url: shared.URL(), ask: func(format string, args ...any) string { t.Helper(); return ask(t, format, args...) },
		id: laneOfItsOwn()}
	w.id.Lane, w.id.Keyed = connector.LaneID{}, true
	w.ask("CREATE TABLE %s (n Int64, ts DateTime('UTC'), s String%s) ENGINE = %s", w.name, columns, engine)
	w.open()
	return w
}

// replacing goes through a table's life.
func replacing(w *replaceWorld) {
	t := w.t
	one := w.content(1, hourOne, 1, 2, 3, 4)
	if got := w.outcome(one); got != connector.Sealed {
		t.Errorf("before: %s", got)
	}
	w.replace(one)
	other := w.content(1, hourTwo, 100)
	w.replace(other)
	w.want(hourOne, 1, 2, 3, 4)
	w.replace(one)
	if got := w.outcome(one); got != connector.Published {
		t.Errorf("after: %s", got)
	}
	// Rows that came late.
	two := w.content(2, hourOne, 1, 2, 3, 4, 5)
	w.replace(two)
	w.want(hourOne, 1, 2, 3, 4, 5)
	w.want(hourTwo, 100)
	// An older version changes nothing, in another process either.
	w.open()
	w.replace(one)
	w.want(hourOne, 1, 2, 3, 4, 5)
	if a, b := w.outcome(one), w.outcome(two); a != connector.Published || b != connector.Published {
		t.Errorf("versions 1 and 2: %s, %s", a, b)
	}
	if err := w.sink.Discard(context.Background(), two.Parts); err == nil {
		t.Error("visible blocks were discarded")
	}
	// What somebody else wrote is no version.
	w.ask("INSERT INTO %s (n, ts, s) VALUES (77, '%s:00:00', 'by hand')", w.name, hourOne)
	if got := w.outcome(two); got != connector.Sealed {
		t.Errorf("a content that was changed by hand: %s", got)
	}
	w.replace(two)
	w.want(hourOne, 1, 2, 3, 4, 5)
	// Nothing is left, and the hour beside it is.
	w.replace(connector.Replacement{TablePartition: two.TablePartition, Version: 3})
	w.want(hourOne)
	w.want(hourTwo, 100)
	if got := w.outcome(connector.Replacement{TablePartition: two.TablePartition, Version: 3}); got != connector.Published {
		t.Errorf("an empty content: %s", got)
	}
	// An empty content where this process knows of none.
	w.ask("INSERT INTO %s (n, ts, s) VALUES (8, '2024-05-02 00:00:00', 'by hand')", w.name)
	gone := w.content(1, "2024-05-02 00", 9)
	w.replace(connector.Replacement{TablePartition: gone.TablePartition, Version: 1})
	w.want("2024-05-02 00")
	w.want(hourTwo, 100)
	if left := w.ask("SELECT count() FROM system.tables WHERE name LIKE '_mr_stage_%s_%%'", w.name); left != "0" {
		t.Errorf("%s stages are left", left)
	}
	// A block whose file is gone.
	lost := w.content(4, hourOne, 1)
	path, _, err := w.sink.staging.Find(lost.Parts[0].Header.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.sink.fs.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got := w.outcome(lost); got != connector.Absent {
		t.Errorf("a content whose block is gone: %s", got)
	}
}

func TestReplace(t *testing.T) {
	for name, c := range map[string][2]string{
		"hourly": {"", "MergeTree PARTITION BY toStartOfHour(ts) ORDER BY n"},
		"window": {", _mr_artifact LowCardinality(String)", "ReplacingMergeTree PARTITION BY toStartOfHour(ts) ORDER BY (s, n) SETTINGS non_replicated_deduplication_window = 100"},
	} {
		t.Run(name, func(t *testing.T) { replacing(newReplaceWorld(t, c[0], c[1])) })
	}
	t.Run("by HTTP", func(t *testing.T) {
		w := newReplaceWorld(t, "", "MergeTree PARTITION BY toStartOfHour(ts) ORDER BY n")
		w.url = shared.WebURL()
		w.open()
		replacing(w)
	})
	t.Run("two windows in one partition", func(t *testing.T) {
		w := newReplaceWorld(t, "", "MergeTree PARTITION BY toDate(ts) ORDER BY n")
		one := w.content(1, hourOne, 1)
		w.replace(one)
		other := one
		other.TablePartition = "toDate(ts)=elsewhere"
		other.Parts = slices.Clone(one.Parts)
		for i := range other.Parts {
			other.Parts[i].Header.TablePartition = other.TablePartition
		}
		if err := w.sink.Replace(context.Background(), []connector.Replacement{other})[0]; !errors.Is(err, connector.ErrRefused) || !strings.Contains(err.Error(), "two windows") {
			t.Errorf("another name of the same partition: %v", err)
		}
		w.want(hourOne, 1)
	})
}

// The process ends before or after any of its requests: readers see all of the old
// content or all of the new one, and the next process completes it.
func TestReplaceIsCutOffAnywhere(t *testing.T) {
	w := newReplaceWorld(t, "", "MergeTree PARTITION BY toStartOfHour(ts) ORDER BY n")
	old, version := []int{1, 2, 3}, uint64(1)
	w.replace(w.content(version, hourOne, old...))
	for at, cut := 1, true; cut; at++ {
		for _, after := range []bool{false, true} {
			version++
			next := []int{int(version) * 10, int(version)*10 + 1, int(version)*10 + 2, int(version)*10 + 3}
			r := w.content(version, hourOne, next...)
			left := at
			w.sink.server.conn = &faultyConn{Conn: w.sink.server.conn, left: &left, after: after}
			err := w.sink.Replace(context.Background(), []connector.Replacement{r})[0]
			cut = left <= 0
			if cut != (err != nil) {
				t.Fatalf("request %d: %v", at, err)
			}
			seen := w.ask("SELECT arraySort(groupArray(n)) FROM %s", w.name)
			before, now := strings.ReplaceAll(fmt.Sprint(old), " ", ","), strings.ReplaceAll(fmt.Sprint(next), " ", ",")
			if seen != before && seen != now {
				t.Fatalf("after request %d a reader sees %s, neither %s nor %s", at, seen, before, now)
			}
			w.open()
			switch got := w.outcome(r); {
			case got == connector.Published && seen == now, got == connector.Sealed && seen == before:
			default:
				t.Fatalf("after request %d the outcome is %s, and a reader sees %s", at, got, seen)
			}
			w.replace(r)
			w.want(hourOne, next...)
			old = next
		}
	}
	t.Logf("version %d", version)
}

// A process that lost the table hangs before its ALTER; the new one replaces, and
// nothing of the old one comes through.
func TestReplaceOfAFencedProcess(t *testing.T) {
	w := newReplaceWorld(t, "", "MergeTree PARTITION BY toStartOfHour(ts) ORDER BY n")
	r := w.content(1, hourOne, 1, 2)
	old := w.sink
	next, stage, err := old.stage(context.Background(), &r)
	if err != nil {
		t.Fatal(err)
	}
	w.sink = nil
	w.open()
	defer old.Close()
	w.replace(w.content(2, hourOne, 3))
	if err := old.exchange(context.Background(), next, stage); err == nil {
		t.Error("the ALTER of a fenced process came through")
	}
	w.want(hourOne, 3)
	if err := old.Replace(context.Background(), []connector.Replacement{r})[0]; !errors.Is(err, connector.ErrFenced) {
		t.Errorf("a fenced process: %v", err)
	}
}

// Two jobs write one table: the second one is told whose it is; when it takes the table
// over, nothing of the first one comes through any more, and its stages are gone.
func TestReplaceOfTwoJobs(t *testing.T) {
	w := newReplaceWorld(t, "", "MergeTree PARTITION BY toStartOfHour(ts) ORDER BY n")
	r := w.content(1, hourOne, 1, 2)
	first := w.sink
	next, stage, err := first.stage(context.Background(), &r)
	if err != nil {
		t.Fatal(err)
	}
	c := New(vfs.NewOS(), t.TempDir())
	open := func(adopt bool) (*sink, error) {
		o := conntest.OwnerOf(2, 1)
		o.Adopt = adopt
		s, err := c.OpenSink(context.Background(), w.table(c), o)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { s.Close() })
		return s.(*sink), nil
	}
	var owned *connector.OwnedError
	if _, err := open(false); !errors.As(err, &owned) || !strings.Contains(err.Error(), first.owner.Job.String()) {
		t.Fatalf("another job: %v, want the owner's name", err)
	}
	// The refused job has left the first one's stage alone.
	if err := first.exchange(context.Background(), next, stage); err != nil {
		t.Fatal(err)
	}
	w.want(hourOne, 1, 2)
	r2 := w.content(2, hourOne, 3)
	next, stage, err = first.stage(context.Background(), &r2)
	if err != nil {
		t.Fatal(err)
	}
	second, err := open(true)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.exchange(context.Background(), next, stage); err == nil {
		t.Error("the ALTER of a job whose table was taken over came through")
	}
	if err := first.Replace(context.Background(), []connector.Replacement{r2})[0]; !errors.Is(err, connector.ErrFenced) {
		t.Errorf("a job whose table was taken over: %v", err)
	}
	w.want(hourOne, 1, 2)
	w.sink, w.id.Job = second, second.owner.Job
	w.replace(w.content(1, hourOne, 4))
	w.want(hourOne, 4)
}

// replicatedReplace is method replace on a replicated table of the old server.
func replicatedReplace(t *testing.T, pair [2]*services.ClickHouseReplica) {
	for _, r := range pair {
		askOld(t, r, "CREATE TABLE replaced (n Int64, ts DateTime('UTC'), s String) ENGINE = ReplicatedMergeTree('/t/{shard}/replaced', '{replica}') PARTITION BY toStartOfHour(ts) ORDER BY n")
	}
	w := &replaceWorld{t: t, name: "replaced", dir: t.TempDir(), url: "clickhouse://" + pair[0].Addr() + "," + pair[1].Addr(),
		ask: func(format string, args ...any) string { t.Helper(); return askOld(t, pair[0], format, args...) }, id: laneOfItsOwn()}
	w.id.Lane, w.id.Keyed = connector.LaneID{}, true
	w.open()
	replacing(w)
	w.ask = func(format string, args ...any) string { t.Helper(); return askOld(t, pair[1], format, args...) }
	for end := time.Now().Add(30 * time.Second); askOld(t, pair[1], "SELECT count() FROM replaced") != "1" && time.Now().Before(end); {
		askOld(t, pair[1], "SYSTEM SYNC REPLICA replaced")
	}
	w.want(hourTwo, 100)
}
