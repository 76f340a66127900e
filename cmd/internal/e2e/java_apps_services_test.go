//go:build services

package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest/services"
)

// fixedServer is a server on a port that it has again after a kill.
func (w *world) fixedServer() (start func() *process, addr string) {
	w.t.Helper()
	w.killed = true
	ports, err := services.Ports(1)
	if err != nil {
		w.t.Fatal(err)
	}
	addr = fmt.Sprintf("127.0.0.1:%d", ports[0])
	return func() *process {
		p := w.start("server", "--kafka", addr, "--auto-create", "2")
		eventuallyOf(w.t, p, "the server listens", func() (bool, string) { return strings.Contains(p.stderr.String(), "served on"), p.stderr.String() })
		return p
	}, addr
}

// TestKafkasTransactionalCopier: a consume-transform-produce loop in transactions, of
// which some abort, over kills of the server: each input is there once.
func TestKafkasTransactionalCopier(t *testing.T) {
	w := newWorld(t)
	start, addr := w.fixedServer()
	server := start()
	const n = 3000
	w.run("topics", "create", "in", "--partitions", "1").must(t, 0)
	w.run("topics", "create", "out", "--partitions", "1").must(t, 0)
	var values []string
	for i := range n {
		values = append(values, fmt.Sprint(i))
	}
	w.produce("in", values...)
	ctx, cancel := context.WithTimeout(context.Background(), 2*javaPatience)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := services.KafkaTool(ctx, nil, "org.apache.kafka.tools.TransactionalMessageCopier", "--broker-list", addr, "--transactional-id", "copier",
			"--input-topic", "in", "--input-partition", "0", "--output-topic", "out", "--consumer-group", "copiers",
			"--max-messages", fmt.Sprint(n), "--transaction-size", "40", "--enable-random-aborts")
		ended <- err
	}()
	for kills := 1; kills <= 3; kills++ {
		eventuallyOf(t, server, "transactions come", func() (bool, string) {
			latest := w.latest("out")
			return latest > int64(kills*n/5), fmt.Sprintf("%d records, %d kills", latest, kills)
		})
		server.kill()
		server = start()
	}
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, server.stderr.String())
	}
	seen := consume(t, "out", n, committedOf(addr)...)
	for _, v := range values {
		if seen[v] != 1 {
			t.Errorf("%s was copied %d times", v, seen[v])
		}
	}
	// The other commands do not show what was aborted either.
	if got := len(w.consume("out")); got != n {
		t.Errorf("topics consume gives %d records, want %d", got, n)
	}
	if out := tool(t, "", "org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", addr, "list"); !strings.Contains(out, "copier") {
		t.Errorf("the transactional id is not listed\n%s", out)
	}
}

// TestKafkaStreams: word count with exactly_once_v2, over kills of the application and
// of the server: the last counts are those of the input.
func TestKafkaStreams(t *testing.T) {
	w := newWorld(t)
	start, addr := w.fixedServer()
	server := start()
	const in, out = "streams-plaintext-input", "streams-wordcount-output"
	w.run("topics", "create", in, "--partitions", "1").must(t, 0)
	w.run("topics", "create", out, "--partitions", "1").must(t, 0)
	config := w.file("streams.properties", fmt.Sprintf("bootstrap.servers=%s\nprocessing.guarantee=exactly_once_v2\ncommit.interval.ms=100\nreplication.factor=1\nstate.dir=%s\n",
		addr, filepath.Join(w.dir, "state")))
	app, err := services.StartKafkaApp(context.Background(), "streams", filepath.Join(w.dir, "app"), nil, "org.apache.kafka.streams.examples.wordcount.WordCountDemo", config)
	if err != nil {
		t.Fatal(err)
	}
	defer app.Kill()
	want := map[string]int64{}
	counted := func() (bool, string) {
		got := map[string]int64{}
		for _, l := range w.consume(out) {
			if v := l.bytes(); l.Key != nil && len(v) == 8 {
				got[*l.Key] = int64(binary.BigEndian.Uint64(v))
			}
		}
		for word, n := range want {
			if got[word] > n {
				t.Fatalf("%s is counted %d times, there are %d", word, got[word], n)
			}
			if got[word] != n {
				return false, fmt.Sprintf("%v, want %v\n%s\n%s", got, want, app.Log(), server.stderr.String())
			}
		}
		return true, ""
	}
	for round := range 3 {
		var lines []string
		for i := range 200 {
			lines = append(lines, fmt.Sprintf("all lines word%d", i%5))
			want["all"]++
			want["lines"]++
			want[fmt.Sprintf("word%d", i%5)]++
		}
		w.produce(in, lines...)
		switch round {
		case 0:
			eventuallyOf(t, server, "words are counted", counted)
		case 1:
			app.Kill()
			if err := app.Start(context.Background()); err != nil {
				t.Fatal(err)
			}
		case 2:
			server.kill()
			server = start()
		}
	}
	eventuallyOf(t, server, "words are counted after kills", counted)
}

// TestKafkaConnect: a distributed worker copies a file into a topic, exactly once, and
// the topic into another file.
func TestKafkaConnect(t *testing.T) {
	w := newWorld(t)
	_, addr := w.server("--auto-create", "1")
	jars, err := services.KafkaJars(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	ports, err := services.Ports(1)
	if err != nil {
		t.Fatal(err)
	}
	rest := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	config := w.file("connect.properties", strings.Join([]string{
		"bootstrap.servers=" + addr, "group.id=connect", "listeners=" + rest, "plugin.path=" + jars, "plugin.discovery=SERVICE_LOAD",
		"key.converter=org.apache.kafka.connect.storage.StringConverter", "value.converter=org.apache.kafka.connect.storage.StringConverter",
		"offset.storage.topic=connect-offsets", "offset.storage.replication.factor=1", "offset.storage.partitions=2",
		"config.storage.topic=connect-configs", "config.storage.replication.factor=1",
		"status.storage.topic=connect-status", "status.storage.replication.factor=1", "status.storage.partitions=2",
		"offset.flush.interval.ms=500", "exactly.once.source.support=enabled"}, "\n"))
	worker, err := services.StartKafkaApp(context.Background(), "connect", filepath.Join(w.dir, "worker"), func(ctx context.Context) error {
		_, err := put(ctx, http.MethodGet, rest+"/connectors", nil)
		return err
	}, "org.apache.kafka.connect.cli.ConnectDistributed", config)
	if err != nil {
		t.Fatal(err)
	}
	defer worker.Kill()
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	source, copied := w.file("source.txt", text.String()), filepath.Join(w.dir, "copied.txt")
	for name, c := range map[string]map[string]string{
		"from": {"connector.class": "FileStreamSource", "file": source, "topic": "lines", "tasks.max": "1"},
		"to":   {"connector.class": "FileStreamSink", "file": copied, "topics": "lines", "tasks.max": "1"},
	} {
		// The worker refuses while it joins its group.
		eventually(t, "connector "+name+" is taken", func() (bool, string) {
			out, err := put(context.Background(), http.MethodPut, rest+"/connectors/"+name+"/config", c)
			return err == nil, fmt.Sprintf("%v\n%s", err, out)
		})
	}
	eventually(t, "the file is copied", func() (bool, string) {
		got, err := os.ReadFile(copied)
		return err == nil && string(got) == text.String(), fmt.Sprintf("%d of %d bytes, %v\n%s", len(got), text.Len(), err, worker.Log())
	})
	if got := len(w.consume("lines")); got != 500 {
		t.Errorf("the topic has %d records, want 500", got)
	}
}

// put sends JSON and gives the answer.
func put(ctx context.Context, method, url string, body any) (string, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(b))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s", method, url, resp.Status)
	}
	return string(out), err
}

// TestMirrorMaker: a topic of a real Kafka cluster is mirrored into the server, and
// back under another name.
func TestMirrorMaker(t *testing.T) {
	w := newWorld(t)
	_, addr := w.server("--auto-create", "1")
	ctx := context.Background()
	real, err := services.StartKafka(ctx, services.KafkaOptions{Dir: filepath.Join(w.dir, "kafka")})
	if err != nil {
		t.Fatal(err)
	}
	defer real.Close()
	var text strings.Builder
	const n = 300
	for i := range n {
		fmt.Fprintf(&text, "%d\n", i)
	}
	tool(t, text.String(), consoleProducer, "--bootstrap-server", real.Addrs(), "--topic", "t")
	config := w.file("mm2.properties", strings.Join([]string{
		"clusters=real,mill", "real.bootstrap.servers=" + real.Addrs(), "mill.bootstrap.servers=" + addr,
		"real->mill.enabled=true", "real->mill.topics=t", "mill->real.enabled=true", "mill->real.topics=real\\\\.t",
		"replication.factor=1", "checkpoints.topic.replication.factor=1", "heartbeats.topic.replication.factor=1", "offset-syncs.topic.replication.factor=1",
		"offset.storage.replication.factor=1", "status.storage.replication.factor=1", "config.storage.replication.factor=1",
		"offset.storage.partitions=1", "status.storage.partitions=1", "refresh.topics.interval.seconds=2", "emit.heartbeats.enabled=false",
		// A topic that came from there is not sent back by default.
		"mill->real.replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}, "\n"))
	mirror, err := services.StartKafkaApp(ctx, "mirror", filepath.Join(w.dir, "mirror"), nil, "org.apache.kafka.connect.mirror.MirrorMaker", config)
	if err != nil {
		t.Fatal(err)
	}
	defer mirror.Kill()
	eventually(t, "the topic is mirrored", func() (bool, string) {
		return w.latest("real.t") == n, fmt.Sprintf("%d records\n%s", w.latest("real.t"), mirror.Log())
	})
	for what, where := range map[string]string{"into the server": addr, "back": real.Addrs()} {
		got := consume(t, "real.t", n, committedOf(where)...)
		for i := range n {
			if v := fmt.Sprint(i); got[v] != 1 {
				t.Fatalf("%s: %s is there %d times", what, v, got[v])
			}
		}
	}
}
