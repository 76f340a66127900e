package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// txnOutcome is what a producer was told of a transaction.
type txnOutcome int

const (
	unknown txnOutcome = iota
	committed
	aborted
)

// transactor is a transactional producer that goes on over kills of the server.
type transactor struct {
	t    *testing.T
	id   string
	rng  *rand.Rand
	opts []kgo.Opt
	step func() // called before every request
	told map[string]txnOutcome
}

func (x *transactor) client() *kgo.Client {
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.TransactionalID(x.id), kgo.DefaultProduceTopic("moves"), kgo.ProducerLinger(0),
		kgo.RequestRetries(10_000), kgo.MetadataMinAge(20 * time.Millisecond), kgo.RecordRetries(10_000), kgo.TransactionTimeout(time.Minute),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond })}, x.opts...)...)
	if err != nil {
		x.t.Fatal(err)
	}
	return c
}

// run makes so many transactions of three records, one in each partition.
func (x *transactor) run(ctx context.Context, transactions int) {
	c := x.client()
	defer func() { c.Close() }()
	for i := range transactions {
		name := fmt.Sprint(x.id, "-", i)
		x.told[name] = unknown
		if x.try(ctx, c, name) {
			continue
		}
		if ctx.Err() != nil {
			x.t.Errorf("%s: %v", name, context.Cause(ctx))
			return
		}
		// It is not known how this one ended. A new client with the same id ends
		// it if it is open.
		c.Close()
		c = x.client()
	}
}

// try makes one transaction and reports whether the producer knows its outcome.
func (x *transactor) try(ctx context.Context, c *kgo.Client, name string) bool {
	if err := c.BeginTransaction(); err != nil {
		return false
	}
	failed := false
	for partition := range int32(3) {
		x.step()
		if err := c.ProduceSync(ctx, &kgo.Record{Partition: partition, Value: []byte(name)}).FirstErr(); err != nil {
			failed = true
			break
		}
	}
	end, want := kgo.TryCommit, committed
	if failed || x.rng.IntN(3) == 0 {
		end, want = kgo.TryAbort, aborted
	}
	x.step()
	if err := c.EndTransaction(ctx, end); err != nil {
		return false
	}
	x.told[name] = want
	return true
}

// TestTransactionsOverKills: while the server is killed again and again, a committed
// transaction is read in every partition once, an aborted one in none, and one
// whose end nobody confirmed in all or none.
func TestTransactionsOverKills(t *testing.T) {
	w := newWorld(t)
	w.run("topics", "create", "moves", "--partitions", "3").must(t, 0)
	socket := w.dir + "/kafka.sock"
	p, _ := w.server("--kafka", "unix:"+socket)
	opts := []kgo.Opt{kgo.SeedBrokers("localhost:9092"), kgo.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	})}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	const seed, producers, transactions, kills = 41, 3, 30, 6
	rng := rand.New(rand.NewPCG(seed, 0))
	steps := make(chan struct{})
	var xs []*transactor
	var wg sync.WaitGroup
	for i := range producers {
		x := &transactor{t: t, id: fmt.Sprint("mover", i), rng: rand.New(rand.NewPCG(seed, uint64(i+1))), opts: opts, told: map[string]txnOutcome{},
			step: func() {
				select {
				case steps <- struct{}{}:
				case <-ctx.Done():
				}
			}}
		xs = append(xs, x)
		wg.Go(func() { x.run(ctx, transactions) })
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	// A kill comes some requests after the one before; they are at any stage then.
	next, killed := 20+rng.IntN(30), 0
	for n, running := 0, true; running; {
		select {
		case <-steps:
			if n++; n == next && killed < kills {
				p.kill()
				p, _ = w.server("--kafka", "unix:"+socket)
				killed++
				next = n + 20 + rng.IntN(30)
			}
		case <-done:
			running = false
		}
	}
	if killed != kills {
		t.Errorf("%d kills, want %d", killed, kills)
	}
	told := map[string]txnOutcome{}
	for _, x := range xs {
		maps.Copy(told, x.told)
		// Ends what its last client may have left open; then comes the mark up to
		// which all is read.
		last := &transactor{t: t, id: x.id, rng: rand.New(rand.NewPCG(1, 1)), opts: opts, step: func() {}, told: map[string]txnOutcome{}}
		for i := 0; last.told[fmt.Sprint("end-", x.id, i-1)] != committed; i++ {
			c := last.client()
			last.try(ctx, c, fmt.Sprint("end-", x.id, i))
			c.Close()
			if ctx.Err() != nil {
				t.Fatal("the last transactions do not end")
			}
		}
		maps.Copy(told, last.told)
	}
	p.kill()
	p, _ = w.server("--kafka", "unix:"+socket)
	defer p.kill()
	c, err := kgo.NewClient(append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeTopics("moves"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	read := map[string][]int32{}
	ends := 0
	for want := countEnds(told); ends < 3*want; {
		fs := c.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			t.Fatal(err)
		}
		fs.EachRecord(func(r *kgo.Record) {
			name := string(r.Value)
			read[name] = append(read[name], r.Partition)
			if len(name) > 4 && name[:4] == "end-" {
				ends++
			}
		})
	}
	counts := map[txnOutcome]int{}
	for name, o := range told {
		counts[o]++
		got := slices.Sorted(slices.Values(read[name]))
		all := slices.Equal(got, []int32{0, 1, 2})
		if o == committed && !all || o == aborted && len(got) > 0 || !all && len(got) > 0 {
			t.Errorf("seed %d: %s, told %d: read in partitions %v", seed, name, o, got)
		}
	}
	t.Logf("%d kills; %d committed, %d aborted, %d unknown", killed, counts[committed], counts[aborted], counts[unknown])
}

// countEnds is how many of the last transactions were committed.
func countEnds(told map[string]txnOutcome) int {
	n := 0
	for name, o := range told {
		if len(name) > 4 && name[:4] == "end-" && o == committed {
			n++
		}
	}
	return n
}
