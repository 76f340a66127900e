package node

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/jobs/control"
)

// kafkaJob reads a topic into Parquet; only the WITH clause of the source says
// where the topic lies.
const kafkaJob = `CREATE TABLE src (id BIGINT, amount DECIMAL(10, 2), part INT METADATA FROM 'partition' VIRTUAL) WITH (%s, 'topic'='orders',
'scan.startup.mode'='earliest-offset', 'scan.bounded.mode'='%s', 'format'='json');
CREATE TABLE big (id BIGINT, cents DECIMAL(21, 2), part INT) WITH ('connector'='filesystem', 'path'='%s', 'format'='parquet');
INSERT INTO big SELECT id, amount * 100, part FROM src WHERE amount > 10;
`

// TestKafka runs one job over the embedded log and over a Kafka cluster whose
// leaders move, in several runs: the tables hold the same rows, the ledger
// balances, a second run reads only what came since.
func TestKafka(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(2, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	producer, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Close)

	w := newWorld(t)
	n := w.open()
	w.topic(n, "orders", 2)
	var want []string
	produced := [2][]string{}
	for round := range 3 {
		for i := range 200 {
			id, p := round*1000+i, i%2
			v := fmt.Sprintf(`{"id":%d,"amount":%d.25}`, id, i)
			switch {
			case i == 7:
				v = `{"id":`
			case i > 9:
				want = append(want, fmt.Sprintf(`{"id":%d,"cents":%d.00,"part":%d}`, id, i*100+25, p))
			}
			produced[p] = append(produced[p], v)
			if err := producer.ProduceSync(w.ctx(), &kgo.Record{Topic: "orders", Partition: int32(p), Value: []byte(v)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		cluster.ShufflePartitionLeaders()
		// The next round goes on from the ledger alone.
		with := fmt.Sprintf("'connector'='kafka', 'properties.bootstrap.servers'='%s', 'properties.fetch.max.wait.ms'='20'",
			strings.Join(cluster.ListenAddrs(), ","))
		if round == 2 {
			w.run(n, w.options("kafka", fmt.Sprintf(kafkaJob, with, "latest-offset", filepath.Join(w.dir, "from-kafka"))))
			break
		}
		r, err := n.Start(w.ctx(), w.options("kafka", fmt.Sprintf(kafkaJob, with, "unbounded", filepath.Join(w.dir, "from-kafka"))))
		if err != nil {
			t.Fatal(explain(err))
		}
		wait := time.NewTicker(5 * time.Millisecond)
		read := func() int64 {
			// Before its first batch the table has no book.
			l, err := n.Ledger(w.ctx(), "big")
			if err != nil || len(l) == 0 {
				return 0
			}
			return l[0].Read
		}
		for ctx := w.ctx(); read() < int64(round*200+100); {
			select {
			case <-ctx.Done():
				t.Fatal("the job does not read")
			case <-wait.C:
			}
		}
		wait.Stop()
		if err := r.Stop(w.ctx()); err != nil {
			t.Fatal(err)
		}
		w.close(n)
		n = w.open()
	}
	w.ledger(n, "big")
	slices.Sort(want)
	if got := w.bigRows(n, "kafka"); !slices.Equal(got, want) {
		t.Errorf("%d rows from Kafka, want %d\n%v\n%v", len(got), len(want), got, want)
	}
	if got := len(w.letters(n, control.DeadQuery{})); got != 3 {
		t.Errorf("%d dead letters, want 3", got)
	}
	for p, values := range produced {
		if _, err := n.Produce(w.ctx(), "orders", func(r *control.Record) error {
			if len(values) == 0 {
				return io.EOF
			}
			*r = control.Record{Partition: int32(p), Value: []byte(values[0])}
			values = values[1:]
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	w.run(n, w.options("embedded", fmt.Sprintf(kafkaJob, "'connector'='log'", "latest-offset", filepath.Join(w.dir, "from-log"))))
	if got := w.bigRows(n, "embedded"); !slices.Equal(got, want) {
		t.Errorf("%d rows from the log, want %d", len(got), len(want))
	}
}

// bigRows are the rows of a job's Parquet table.
func (w *world) bigRows(n *Node, job string) []string {
	w.t.Helper()
	r := &result{}
	if err := n.Query(w.ctx(), control.Query{Job: job, Files: []control.SQLFile{{Name: "query", Text: "SELECT id, cents, part FROM big"}}}, r); err != nil {
		w.t.Fatal(explain(err))
	}
	slices.Sort(r.rows)
	return r.rows
}
