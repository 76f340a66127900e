//go:build services

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors/conntest/services"
)

// TestKafkasToolsForGroupsAndTheCluster: Java's consumers by the newer protocol, and
// the tools that administrators use on groups, records and the cluster.
func TestKafkasToolsForGroupsAndTheCluster(t *testing.T) {
	w := newWorld(t)
	server, addr := w.server()
	w.run("topics", "create", "a", "--partitions", "3").must(t, 0)
	w.produce("a", "one", "two", "three", "four")
	cut := filepath.Join(w.dir, "cut.json")
	if err := os.WriteFile(cut, []byte(`{"version":1,"partitions":[{"topic":"a","partition":0,"offset":-1}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const consumers = "group.protocol=consumer"
	for _, step := range []struct {
		what, class string
		args        []string
		want        []string
	}{
		{"consume by the newer protocol", consoleConsumer, []string{"--topic", "a", "--group", "new", "--from-beginning", "--max-messages", "4", "--timeout-ms", "60000", "--command-property", consumers}, []string{"one\n", "two\n", "three\n", "four\n"}},
		{"consume by regular expression", consoleConsumer, []string{"--include", "a|b", "--group", "pattern", "--from-beginning", "--max-messages", "4", "--timeout-ms", "60000", "--command-property", consumers}, []string{"one\n", "four\n"}},
		{"list with types", groupCommand, []string{"--list", "--type"}, []string{"new", "Consumer"}},
		{"describe its state", groupCommand, []string{"--describe", "--group", "new", "--state"}, []string{"uniform", "Empty"}},
		{"describe its positions", groupCommand, []string{"--describe", "--group", "new"}, []string{"CURRENT-OFFSET"}},
		{"forget its positions", groupCommand, []string{"--delete-offsets", "--group", "new", "--topic", "a"}, []string{"Request succeeded for deleting offsets"}},
		{"remove records", "org.apache.kafka.tools.DeleteRecordsCommand", []string{"--offset-json-file", cut}, []string{"low_watermark"}},
		{"features", "org.apache.kafka.tools.FeatureCommand", []string{"describe"}, []string{"group.version"}},
		{"versions", "org.apache.kafka.tools.BrokerApiVersionsCommand", nil, []string{"ConsumerGroupHeartbeat(68): 0 to 1"}},
		{"the cluster's id", "org.apache.kafka.tools.ClusterTool", []string{"cluster-id"}, []string{"Cluster ID: "}},
		{"who votes", "org.apache.kafka.tools.MetadataQuorumCommand", []string{"describe", "--status"}, []string{"LeaderId:", "CurrentVoters:"}},
		{"elect leaders", "org.apache.kafka.tools.LeaderElectionCommand", []string{"--election-type", "preferred", "--topic", "a", "--partition", "0"}, []string{"Valid replica already elected"}},
		{"list moves", "org.apache.kafka.tools.reassign.ReassignPartitionsCommand", []string{"--list"}, []string{"No partition reassignments found."}},
		{"options of the node", configCommand, []string{"--describe", "--entity-type", "brokers", "--entity-name", "1", "--all"}, []string{"num.partitions=1"}},
	} {
		args := append([]string{"--bootstrap-server", addr}, step.args...)
		if strings.HasSuffix(step.class, "ClusterTool") {
			args = append(slices.Clone(step.args), "--bootstrap-server", addr)
		}
		out := tool(t, "", step.class, args...)
		for _, want := range step.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in\n%s", step.what, want, out)
			}
		}
		if t.Failed() {
			t.Fatalf("the server said\n%s", server.stderr.String())
		}
	}
}

// TestGroupsOfAKafkaCluster: the verbs on Apache Kafka itself.
func TestGroupsOfAKafkaCluster(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	k, err := services.StartKafka(ctx, services.KafkaOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	addr := k.Addrs()
	tool(t, "", topicCommand, "--bootstrap-server", addr, "--create", "--topic", "clicks", "--partitions", "2")
	for kind, opts := range map[string][]kgo.Opt{"classic": nil, "consumer": {kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer())}} {
		c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(strings.Split(addr, ",")...), kgo.ConsumerGroup(kind), kgo.ConsumeTopics("clicks"), kgo.DisableAutoCommit(),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for i := range 10 {
			if err := c.ProduceSync(ctx, &kgo.Record{Topic: "clicks", Partition: int32(i % 2), Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if fs := c.PollRecords(ctx, 1); fs.Err() != nil {
			t.Fatal(fs.Err())
		}
		c.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{"clicks": {1: {Epoch: -1, Offset: 2}}}, nil)
		var g struct {
			Type, State string
			Members     int
			Positions   []struct{ Offset, Lag, Latest int64 }
		}
		w.ask(&g, "groups", "describe", kind, "--brokers", addr)
		if g.Type != kind || g.State != "Stable" || g.Members != 1 || len(g.Positions) != 2 || g.Positions[0].Offset != -1 || g.Positions[1].Lag != g.Positions[1].Latest-2 {
			t.Errorf("%+v", g)
		}
		if r := w.run("groups", "reset", kind, "--range", "start", "--execute", "--brokers", addr); r.code != 1 || !strings.Contains(r.stderr, "active member") {
			t.Errorf("%s: a reset while somebody reads: exit code %d\n%s", kind, r.code, r.stderr)
		}
		c.Close()
		if got := w.reset(kind, "--range", "@-1h", "--brokers", addr); !slices.Equal(got, []groupChange{{1, 2, 0}}) {
			t.Errorf("%s: plan %v", kind, got)
		}
		if got := w.reset(kind, "--range", "3:", "--topic", "clicks", "--execute", "--brokers", addr); !slices.Equal(got, []groupChange{{0, -1, 3}, {1, 2, 3}}) {
			t.Errorf("%s: executed %v", kind, got)
		}
		if got := w.reset(kind, "--range", "end", "--brokers", addr); len(got) != 2 || got[0].From != 3 {
			t.Errorf("%s: after it: %v", kind, got)
		}
	}
	if out := w.run("groups", "ls", "--brokers", addr).must(t, 0).stdout; strings.Count(out, "Empty") != 2 {
		t.Errorf("%s", out)
	}
}
