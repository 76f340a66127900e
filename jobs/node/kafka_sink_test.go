package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/jobs/control"
)

// TestKafkaSink runs a bounded job from the log into a topic of a Kafka cluster,
// twice: the second run adds nothing. A row that is too large is a dead letter.
func TestKafkaSink(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(3, "big"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	w := newWorld(t)
	n := w.open()
	w.topic(n, "orders", 2)
	sql := fmt.Sprintf(`CREATE TABLE src (id BIGINT, note STRING) WITH ('connector'='log', 'topic'='orders', 'scan.startup.mode'='earliest-offset',
'scan.bounded.mode'='latest-offset', 'format'='json');
CREATE TABLE big (id BIGINT, note STRING) WITH ('connector'='kafka', 'topic'='big', 'properties.bootstrap.servers'='%s', 'properties.max.request.size'='4096', 'format'='json');
INSERT INTO big SELECT id, note FROM src;
`, strings.Join(cluster.ListenAddrs(), ","))
	var want []int64
	i := 0
	if _, err := n.Produce(w.ctx(), "orders", func(r *control.Record) error {
		if i == 300 {
			return io.EOF
		}
		note := "short"
		if i == 50 {
			note = strings.Repeat("x", 5000)
		} else {
			want = append(want, int64(i))
		}
		*r = control.Record{Partition: int32(i % 2), Value: fmt.Appendf(nil, `{"id":%d,"note":"%s"}`, i, note)}
		i++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for run := range 2 {
		w.run(n, w.options("kafka", sql))
		if got := kafkaIDs(w.ctx(), t, cluster, len(want)); !slices.Equal(got, want) {
			t.Fatalf("after run %d there are %d rows, want %d\n%v", run, len(got), len(want), got)
		}
	}
	w.ledger(n, "big")
	if got := len(w.letters(n, control.DeadQuery{})); got != 1 {
		t.Errorf("%d dead letters, want 1", got)
	}
}

// kafkaIDs reads atLeast committed rows, and whatever else there is before a
// record that is written behind them.
func kafkaIDs(ctx context.Context, t *testing.T, cluster *kfake.Cluster, atLeast int) []int64 {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumeTopics("big"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	last := map[int32]int64{}
	for p := range int32(3) {
		r, err := c.ProduceSync(ctx, &kgo.Record{Topic: "big", Partition: p, Key: []byte("last"), Value: []byte("{}")}).First()
		if err != nil {
			t.Fatal(err)
		}
		last[p] = r.Offset
	}
	out := make([]int64, 0, atLeast)
	for len(last) > 0 {
		fs := c.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			t.Fatal(err)
		}
		fs.EachRecord(func(r *kgo.Record) {
			if r.Offset >= last[r.Partition] {
				delete(last, r.Partition)
			}
			if r.Key != nil {
				return
			}
			var row struct{ ID int64 }
			if err := json.Unmarshal(r.Value, &row); err != nil {
				t.Error(err)
			}
			out = append(out, row.ID)
		})
	}
	slices.Sort(out)
	return out
}
