package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/jobs/control"
)

// TestKafkaTopicsByPattern reads all topics that match, a lane each, those that come
// between two runs as well; dead letters are replayed by topic.
func TestKafkaTopicsByPattern(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(2, "clicks.eu", "clicks.us", "views"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	producer, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Close)
	put := func(topic string, partition int32, value string) {
		t.Helper()
		if err := producer.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t)
	n := w.open()
	sql := func(a string) string {
		return fmt.Sprintf("CREATE TABLE clicks (id BIGINT, a BIGINT, topic STRING METADATA VIRTUAL) WITH ('connector'='kafka', 'topic-pattern'='clicks[.].*', "+
			"'properties.bootstrap.servers'='%s', 'properties.fetch.max.wait.ms'='20', 'scan.startup.mode'='earliest-offset', 'format'='json');\n",
			strings.Join(cluster.ListenAddrs(), ",")) +
			w.sink("out") + "INSERT INTO `out` SELECT id + CASE topic WHEN 'clicks.eu' THEN 1000 WHEN 'clicks.us' THEN 2000 ELSE 3000 END, 100 / " + a + " FROM clicks;"
	}
	put("clicks.eu", 0, `{"id":1,"a":1}`)
	put("clicks.eu", 1, `{"id":2,"a":0}`)
	put("clicks.us", 1, `{"id":3,"a":2}`)
	put("views", 0, `{"id":4,"a":4}`)
	r, err := n.Start(w.ctx(), w.options("job", "SET 'source.monitor-interval' = '20 ms';\n"+sql("a")))
	if err != nil {
		t.Fatal(explain(err))
	}
	w.awaitRead(n, "out", 3)
	if err := cluster.CreateTopic("clicks.asia", 1, nil); err != nil {
		t.Fatal(err)
	}
	put("clicks.asia", 0, `{"id":5,"a":0}`)
	put("clicks.asia", 0, `{"id":6,"a":4}`)
	w.awaitRead(n, "out", 5)
	if err := r.Stop(w.ctx()); err != nil {
		t.Fatal(err)
	}
	w.wantRows("out", row(1001, 100), row(2003, 50), row(3006, 25))
	w.wantLetters(n, "out clicks.asia 0 [0] division_by_zero 0", "out clicks.eu 0 [0] division_by_zero 0")
	if got, want := w.replay(n, "out", sql("(a + 5)")), (control.Replayed{Table: "out", Rows: 2, Written: 2}); got != want {
		t.Errorf("replayed %+v, want %+v", got, want)
	}
	w.wantRows("out", row(1001, 100), row(1002, 20), row(2003, 50), row(3005, 20), row(3006, 25))
	if got := w.replay(n, "out", sql("(a + 5)")); got.Rows != 0 {
		t.Errorf("replayed twice: %+v", got)
	}
	w.ledger(n, "out")
}
