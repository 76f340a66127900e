//go:build services

package e2e

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors/conntest/services"
	githubevents "github.com/millrace/millrace/examples/github-events"
)

// fillKafka writes the events into a topic a kind, one partition each: most of them
// in transactions, between which others are aborted.
func fillKafka(t *testing.T, k *services.Kafka, events int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c := kafkaClient(t, k, kgo.TransactionalID("events"), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.Lz4Compression()))
	for _, topic := range githubevents.Topics {
		if _, err := kadm.NewClient(c).CreateTopic(ctx, 1, 1, nil, topic); err != nil {
			t.Fatal(err)
		}
	}
	transaction := func(rs []*kgo.Record, end kgo.TransactionEndTry) {
		t.Helper()
		if err := c.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := c.ProduceSync(ctx, rs...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := c.EndTransaction(ctx, end); err != nil {
			t.Fatal(err)
		}
	}
	const together = 200
	var rs []*kgo.Record
	if err := githubevents.Generate(githubevents.Options{Events: events, Spoil: true}, func(e githubevents.Event) error {
		rs = append(rs, &kgo.Record{Topic: e.Topic, Value: slices.Clone(e.Value)})
		if len(rs) == together {
			transaction(rs[:together/4], kgo.TryAbort)
			for i := range rs[:together/4] {
				rs[i] = &kgo.Record{Topic: rs[i].Topic, Value: rs[i].Value}
			}
			transaction(rs, kgo.TryCommit)
			rs = nil
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	transaction(rs, kgo.TryCommit)
}

// ddlOverKafka writes the shipped DDL over topics of a Kafka cluster in place of the
// log's, and gives the folder.
func (w *world) ddlOverKafka(k *services.Kafka) string {
	w.t.Helper()
	ddl := w.ddl(githubevents.Topics[:]...)
	files, err := filepath.Glob(filepath.Join(ddl, "*.sql"))
	if err != nil || len(files) == 0 {
		w.t.Fatalf("%d files in %s: %v", len(files), ddl, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			w.t.Fatal(err)
		}
		text := strings.Replace(string(b), "'connector' = 'log',", "'connector' = 'kafka',\n  'properties.bootstrap.servers' = '"+k.Addrs()+"',", 1)
		if err := os.WriteFile(f, []byte(text), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	return ddl
}

// TestGitHubJobFromKafka runs the shipped job over a Kafka cluster in place of the
// log, with other WITH clauses in its DDL alone, kills it at random moments, and kills
// the broker under it: every table has the rows of a run over the log that nobody
// disturbed.
func TestGitHubJobFromKafka(t *testing.T) {
	const events = 4_000
	sql, want, took := undisturbed(t, events)
	k := kafkaCluster(t)
	fillKafka(t, k, events)
	w := newWorld(t)
	ddl := w.ddlOverKafka(k)
	args := []string{"run", w.file("job.sql", withoutCoverage(sql)), "-f", ddl, "--set", "BOUNDED=latest-offset", "--progress", "none", "--set", "OUT=" + w.lake}
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 1))
	const rounds = 8
	kills, brokerKills := 0, 0
	for round := range rounds {
		p := w.start(args...)
		if round%4 == 2 {
			k.Brokers[0].Kill()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			err := k.Brokers[0].Start(ctx)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			brokerKills++
		}
		// The first kills come early in the time of a whole run, so that machines of any
		// speed see some before the job is done.
		select {
		case <-time.After(time.Duration(rng.Int64N(int64(took) * int64(round+1) / rounds))):
			kills++
		case <-p.ended:
		}
		p.kill()
	}
	w.run(args...).must(t, 0)
	w.run("ledger", "show", "--check").must(t, 0)
	rows := 0
	for _, table := range slices.Sorted(maps.Keys(want)) {
		compare(t, table, readTable(t, filepath.Join(w.lake, table)), want[table])
		rows += want[table].total()
	}
	if kills == 0 {
		t.Error("no kills")
	}
	t.Logf("seed %d: %d kills of the job, %d of the broker; %d rows in %d tables are equal", seed, kills, brokerKills, rows, len(want))
}
