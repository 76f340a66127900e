package node

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace/runtime/engine"
)

// TestReplayWithReadiness: rows of a table whose partitions are told of by topics can be
// replayed, and the topics hear of them.
func TestReplayWithReadiness(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "clicks", 1)
	w.produce(n, "clicks", `{"id":1,"a":1,"b":1}`, `{"id":2,"a":0,"b":1}`)
	sql := func(x string) string {
		return "SET 'manifest.topic' = 'files';\n" + source("clicks", "clicks") + fmt.Sprintf("CREATE TABLE `out` (id BIGINT, x BIGINT, dt STRING) PARTITIONED BY (dt) WITH ('connector'='filesystem', 'path'='%s', 'format'='json', "+
			"'sink.partition-commit.policy.kind'='readiness-topic', 'sink.partition-commit.readiness-topic.name'='ready');\n", w.dir+"/out") +
			"INSERT INTO `out` SELECT id, " + x + ", 'd1' FROM clicks;"
	}
	w.run(n, w.options("job", sql("100 / a")))
	if got := w.replay(n, "out", sql("a")); got.Written != 1 {
		t.Errorf("replayed %+v", got)
	}
	for _, name := range []string{"ready", "files"} {
		topic, err := n.store.Topic(name)
		if err != nil {
			t.Fatal(err)
		}
		st, err := n.store.State(topic.Partitions[0].ID)
		if err != nil || st.HighWatermark != 2 {
			t.Errorf("topic %s ends at %d, %v: told of the partition by the run and by the replay it has 2 records", name, st.HighWatermark, err)
		}
	}
}

// TestReadinessIsOnDisk: what a readiness topic was told of is on disk, also in a
// topic that acknowledges before its records are there.
func TestReadinessIsOnDisk(t *testing.T) {
	for _, durability := range []string{"fsync", "os"} {
		w := newWorld(t)
		n := w.open()
		w.topic(n, "ready", 1, "millrace.durability", durability)
		write, err := n.readinessTopic(w.ctx(), "ready")
		if err != nil {
			t.Fatal(err)
		}
		if err := write(w.ctx(), engine.Ready{Job: "j"}); err != nil {
			t.Fatal(err)
		}
		topic, err := n.store.Topic("ready")
		if err != nil {
			t.Fatal(err)
		}
		id := topic.Partitions[0].ID
		if st, err := n.store.State(id); err != nil || st.DurableEnd != 1 {
			t.Errorf("%s: on disk is what lies below %d of %d, %v", durability, st.DurableEnd, st.HighWatermark, err)
		}
	}
}
