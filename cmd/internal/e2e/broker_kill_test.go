package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// TestBrokerOverKills: a server under a mixed load of Kafka clients is killed with
// SIGKILL again and again; the checker finds nothing wrong in what they saw.
func TestBrokerOverKills(t *testing.T) { brokerRun(t, 20) }

// TestBrokerOverKillsTorture is TestBrokerOverKills for longer; its outcome can be
// kept.
func TestBrokerOverKillsTorture(t *testing.T) {
	if !torture() {
		t.Skip("set MILLRACE_TORTURE=1")
	}
	brokerRun(t, 500)
}

func brokerRun(t *testing.T, kills int) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	began := time.Now()
	rng := rand.New(rand.NewPCG(seed, 7))
	w := faultyWorld(t) // without faults, but it overwrites the memory that it uses again
	for topic, n := range brokerTopics {
		w.run("topics", "create", topic, "--partitions", fmt.Sprint(n)).must(t, 0)
	}
	socket := w.dir + "/kafka.sock"
	p, _ := w.server("--kafka", "unix:"+socket)
	stop, cancelStop := context.WithCancel(context.Background())
	quit, cancelQuit := context.WithCancel(context.Background())
	defer cancelQuit()
	defer cancelStop()
	l := &brokerLoad{t: t, seed: seed, stop: stop, quit: quit, opts: []kgo.Opt{kgo.SeedBrokers("localhost:9092"), kgo.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	})}}
	producers := make(chan struct{}, 8)
	run := func(f func()) { l.wg.Go(f) }
	produce := func(f func()) {
		run(func() {
			f()
			producers <- struct{}{}
		})
	}
	produce(func() {
		l.produce("plain", false, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
	})
	produce(func() { l.produce("idempotent", true) })
	produce(func() { l.transact("mover-1") })
	produce(func() { l.transact("mover-2", kgo.MaxVersions(kversion.V3_5_0())) }) // without new epochs
	for i := range 2 {
		run(func() { l.copyRecords(fmt.Sprint("copier-", i)) })
		run(func() { l.member("classic", i, true) })
		run(func() { l.member("newer", i, false, kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer())) })
	}
	run(func() { l.follow(true) })
	run(func() { l.follow(false) })
	run(func() { l.audit("copiers", "classic", "newer") })

	for range kills {
		// Anywhere from the recovery to a second of work.
		life := time.Duration(rng.Int64N(int64(1500 * time.Millisecond)))
		if rng.IntN(5) == 0 {
			life /= 20
		}
		timer := time.NewTimer(life)
		select {
		case <-timer.C:
		case <-p.ended:
			t.Fatalf("seed %d: the server ended by itself with %d\n%s", seed, p.state.ExitCode(), p.stderr.String())
		}
		p.kill()
		p, _ = w.server("--kafka", "unix:"+socket)
	}
	cancelStop()
	for range 4 {
		select {
		case <-producers:
		case <-time.After(patience):
			t.Fatalf("seed %d: the producers do not end\n%s", seed, p.stderr.String())
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	source := l.readTo(ctx, true, l.mark(ctx, "idempotent", "source"))
	l.awaitCopies(ctx, source)
	cancelQuit()
	l.wg.Wait()
	p.kill()
	p, _ = w.server("--kafka", "unix:"+socket)
	defer p.kill()
	c := l.client()
	for _, group := range []string{"copiers", "classic", "newer"} {
		l.look(ctx, c, group)
	}
	c.Close()
	check := brokerCheck{h: &l.h, all: map[logPart][]seen{}, committed: map[logPart][]seen{}}
	copies := brokerCheck{h: &l.h, committed: source}
	for topic := range brokerTopics {
		marks := l.mark(ctx, topic, "end")
		committed := l.readTo(ctx, true, marks)
		if topic == "copies" {
			for at, records := range committed {
				copies.committed[at] = records[:len(records)-1] // without the mark
			}
			continue
		}
		maps.Copy(check.committed, committed)
		maps.Copy(check.all, l.readTo(ctx, false, marks))
	}
	copies.checkCopy("idempotent", "copies", func(s string) string { return strings.TrimPrefix(s, copyOf) })
	found := append(check.run(), copies.found...)
	took := time.Since(began).Round(time.Second)
	t.Logf("%d kills in %v: %d records sent, %d transactions, %d records copied, %d read, %d positions committed, %d looked at, %d times joined anew",
		kills, took, len(l.h.writes), l.transactions.Load(), l.copied.Load(), l.read.Load(), len(l.h.commits), len(l.h.looks), l.rejoined.Load())
	outcome := "nothing wrong"
	if len(found) > 0 {
		outcome = fmt.Sprintf("%d anomalies", len(found))
	}
	for i, a := range found {
		if i == 30 {
			t.Errorf("and %d more", len(found)-i)
			break
		}
		t.Errorf("seed %d: %s: %s", seed, a.kind, a.text)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, err := range l.refused {
		t.Errorf("seed %d: a producer gave up: %v", seed, err)
	}
	if n := l.stuck.Load(); n > 0 {
		t.Logf("seed %d: %d times a client stood still with records", seed, n)
		if n > 1+int64(kills)/20 {
			t.Errorf("seed %d: that is too often to be the client's own doing", seed)
		}
	}
	if len(l.h.commits) == 0 || l.transactions.Load() == 0 || l.copied.Load() == 0 {
		t.Errorf("seed %d: the load did not run", seed)
	}
	keepOutcome(t, fmt.Sprintf("| %s | %s | %d | %d | %d | %v | broker: %s |", time.Now().UTC().Format(time.DateOnly), commit(), seed, kills, len(l.h.writes), took, outcome))
}

// mark puts a last record into each partition of a topic.
func (l *brokerLoad) mark(ctx context.Context, topic, what string) map[logPart]int64 {
	c := l.client()
	defer c.Close()
	marks := map[logPart]int64{}
	for i := range brokerTopics[topic] {
		w := &written{by: "mark " + what, place: logPart{topic, i}, value: fmt.Sprint("mark ", what, " ", topic, " ", i), once: true}
		r := &kgo.Record{Topic: topic, Partition: i, Value: []byte(w.value)}
		if err := c.ProduceSync(ctx, r).FirstErr(); err != nil {
			l.t.Fatalf("seed %d: %v", l.seed, err)
		}
		if marks[w.place] = r.Offset; topic != "copies" {
			l.h.sent(w)
			l.h.acked(w, r.Offset)
		}
	}
	return marks
}

// readTo reads from the beginning up to the marks.
func (l *brokerLoad) readTo(ctx context.Context, committed bool, marks map[logPart]int64) map[logPart][]seen {
	isolation := kgo.ReadUncommitted()
	if committed {
		isolation = kgo.ReadCommitted()
	}
	left, topics := maps.Clone(marks), []string{}
	out := map[logPart][]seen{}
	for at := range marks {
		topics, out[at] = append(topics, at.topic), nil
	}
	c := l.client(kgo.FetchIsolationLevel(isolation), kgo.ConsumeTopics(topics...))
	defer c.Close()
	for len(left) > 0 {
		fs := c.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			l.t.Fatalf("seed %d: reading, committed %t: %v; the ends of these were not reached: %v", l.seed, committed, err, left)
		}
		fs.EachRecord(func(r *kgo.Record) {
			at := logPart{r.Topic, r.Partition}
			if last, ok := left[at]; ok && r.Offset <= last {
				out[at] = append(out[at], seen{r.Offset, string(r.Value)})
				if r.Offset == last {
					delete(left, at)
				}
			}
		})
	}
	return out
}

// awaitCopies waits until all of the source is copied.
func (l *brokerLoad) awaitCopies(ctx context.Context, source map[logPart][]seen) {
	missing := map[string]bool{}
	for _, records := range source {
		for _, s := range records {
			missing[copyOf+s.value] = true
		}
	}
	c := l.client(kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeTopics("copies"))
	defer c.Close()
	for len(missing) > 0 {
		fs := c.PollFetches(ctx)
		if ctx.Err() != nil {
			for value := range missing {
				l.t.Errorf("seed %d: %d records are never copied, such as %q", l.seed, len(missing), value)
				return
			}
		}
		fs.EachRecord(func(r *kgo.Record) { delete(missing, string(r.Value)) })
	}
}
