//go:build services

package e2e

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors/conntest/services"
)

// javaPatience bounds a run of one of Kafka's tools: a JVM starts, works for moments
// and ends, on two cores that may be busy.
const javaPatience = 2 * time.Minute

// tool runs one of Kafka's own tools.
func tool(t *testing.T, stdin, class string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), javaPatience)
	defer cancel()
	out, err := services.KafkaTool(ctx, strings.NewReader(stdin), class, args...)
	if err != nil {
		t.Fatalf("%v\nstdout:\n%s", err, out)
	}
	return out
}

// Classes of Kafka's command line.
const (
	topicCommand    = "org.apache.kafka.tools.TopicCommand"
	consoleProducer = "org.apache.kafka.tools.ConsoleProducer"
	consoleConsumer = "org.apache.kafka.tools.consumer.ConsoleConsumer"
	groupCommand    = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
	configCommand   = "kafka.admin.ConfigCommand"
)

// toolStep is a run of one of Kafka's tools.
type toolStep struct {
	what, stdin, class string
	args               []string
	// want are pieces of what it prints, in any order.
	want []string
}

// runTools runs tools one after another, each with common before its own arguments.
func runTools(t *testing.T, server *process, common []string, steps []toolStep) {
	t.Helper()
	for _, step := range steps {
		out := tool(t, step.stdin, step.class, append(slices.Clone(common), step.args...)...)
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

// TestKafkasOwnTools: the tools that come with Apache Kafka, with their defaults,
// against the server: idempotent producing, groups, administration.
func TestKafkasOwnTools(t *testing.T) {
	w := newWorld(t)
	server, addr := w.server("--auto-create", "3")
	runTools(t, server, []string{"--bootstrap-server", addr}, []toolStep{
		{what: "create a topic", class: topicCommand, args: []string{"--create", "--topic", "a", "--partitions", "3", "--config", "retention.ms=86400000"}, want: []string{"Created topic a."}},
		{what: "produce, idempotent and compressed", stdin: "k1:one\nk2:two\nk3:three\nk1:four\n", class: consoleProducer,
			args: []string{"--topic", "a", "--compression-codec", "zstd", "--reader-property", "parse.key=true", "--reader-property", "key.separator=:"}},
		{what: "consume in a classic group", class: consoleConsumer, args: []string{"--topic", "a", "--group", "classic", "--from-beginning", "--max-messages", "4", "--timeout-ms", "60000"}, want: []string{"one\n", "two\n", "three\n", "four\n"}},
		{what: "describe the group", class: groupCommand, args: []string{"--describe", "--group", "classic"}, want: []string{"classic", "CURRENT-OFFSET", "LAG"}},
		{what: "move the group back", class: groupCommand, args: []string{"--reset-offsets", "--group", "classic", "--topic", "a", "--to-earliest", "--execute"}, want: []string{"NEW-OFFSET"}},
		{what: "consume again", class: consoleConsumer, args: []string{"--topic", "a", "--group", "classic", "--max-messages", "4", "--timeout-ms", "60000"}, want: []string{"one\n", "two\n", "three\n", "four\n"}},
		{what: "list groups", class: groupCommand, args: []string{"--list", "--state"}, want: []string{"classic", "Empty"}},
		{what: "describe the topic", class: topicCommand, args: []string{"--describe", "--topic", "a"}, want: []string{"PartitionCount: 3", "retention.ms=86400000", "Partition: 2"}},
		{what: "add partitions", class: topicCommand, args: []string{"--alter", "--topic", "a", "--partitions", "4"}},
		{what: "end offsets", class: "org.apache.kafka.tools.GetOffsetShell", args: []string{"--topic", "a"}, want: []string{"a:0:", "a:3:0"}},
		{what: "change a config", class: configCommand, args: []string{"--alter", "--entity-type", "topics", "--entity-name", "a", "--add-config", "retention.ms=100000"}, want: []string{"Completed updating config for topic a."}},
		{what: "read the config", class: configCommand, args: []string{"--describe", "--entity-type", "topics", "--entity-name", "a"}, want: []string{"retention.ms=100000"}},
		{what: "describe log directories", class: "org.apache.kafka.tools.LogDirsCommand", args: []string{"--describe", "--topic-list", "a"}, want: []string{`"partition":"a-2"`}},
		{what: "verifiable producer", class: "org.apache.kafka.tools.VerifiableProducer", args: []string{"--topic", "v", "--max-messages", "500", "--acks", "-1"}, want: []string{`"sent":500,"acked":500`}},
		{what: "verifiable consumer", class: "org.apache.kafka.tools.VerifiableConsumer", args: []string{"--topic", "v", "--group-id", "verify", "--max-messages", "500"}, want: []string{`"success":true`, "shutdown_complete"}},
		{what: "delete the group", class: groupCommand, args: []string{"--delete", "--group", "classic"}, want: []string{"was successful"}},
		{what: "delete a topic", class: topicCommand, args: []string{"--delete", "--topic", "v"}},
		{what: "list topics", class: topicCommand, args: []string{"--list"}, want: []string{"a\n"}},
	})
	if out := tool(t, "", topicCommand, "--bootstrap-server", addr, "--list"); strings.Contains(out, "v\n") {
		t.Errorf("the topic that was deleted is listed\n%s", out)
	}
	// There is one replica of everything, which the verifier reads by itself: it runs
	// until it is ended.
	verifier, err := services.StartKafkaApp(context.Background(), "verifier", filepath.Join(w.dir, "verifier"), nil, "org.apache.kafka.tools.ReplicaVerificationTool",
		"--broker-list", addr, "--topics-include", "a", "--time", "-2", "--report-interval-ms", "1000")
	if err != nil {
		t.Fatal(err)
	}
	defer verifier.Kill()
	eventuallyOf(t, server, "the replicas are verified", func() (bool, string) {
		return strings.Contains(verifier.Log(), "max lag is 0 for partition a-"), verifier.Log()
	})
	// What Kafka's producer wrote, a job reads.
	var got struct {
		Partitions []struct{ Latest int64 }
	}
	w.ask(&got, "topics", "describe", "a")
	total := int64(0)
	for _, p := range got.Partitions {
		total += p.Latest
	}
	if total != 4 || len(got.Partitions) != 4 {
		t.Errorf("topics describe: %d records in %d partitions, want 4 in 4", total, len(got.Partitions))
	}
}

// TestKafkasProducerOverKills: Kafka's own producer, idempotent, retries over SIGKILLs
// of the server: each value is there once, in order.
func TestKafkasProducerOverKills(t *testing.T) {
	w := newWorld(t)
	start, addr := w.fixedServer()
	server := start()
	w.run("topics", "create", "v", "--partitions", "1").must(t, 0)
	ctx, cancel := context.WithTimeout(context.Background(), javaPatience)
	defer cancel()
	stdin, lines := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := services.KafkaTool(ctx, stdin, consoleProducer, "--bootstrap-server", addr, "--topic", "v",
			"--message-send-max-retries", "1000000", "--command-property", "enable.idempotence=true", "--command-property", "linger.ms=5")
		stdin.CloseWithError(err)
		ended <- err
	}()
	const kills, each = 6, 400
	for k := range kills {
		for i := range each {
			if _, err := fmt.Fprintln(lines, k*each+i); err != nil {
				t.Fatalf("the producer ended: %v\n%s", err, server.stderr.String())
			}
		}
		// Some of the lines are stored, others are on their way.
		eventuallyOf(t, server, "records come", func() (bool, string) {
			latest := w.latest("v")
			return latest > int64(k*each), fmt.Sprintf("%d records", latest)
		})
		server.kill()
		server = start()
	}
	if err := lines.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, server.stderr.String())
	}
	var got []string
	for _, l := range w.consume("v") {
		got = append(got, string(l.bytes()))
	}
	if len(got) != kills*each {
		t.Errorf("%d values are stored, want %d", len(got), kills*each)
	}
	for i, v := range got {
		if v != fmt.Sprint(i) {
			t.Fatalf("value %d is %s: lost, doubled or out of order", i, v)
		}
	}
}

// committedOf are the options of a consumer that reads what was committed.
func committedOf(addr string) []kgo.Opt {
	return []kgo.Opt{kgo.SeedBrokers(addr), kgo.FetchIsolationLevel(kgo.ReadCommitted())}
}

// latest is the end of a topic's first partition, -1 while nobody answers.
func (w *world) latest(topic string) int64 {
	c := w.dial()
	if c == nil {
		return -1
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tp, err := c.Topic(ctx, topic)
	if err != nil || len(tp.Partitions) == 0 {
		return -1
	}
	return tp.Partitions[0].Latest
}
