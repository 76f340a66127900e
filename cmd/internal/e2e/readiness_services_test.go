//go:build services

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestKafkaIsToldOverKills: a readiness topic of a real Kafka cluster is told of every
// partition, whose command kills Millrace before and after it; then the broker is killed,
// and the partitions of another job wait until it is back. What no crash cut off is told once.
func TestKafkaIsToldOverKills(t *testing.T) {
	w := newWorld(t)
	k := kafkaCluster(t)
	w.run("topics", "create", "clicks", "--partitions", "1").must(t, 0)
	job := func(name, policy string) string {
		return w.file(name+".sql", "SET 'pipeline.name' = '"+name+"';\n"+clicksDDL+
			"CREATE TABLE out_"+name+" (id BIGINT, k STRING) PARTITIONED BY (k) WITH ('connector' = 'filesystem', 'path' = '${OUT}/out_"+name+"', 'format' = 'parquet',\n"+
			policy+"  'sink.partition-commit.readiness-topic.name' = 'ready',\n"+
			"  'sink.partition-commit.readiness-topic.properties.bootstrap.servers' = '"+k.Addrs()+"',\n"+
			"  'sink.partition-commit.readiness-topic.properties.default.api.timeout.ms' = '2000');\n"+
			"INSERT INTO out_"+name+" SELECT id, k FROM clicks;\n")
	}
	w.produce("clicks", click(0), click(1), click(2))
	told := job("told", "  'sink.partition-commit.policy.kind' = 'success-file,custom,readiness-topic',\n"+
		"  'sink.partition-commit.policy.command' = '"+w.killer()+" "+t.TempDir()+"',\n")
	w.killedFourTimes(told)
	k.Brokers[0].Kill()
	p := w.startBounded(job("waits", "  'sink.partition-commit.policy.kind' = 'success-file,readiness-topic',\n"))
	eventuallyOf(t, p, "the partitions wait for the broker", func() (bool, string) {
		got := w.run("jobs", "ls")
		return strings.Contains(got.stderr+got.stdout, "topic ready"), got.stdout + got.stderr
	})
	if err := k.Brokers[0].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	times := map[string]int{}
	for _, r := range kafkaRecords(t, k, "ready") {
		var m struct {
			Kind, Job, Table, Partition string
			Version                     int
			Rows                        int64
		}
		if err := json.Unmarshal(r.Value, &m); err != nil || m.Kind != "ready" || m.Table != "out_"+m.Job || m.Version != 1 || m.Rows != 1 {
			t.Errorf("told %s, %v", r.Value, err)
		}
		if want := m.Table + "/" + m.Partition; string(r.Key) != want {
			t.Errorf("the key is %s, want %s", r.Key, want)
		}
		times[string(r.Key)]++
	}
	// The kills came before the topic was told. A broker that comes back slowly may be
	// told again.
	for _, part := range []string{"k=k0", "k=k1", "k=k2"} {
		if times["out_told/"+part] != 1 || times["out_waits/"+part] < 1 {
			t.Errorf("%s was told: %v", part, times)
		}
	}
	if len(times) != 6 {
		t.Errorf("told were %v", times)
	}
}
