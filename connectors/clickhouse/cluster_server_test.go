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

// askOld runs a statement on a replica, until it can.
func askOld(t testing.TB, r *services.ClickHouseReplica, format string, args ...any) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := r.Query(ctx, fmt.Sprintf(format, args...))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// replicatedTable is a faultTable on two replicas of the old server.
func replicatedTable(t *testing.T, pair [2]*services.ClickHouseReplica, first, name string) *faultTable {
	t.Helper()
	for _, r := range pair {
		askOld(t, r, "CREATE TABLE %s (n Int64, s String, _mr_artifact String) ENGINE = ReplicatedMergeTree('/t/{shard}/%s', '{replica}') PARTITION BY tuple() ORDER BY n", name, name)
	}
	f := &faultTable{t: t, name: name, dir: t.TempDir(), with: map[string]string{"sink.compression": "lz4", "table-name": name, keyRequest: "20 s",
		"url": "clickhouse://" + first + "," + pair[1].Addr()},
		id: laneOfItsOwn()}
	f.restart()
	t.Cleanup(func() { f.sink.Close() })
	return f
}

// wantOn compares rows 0 to n-1 with a replica, which may have to catch up.
func (f *faultTable) wantOn(r *services.ClickHouseReplica, n int) {
	f.t.Helper()
	want := fmt.Sprintf("%d\t%d\t%d", n, n, n*(n-1)/2)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	got, err := "", error(nil)
	for ctx.Err() == nil {
		// A replica that has just lost or found ZooKeeper answers with errors.
		if got, err = r.Query(ctx, "SELECT count(), uniqExact(s), sum(n) FROM "+f.name); err == nil && got == want {
			return
		}
		_, _ = r.Query(ctx, "SYSTEM SYNC REPLICA "+f.name)
	}
	f.t.Errorf("the replica has rows, texts and sum %s (%v), want %s", got, err, want)
}

// until repeats what a lane does with an intent while the cluster comes back.
func (f *faultTable) until(as []connector.Artifact) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	var last error
	for ctx.Err() == nil {
		out, err := f.sink.Resolve(ctx, as)
		switch {
		case err != nil:
			last = err
		case out[0] == connector.Published:
			return
		case out[0] == connector.Sealed:
			last = errors.Join(f.sink.Publish(ctx, as)...)
		default:
			f.t.Fatalf("the outcome is %s: %s", out[0], f.sink.(connector.UnknownExplainer).ExplainUnknown(as[0]))
		}
	}
	f.t.Fatalf("not published: %v", last)
}

// The old server: no tokens, no acknowledged counts, replication by ZooKeeper.
func TestReplicatedOldServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, err := services.StartClickHouseCluster(ctx, t.TempDir(), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pair := c.Replicas[0]

	t.Run("method", func(t *testing.T) {
		f := replicatedTable(t, pair, pair[0].Addr(), "m")
		if why := f.sink.(connector.SinkExplainer).ExplainSink()[0]; !strings.Contains(why, "method column") || !strings.Contains(why, "18.16") {
			t.Errorf("explained as %q", why)
		}
		f.until(f.seal(0, 1000))
		f.wantOn(pair[0], 1000)
		f.wantOn(pair[1], 1000)
	})
	t.Run("without the column", func(t *testing.T) {
		askOld(t, pair[0], "CREATE TABLE plain (n Int64) ENGINE = MergeTree ORDER BY n")
		conn := New(vfs.NewOS(), t.TempDir())
		table := tableOf(t, conn, []connector.Column{{Field: types.Field{Name: "n", Type: types.NewBigInt()}}}, nil,
			map[string]string{"table-name": "plain", "url": pair[0].URL()})
		_, err := conn.OpenSink(ctx, table, conntest.OwnerOf(1, 1))
		if err == nil || !strings.Contains(err.Error(), "ALTER TABLE `default`.`plain` ADD COLUMN _mr_artifact") {
			t.Errorf("a table that allows nothing: %v", err)
		}
		// At least once: the server does not say what it wrote, and what is sent once
		// should be there once.
		table.Options = tableOf(t, conn, table.Columns, nil, map[string]string{"table-name": "plain", "url": pair[0].URL(), keyGuarantee: atLeastOnce}).Options
		s, err := conn.OpenSink(ctx, table, conntest.OwnerOf(1, 2))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		w, id := freshWriter(t, s)
		publishRows(t, s, w, &batch.Batch{Len: 3, Cols: []batch.Vec{*vec(t, types.NewBigInt(), 1, 2, 3)}}, nil, id)
		if got := askOld(t, pair[0], "SELECT count() FROM plain"); got != "3" {
			t.Errorf("%s rows", got)
		}
	})
	t.Run("a replica fails between the tries", func(t *testing.T) {
		proxy, err := services.StartProxy(pair[0].Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer proxy.Close()
		f := replicatedTable(t, pair, proxy.Addr(), "failover")
		f.until(f.seal(0, 1000))
		as := f.seal(1000, 1000)
		if err := f.publish(as); err != nil {
			t.Fatal(err)
		}
		// The block arrives, and its server dies before anybody hears of it.
		two := f.seal(2000, 100_000)
		proxy.Break(services.Fault{Kind: services.Hang, After: 100_000})
		_, struck := proxy.Struck()
		done := make(chan error, 1)
		go func() { done <- f.publish(two) }()
		<-struck
		pair[0].Kill()
		proxy.CloseAll()
		if err := <-done; err == nil {
			t.Fatal("the loss was not noticed")
		}
		f.until(two)
		three := f.seal(102_000, 1000)
		f.until(three) // by the other replica
		if err := pair[0].Start(ctx); err != nil {
			t.Fatal(err)
		}
		f.restart()
		f.until(two)
		f.wantOn(pair[0], 103_000)
		f.wantOn(pair[1], 103_000)
	})
	t.Run("read", func(t *testing.T) { readOld(t, pair) })
	t.Run("replace", func(t *testing.T) { replicatedReplace(t, pair) })
	t.Run("two shards", func(t *testing.T) { twoShards(t, c) })
	t.Run("ZooKeeper is lost", func(t *testing.T) {
		f := replicatedTable(t, pair, pair[0].Addr(), "keeper")
		f.until(f.seal(0, 1000))
		c.ZooKeeper.Kill()
		as := f.seal(1000, 1000)
		err := f.publish(as)
		if err == nil || errors.Is(err, connector.ErrRefused) {
			t.Fatalf("publish without ZooKeeper: %v", err)
		}
		t.Logf("publish: %v", err)
		if err := c.ZooKeeper.Start(ctx); err != nil {
			t.Fatal(err)
		}
		f.until(as)
		f.wantOn(pair[0], 2000)
		f.wantOn(pair[1], 2000)
	})
}

// twoShards writes a Distributed table over two shards of two replicas: each row lies
// where the server would have put it, and once, also when a replica hangs, dies and its
// block goes to the other one.
func twoShards(t *testing.T, c *services.ClickHouseCluster) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	first, second := c.Replicas[0][0], c.Replicas[1][0]
	for _, pair := range c.Replicas {
		for _, r := range pair {
			for _, name := range []string{"spread", "theirs"} {
				askOld(t, r, "CREATE TABLE %s (n Int64, s String, _mr_artifact String) ENGINE = ReplicatedMergeTree('/t/{shard}/%s', '{replica}') PARTITION BY n %% 2 ORDER BY n", name, name)
			}
		}
	}
	for _, name := range []string{"spread", "theirs"} {
		askOld(t, first, "CREATE TABLE all%s (n Int64, s String, _mr_artifact String) ENGINE = Distributed(shards, default, %s, cityHash64(s, n))", name, name)
	}
	f := &faultTable{t: t, name: "allspread", dir: t.TempDir(), with: map[string]string{"sink.compression": "lz4", "table-name": "allspread", keyRequest: "3 s", "url": first.URL()}, id: laneOfItsOwn()}
	f.restart()
	t.Cleanup(func() { f.sink.Close() })
	one := f.seal(0, 1000)
	if len(one) != 4 {
		t.Fatalf("%d blocks, want one a shard and partition", len(one))
	}
	all := func(as []connector.Artifact) {
		for i := range as {
			f.until(as[i : i+1])
		}
	}
	all(one)
	second.Pause()
	two := f.seal(1000, 1000)
	if err := f.publish(two); err == nil {
		t.Fatal("a server that hangs was not noticed")
	}
	second.Kill()
	all(two)
	if err := second.Start(ctx); err != nil {
		t.Fatal(err)
	}
	f.restart()
	all(two)
	askOld(t, first, "INSERT INTO alltheirs (n, s) SELECT toInt64(number), concat('text of row ', toString(number)) FROM numbers(2000)")
	for ctx.Err() == nil && askOld(t, first, "SELECT count() FROM alltheirs") != "2000" {
		continue // it sends them on in its own time
	}
	for _, pair := range c.Replicas {
		for _, r := range pair {
			got, want := "", "none"
			for ctx.Err() == nil && got != want {
				for _, name := range []string{"spread", "theirs"} {
					askOld(t, r, "SYSTEM SYNC REPLICA %s", name)
				}
				got = askOld(t, r, "SELECT count(), uniqExact(n), sum(n) FROM spread")
				want = askOld(t, r, "SELECT count(), uniqExact(n), sum(n) FROM theirs")
			}
			if got != want || strings.HasPrefix(want, "0") {
				t.Errorf("a replica has rows, numbers and sum %s, the server would have put %s there", got, want)
			}
		}
	}
}

// readOld reads and looks up a replicated table, by either replica.
func readOld(t *testing.T, pair [2]*services.ClickHouseReplica) {
	for _, r := range pair {
		askOld(t, r, "CREATE TABLE readold (n Int64, s Nullable(String), d Decimal(9, 2), at DateTime('Europe/Berlin')) ENGINE = ReplicatedMergeTree('/t/{shard}/readold', '{replica}') PARTITION BY n %% 2 ORDER BY n")
	}
	askOld(t, pair[0], "INSERT INTO readold SELECT toInt64(number), if(number %% 3 = 0, NULL, toString(number)), toDecimal32(number, 2) / 4, toDateTime('2024-05-01 10:00:00', 'Europe/Berlin') FROM numbers(1000)")
	askOld(t, pair[1], "SYSTEM SYNC REPLICA readold")
	table := &connector.Table{Columns: []connector.Column{field("n", types.NewBigInt()), field("s", types.NewString()), field("d", types.NewDecimal(9, 2)), field("at", types.NewTimestampLTZ(0))}}
	for _, hosts := range []string{pair[0].Addr() + "," + pair[1].Addr(), pair[1].Addr()} {
		b := readTable(t, table, map[string]string{"table-name": "readold", "url": "clickhouse://" + hosts, keyRangeColumn: "n", keyRanges: "2"}, nil)
		wantKeys(t, b, func(int64) bool { return true })
		for i := range b.Len {
			n := b.Cols[0].I64[i]
			if d, at := b.Cols[2].Text(i), b.Cols[3].Text(i); b.Cols[1].IsNull(i) != (n%3 == 0) || d != types.FormatDecimal(types.DecimalFromInt64(n*25), 2) || !strings.HasPrefix(at, "2024-05-01 08:00:00") {
				t.Fatalf("row %d: %s, %s, %s", n, b.Cols[1].Text(i), d, at)
			}
		}
	}
	c := New(vfs.NewOS(), "")
	l, err := c.OpenLookup(context.Background(), tableOf(t, c, table.Columns, nil, map[string]string{"table-name": "readold", "url": pair[1].URL()}), []int{0, 2}, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := found(t, l, vec(t, types.NewBigInt(), 4, 5, 5000), vec(t, types.NewDecimal(9, 2), "1.00", "1.00", "0.00")); fmt.Sprint(got) != "[[4] [] []]" {
		t.Errorf("found %q", got)
	}
}
