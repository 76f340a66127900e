package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// server starts `millrace server` on a free port and waits for its address.
func (w *world) server(args ...string) (*process, string) {
	w.t.Helper()
	p := w.start(append([]string{"server", "--kafka", "127.0.0.1:0"}, args...)...)
	said := regexp.MustCompile(`served on (127\.0\.0\.1:\d+)`)
	var addr string
	eventually(w.t, "the server says where it listens", func() (bool, string) {
		m := said.FindStringSubmatch(p.stderr.String())
		if m != nil {
			addr = m[1]
		}
		return m != nil || !p.running(), p.stderr.String()
	})
	if addr == "" {
		w.t.Fatalf("the server ended\n%s", p.stderr.String())
	}
	return p, addr
}

// consume reads n values of a topic from its start.
func consume(t testing.TB, topic string, n int, opts ...kgo.Opt) map[string]int {
	t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got := map[string]int{}
	for read := 0; read < n; {
		fs := c.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			t.Fatal(err)
		}
		fs.EachRecord(func(r *kgo.Record) {
			got[string(r.Value)]++
			read++
		})
	}
	return got
}

// TestServerForKafkaClients: what a Kafka client was acknowledged is there after
// SIGKILL, once, for Kafka clients and for the other commands alike.
func TestServerForKafkaClients(t *testing.T) {
	w := newWorld(t)
	p, addr := w.server("--auto-create", "3")
	c, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic("clicks"), kgo.AllowAutoTopicCreation())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	const n = 500
	var records []*kgo.Record
	for i := range n {
		records = append(records, &kgo.Record{Key: fmt.Append(nil, i), Value: fmt.Appendf(nil, `{"id":%d}`, i)})
	}
	if err := c.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	// Other commands reach the log through its owner meanwhile.
	if out := w.run("topics", "ls").must(t, 0); !strings.Contains(out.stdout, "clicks") {
		t.Errorf("topics ls beside the server:\n%s", out.stdout)
	}
	p.kill()

	socket := w.dir + "/kafka.sock"
	p, addr = w.server("--kafka", "unix:"+socket)
	unix := kgo.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	})
	for what, opts := range map[string][]kgo.Opt{"tcp": {kgo.SeedBrokers(addr)}, "unix socket": {kgo.SeedBrokers("localhost:9092"), unix}} {
		got := consume(t, "clicks", n, opts...)
		for i := range n {
			if v := fmt.Sprintf(`{"id":%d}`, i); got[v] != 1 {
				t.Errorf("%s: %s is there %d times", what, v, got[v])
			}
		}
	}
	p.terminate()
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.stderr.String())
	}
}

// TestServerRefusals: wrong use ends with 2 before anything is served.
func TestServerRefusals(t *testing.T) {
	w := newWorld(t)
	for what, args := range map[string][]string{
		"no address":           {"server"},
		"not an address":       {"server", "--kafka", "nowhere"},
		"beyond this machine":  {"server", "--kafka", "0.0.0.0:0"},
		"bad advertised":       {"server", "--kafka", "127.0.0.1:0", "--advertise", "host"},
		"negative auto-create": {"server", "--kafka", "127.0.0.1:0", "--auto-create", "-1"},
	} {
		if r := w.run(args...); r.code != 2 {
			t.Errorf("%s: exit code %d, want 2\n%s", what, r.code, r.stderr)
		}
	}
	if r := w.run("server", "--kafka", "0.0.0.0:0"); !strings.Contains(r.stderr, "--allow-unauthenticated") {
		t.Errorf("a listener for everybody: %s", r.stderr)
	}
}

// TestServerWriteCache: what the write cache has no room for goes to segment files; until
// then only the journal has it.
func TestServerWriteCache(t *testing.T) {
	for size, flushed := range map[string]bool{"1mb": true, "64mb": false} {
		t.Run(size, func(t *testing.T) {
			w := newWorld(t)
			_, addr := w.server("--auto-create", "1", "--write-cache", size)
			c, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic("clicks"), kgo.AllowAutoTopicCreation(), kgo.ProducerBatchCompression(kgo.NoCompression()))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			value := make([]byte, 100<<10)
			for range 40 {
				if err := c.ProduceSync(ctx, &kgo.Record{Value: value}).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
			// Of 4 MB that were acknowledged, a cache of 1 MiB cannot hold all.
			files, err := os.ReadDir(filepath.Join(w.data, "log", "segments"))
			if err != nil || len(files) > 0 != flushed {
				t.Errorf("%d segment files, %v", len(files), err)
			}
		})
	}
}
