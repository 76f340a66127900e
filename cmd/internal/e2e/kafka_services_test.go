//go:build services

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors/conntest/services"
)

// kafkaCluster starts a broker for one test.
func kafkaCluster(t testing.TB) *services.Kafka {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	k, err := services.StartKafka(ctx, services.KafkaOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

// kafkaClient is a client of the cluster.
func kafkaClient(t testing.TB, k *services.Kafka, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(strings.Split(k.Addrs(), ",")...))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// kafkaRecords are the committed records of a topic, read by another client than
// the job's; it waits for transactions that are open.
func kafkaRecords(t testing.TB, k *services.Kafka, topic string) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ends, err := kadm.NewClient(kafkaClient(t, k)).ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	left, from := map[int32]int64{}, map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition], from[o.Partition] = o.Offset, kgo.NewOffset().AtStart()
		}
	})
	if len(left) == 0 {
		return nil
	}
	c := kafkaClient(t, k, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	var out []*kgo.Record
	for len(left) > 0 {
		fs := c.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			t.Fatal(err)
		}
		fs.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				out = append(out, r)
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return out
}

// kafkaRow is a record's JSON object in the form of the oracle's rows.
func kafkaRow(t testing.TB, value []byte) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var fields []string
	name := ""
	for {
		tok, err := d.Token()
		if err != nil {
			break
		}
		switch x := tok.(type) {
		case json.Delim:
			continue
		case string:
			if name == "" {
				name = x
				continue
			}
			for _, layout := range []string{"2006-01-02 15:04:05.999999Z", "2006-01-02 15:04:05.999999"} {
				if at, err := time.Parse(layout, x); err == nil {
					tok = at.UnixMicro()
					break
				}
			}
		case nil:
			tok = "NULL"
		}
		fields = append(fields, fmt.Sprintf("%s=%v", name, tok))
		name = ""
	}
	// The oracle has the partition columns of other connectors' tables last.
	last := func(f string) bool { return strings.HasPrefix(f, "dt=") || strings.HasPrefix(f, "hr=") }
	slices.SortStableFunc(fields, func(a, b string) int {
		switch {
		case last(a) == last(b):
			return 0
		case last(a):
			return 1
		}
		return -1
	})
	return strings.Join(fields, " ")
}

// TestKilledJobIntoKafka kills the real binary with SIGKILL at random moments and,
// beside it, the broker. Readers of committed records see each row once.
func TestKilledJobIntoKafka(t *testing.T) {
	k := kafkaCluster(t)
	sql, err := os.ReadFile("testdata/kill_kafka.sql")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	admin := kadm.NewClient(kafkaClient(t, k))
	for _, topic := range []string{"push", "star", "commit_of", "events", "push_minute", "actor_hour"} {
		if _, err := admin.CreateTopic(ctx, 3, 1, nil, topic); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(3, 4))
	kills := 0
	disturb := func(*world, *process, int) {
		if rng.IntN(2) > 0 {
			return
		}
		k.Brokers[0].Kill()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := k.Brokers[0].Start(ctx); err != nil {
			t.Fatal(err)
		}
		kills++
	}
	text := func(string) string { return strings.ReplaceAll(string(sql), "${SERVERS}", k.Addrs()) }
	killRunOf(t, killRunOptions{kills: 6, events: 3_000, life: 8 * time.Second, sql: text, during: disturb, verify: func(w *world, want *outcome) {
		w.run("ledger", "show", "--check").must(t, 0)
		for _, table := range slices.Sorted(maps.Keys(want.rows)) {
			got := multiset{}
			for _, r := range kafkaRecords(t, k, table) {
				got[kafkaRow(t, r.Value)]++
			}
			compare(t, table, got, want.rows[table])
		}
		w.verifyLedger(want)
		w.verifyDead(want)
	}})
	if t.Logf("beside them %d kills of the broker", kills); kills == 0 {
		t.Error("the broker was never killed")
	}
}
