package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestKafkaUpsert writes the changing result of a GROUP BY, whose keys come from the
// records' keys: the newest record of each key is what the query has in the end.
func TestKafkaUpsert(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "totals"), kfake.SeedTopics(1, "sums"), kfake.SeedTopics(2, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	brokers := cluster.ListenAddrs()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics("totals"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	w := newWorld(t)
	n := w.open()
	want := map[string]string{}
	for user := range 5 {
		for i := range 20 {
			r := &kgo.Record{Topic: "orders", Key: fmt.Appendf(nil, "user%d", user), Value: fmt.Appendf(nil, `{"amount":%d}`, i*(user+1))}
			if err := c.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		want[fmt.Sprintf("user%d", user)] = fmt.Sprintf(`{"orders":20,"amount":%d}`, 190*(user+1))
	}
	with := "'properties.bootstrap.servers'='" + strings.Join(brokers, ",") + "'"
	w.run(n, w.options("totals", fmt.Sprintf(`CREATE TABLE orders (name STRING, amount BIGINT) WITH ('connector'='kafka', 'topic'='orders', %s,
'scan.startup.mode'='earliest-offset', 'scan.bounded.mode'='latest-offset', 'key.format'='raw', 'key.fields'='name', 'value.format'='json', 'value.fields-include'='EXCEPT_KEY');
CREATE TABLE totals (name STRING NOT NULL, orders BIGINT, amount BIGINT, PRIMARY KEY (name) NOT ENFORCED) WITH ('connector'='upsert-kafka', 'topic'='totals', %s,
'key.format'='raw', 'value.format'='json', 'value.fields-include'='EXCEPT_KEY');
INSERT INTO totals SELECT name, COUNT(*), SUM(amount) FROM orders WHERE name IS NOT NULL GROUP BY name;
`, with, with)))
	newest := map[string]string{}
	for len(newest) < len(want) || fmt.Sprint(newest) != fmt.Sprint(want) {
		fs := c.PollFetches(w.ctx())
		if err := fs.Err(); err != nil {
			t.Fatalf("%v: the topic holds\n%v, want\n%v", err, newest, want)
		}
		fs.EachRecord(func(r *kgo.Record) { newest[string(r.Key)] = string(r.Value) })
	}
	w.ledger(n, "totals")

	// Read again, the table is what was written, less what is deleted: a record without
	// a value takes its row back, of a key without a row it is nothing, and one without a
	// key, or with one that is none, is dead.
	for _, r := range []*kgo.Record{{Key: []byte("user4")}, {Key: []byte("nobody")}, {Value: []byte(`{"orders":1,"amount":1}`)}, {Key: []byte("user3"), Value: []byte(`{"orders":`)}} {
		r.Topic = "totals"
		if err := c.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	w.run(n, w.options("readers", fmt.Sprintf(`CREATE TABLE totals (name STRING NOT NULL, orders BIGINT, amount BIGINT, PRIMARY KEY (name) NOT ENFORCED) WITH ('connector'='upsert-kafka', 'topic'='totals', %s,
'key.format'='raw', 'value.format'='json', 'value.fields-include'='EXCEPT_KEY', 'scan.bounded.mode'='latest-offset');
CREATE TABLE sums (orders BIGINT NOT NULL, users BIGINT, amount BIGINT, PRIMARY KEY (orders) NOT ENFORCED) WITH ('connector'='upsert-kafka', 'topic'='sums', %s,
'key.format'='json', 'value.format'='json');
INSERT INTO sums SELECT orders, COUNT(*), SUM(amount) FROM totals WHERE orders IS NOT NULL GROUP BY orders;
`, with, with)))
	c.AddConsumeTopics("sums")
	last := ""
	for last != `{"orders":20,"users":4,"amount":1900}` {
		fs := c.PollFetches(w.ctx())
		if err := fs.Err(); err != nil {
			t.Fatalf("%v: the last sum is %s", err, last)
		}
		fs.EachRecord(func(r *kgo.Record) {
			if r.Topic == "sums" && r.Value != nil && string(r.Key) == `{"orders":20}` {
				last = string(r.Value)
			}
		})
	}
	if l := w.ledger(n, "sums"); l.Dead != 2 {
		t.Errorf("%d rows are dead, want 2", l.Dead)
	}
}
