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

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

func askOn(t testing.TB, c *services.ClickHouse, format string, args ...any) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := c.Query(ctx, fmt.Sprintf(format, args...))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Rows lie on the shards on which the server itself would have put them, for each kind
// of sharding key; faults of one shard double and lose nothing.
func TestDistributed(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	shards, err := services.StartClickHouseShards(ctx, t.TempDir(), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, s := range shards {
			s.Close()
		}
	}()
	const columns = "k Int64, small Int8, u UInt32, s String, day Date, ts DateTime('UTC')"
	cols := []connector.Column{field("k", types.NewBigInt().NotNull()), field("small", types.NewInt()), field("u", types.NewBigInt()), field("s", types.NewString()),
		field("day", types.NewDate()), field("ts", types.NewTimestampLTZ(0))}
	const n = 500
	values := make([][]any, len(cols))
	for i := range n {
		k := (i - n/2) * 1_000_003
		for c, x := range []any{k, i%256 - 128, i * 7_000_000, strings.Repeat("é", i%50) + fmt.Sprint(i), fmt.Sprintf("202%d-05-01", i%3), fmt.Sprintf("202%d-05-01 08:00:00", i%3)} {
			values[c] = append(values[c], x)
		}
	}
	b := &batch.Batch{Len: n}
	for c := range cols {
		b.Cols = append(b.Cols, *vec(t, cols[c].Type, values[c]...))
	}
	open := func(t *testing.T, with map[string]string) (connector.Sink, connector.Writer, connector.ArtifactID) {
		t.Helper()
		c := New(vfs.NewOS(), t.TempDir())
		with["url"] = shards[0].URL()
		s, err := c.OpenSink(ctx, tableOf(t, c, cols, nil, with), conntest.OwnerOf(1, 1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		w, id := freshWriter(t, s)
		return s, w, id
	}
	for i, key := range []string{"k", "small", "cityHash64(small, s, u, day, ts)", "xxHash64(s)", "rand()"} {
		t.Run(key, func(t *testing.T) {
			local, ours, theirs := fmt.Sprintf("local%d", i), fmt.Sprintf("ours%d", i), fmt.Sprintf("theirs%d", i)
			for _, s := range shards {
				askOn(t, s, "CREATE TABLE %s (%s, _mr_artifact LowCardinality(String)) ENGINE = MergeTree PARTITION BY toYear(day) ORDER BY k", local, columns)
				askOn(t, s, "CREATE TABLE their%s (%s) ENGINE = MergeTree ORDER BY k", local, columns)
			}
			askOn(t, shards[0], "CREATE TABLE %s (%s) ENGINE = Distributed('shards', 'default', '%s', %s)", ours, columns, local, key)
			askOn(t, shards[0], "CREATE TABLE %s (%s) ENGINE = Distributed('shards', 'default', 'their%s', %s)", theirs, columns, local, key)
			s, w, id := open(t, map[string]string{"table-name": ours})
			publishRows(t, s, w, b, nil, id)
			if got := askOn(t, shards[0], "SELECT count(), uniqExact(k) FROM %s", ours); got != "500\t500" {
				t.Fatalf("%s rows and keys", got)
			}
			if key == "rand()" {
				return
			}
			askOn(t, shards[0], "INSERT INTO %s SELECT k, small, u, s, day, ts FROM %s SETTINGS distributed_foreground_insert = 1", theirs, ours)
			for _, sh := range shards {
				got := askOn(t, sh, "SELECT count(), sum(cityHash64(k)) FROM %s", local)
				if want := askOn(t, sh, "SELECT count(), sum(cityHash64(k)) FROM their%s", local); got != want || strings.HasPrefix(got, "0\t") {
					t.Errorf("a shard has %s rows and hash, the server would have put %s there", got, want)
				}
			}
		})
	}
	t.Run("faults", func(t *testing.T) {
		for _, s := range shards {
			askOn(t, s, "CREATE TABLE faults (%s) ENGINE = MergeTree ORDER BY k SETTINGS non_replicated_deduplication_window = 100", columns)
		}
		askOn(t, shards[0], "CREATE TABLE allfaults (%s) ENGINE = Distributed('shards', 'default', 'faults', k)", columns)
		s, w, id := open(t, map[string]string{"table-name": "allfaults", keyRequest: "3 s"})
		as := sealRows(t, w, b, nil, &id)
		// The answer of one shard is lost, the other shard is not there at all.
		shards[1].Proxy.Break(services.Fault{Kind: services.LoseReply, After: 5000})
		shards[0].Proxy.Refuse(true)
		errs := s.Publish(ctx, as)
		shards[0].Proxy.Refuse(false)
		if err := errors.Join(errs...); err == nil {
			t.Fatal("the faults were not noticed")
		}
		for try := 0; ; try++ {
			out, err := s.Resolve(ctx, as)
			if err == nil {
				err = errors.Join(s.Publish(ctx, as)...)
			}
			if err == nil {
				break
			}
			if try == 50 || slices.Contains(out, connector.Unknown) && err == nil {
				t.Fatalf("%v, %v", out, err)
			}
		}
		if got := askOn(t, shards[0], "SELECT count(), uniqExact(k) FROM allfaults"); got != "500\t500" {
			t.Errorf("%s rows and keys", got)
		}
	})
	t.Run("made and widened", func(t *testing.T) {
		askOn(t, shards[0], "CREATE TABLE made (k Int64) ENGINE = Distributed('shards', 'default', 'madebelow', k)")
		s, w, id := open(t, map[string]string{"table-name": "made", keyCreate: "true", keyWiden: "true"})
		publishRows(t, s, w, b, nil, id)
		if got := askOn(t, shards[0], "SELECT count(), uniqExact(s) FROM made"); got != "500\t500" {
			t.Errorf("%s rows and texts", got)
		}
	})
	t.Run("refused", func(t *testing.T) {
		for key, says := range map[string]string{"sipHash64(k)": "not_yet", "": "no sharding key", "toUInt64(absent)": "not_yet"} {
			askOn(t, shards[0], "DROP TABLE IF EXISTS refused")
			with := key
			if key != "" {
				with = ", " + strings.Replace(key, "absent", "k", 1)
			}
			askOn(t, shards[0], "CREATE TABLE refused (%s) ENGINE = Distributed('shards', 'default', 'faults'%s)", columns, with)
			c := New(vfs.NewOS(), t.TempDir())
			_, err := c.OpenSink(ctx, tableOf(t, c, cols, nil, map[string]string{"table-name": "refused", "url": shards[0].URL()}), conntest.OwnerOf(1, 1))
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("sharding key %q: %v", key, err)
			}
		}
	})
}
