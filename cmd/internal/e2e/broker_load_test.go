package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// brokerTopics are the topics of the load, with their partitions.
var brokerTopics = map[string]int32{"plain": 2, "idempotent": 3, "moves": 3, "copies": 3}

// brokerLoad is what clients of all kinds do to a server that is killed now and
// then, and what they see.
type brokerLoad struct {
	t    *testing.T
	h    brokerHistory
	opts []kgo.Opt // how to reach the server
	seed uint64
	// names tells clients apart: each new one gets another.
	names atomic.Int64
	// stop ends the producers, quit everybody.
	stop, quit context.Context
	wg         sync.WaitGroup
	mu         sync.Mutex
	// refused are errors of producers.
	refused []error
	// what was done, for the log of the test
	transactions, copied, read, rejoined, stuck atomic.Int64
}

func (l *brokerLoad) rng(who string) *rand.Rand {
	var n uint64
	for _, b := range []byte(who) {
		n = n*131 + uint64(b)
	}
	return rand.New(rand.NewPCG(l.seed, n))
}

// client makes a client that goes on over kills.
func (l *brokerLoad) client(opts ...kgo.Opt) *kgo.Client {
	c, err := kgo.NewClient(l.with(opts...)...)
	if err != nil {
		panic(err) // the options are wrong
	}
	return c
}

func (l *brokerLoad) with(opts ...kgo.Opt) []kgo.Opt {
	return append(append([]kgo.Opt{kgo.ProducerLinger(0), kgo.RequestRetries(10_000), kgo.RecordRetries(10_000), kgo.MetadataMinAge(20 * time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }),
		kgo.TransactionTimeout(time.Minute), kgo.FetchMaxWait(200 * time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.HeartbeatInterval(100 * time.Millisecond), kgo.RequestTimeoutOverhead(20 * time.Second)}, l.opts...), opts...)
}

// pace is how long a client waits between two things it does: without it the load
// would be as much as the machine can take.
const pace = 4 * time.Millisecond

// refuse notes that a producer, which tries again for ever, was given an error. A
// client whose very first read meets the end of a connection takes that for a login
// that is missing and gives its records up: that is a kill, and no answer.
func (l *brokerLoad) refuse(err error) {
	var first *kgo.ErrFirstReadEOF
	if errors.As(err, &first) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.quit.Err() == nil && len(l.refused) < 20 {
		l.refused = append(l.refused, err)
	}
}

// rest waits a moment and reports whether to go on.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// produce sends records one after another, without waiting for the answers, from
// clients that live for some time.
func (l *brokerLoad) produce(topic string, once bool, opts ...kgo.Opt) {
	rng := l.rng(topic)
	for l.stop.Err() == nil {
		name := fmt.Sprint(topic, "-", l.names.Add(1))
		c := l.client(opts...)
		window := make(chan struct{}, 30)
		for n := range 100 + rng.IntN(400) {
			if !rest(l.stop, pace) {
				break
			}
			w := &written{by: name, n: n, place: logPart{topic, rng.Int32N(brokerTopics[topic])}, value: fmt.Sprint(name, ".", n), once: once}
			window <- struct{}{}
			l.h.sent(w)
			c.Produce(l.quit, &kgo.Record{Topic: topic, Partition: w.place.partition, Value: []byte(w.value)}, func(r *kgo.Record, err error) {
				if err == nil {
					l.h.acked(w, r.Offset)
				} else {
					l.refuse(fmt.Errorf("%s: %w", w.value, err))
				}
				<-window
			})
		}
		if err := c.Flush(l.quit); err != nil {
			l.t.Errorf("%s: %v", name, err)
		}
		c.Close()
	}
}

// transact makes transactions under one id, some of which it aborts.
func (l *brokerLoad) transact(id string, opts ...kgo.Opt) {
	rng := l.rng(id)
	opts = append(opts, kgo.TransactionalID(id))
	c := l.client(opts...)
	for l.stop.Err() == nil {
		if l.tryTransaction(c, rng) && rng.IntN(20) > 0 {
			l.transactions.Add(1)
			continue
		}
		// Either it is not known how it ended, or the next process takes over, now
		// and then without a word.
		c.Close()
		c = l.client(opts...)
	}
	c.Close()
	l.settleTransactions(id)
}

// tryTransaction reports whether its end is known.
func (l *brokerLoad) tryTransaction(c *kgo.Client, rng *rand.Rand) bool {
	name := fmt.Sprint("txn-", l.names.Add(1))
	l.h.ended(name, txnAborted) // until a commit is asked for
	if err := c.BeginTransaction(); err != nil {
		return false
	}
	var failed atomic.Bool
	var wg sync.WaitGroup
	for n := range 1 + rng.IntN(12) {
		if !rest(l.quit, pace/2) {
			return false
		}
		w := &written{by: name, n: n, place: logPart{"moves", rng.Int32N(brokerTopics["moves"])}, value: fmt.Sprint(name, ".", n), txn: name, once: true}
		l.h.sent(w)
		wg.Add(1)
		c.Produce(l.quit, &kgo.Record{Topic: "moves", Partition: w.place.partition, Value: []byte(w.value)}, func(r *kgo.Record, err error) {
			defer wg.Done()
			if err != nil {
				failed.Store(true)
				return
			}
			l.h.acked(w, r.Offset)
		})
	}
	if !l.answered(&wg) {
		return false
	}
	switch rng.IntN(12) {
	case 0:
		return false // its process dies
	case 1, 2, 3:
		failed.Store(true)
	}
	if failed.Load() {
		return c.EndTransaction(l.quit, kgo.TryAbort) == nil
	}
	l.h.ended(name, txnInDoubt)
	if err := c.EndTransaction(l.quit, kgo.TryCommit); err != nil {
		return false
	}
	l.h.ended(name, txnCommitted)
	return true
}

// answered waits for a transaction's records. franz-go 1.22.3 can come to stand still
// with some: while it asks for partitions of a transaction to be added it holds a
// partition's second batch, the answer to the first one is lost with the server, and
// then it goes back to the second only. The server refuses that one as out of order,
// and nobody sends the first again. Such a client is closed, and another takes over.
func (l *brokerLoad) answered(wg *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	limit := time.NewTimer(patience / 4)
	defer limit.Stop()
	select {
	case <-done:
		return true
	case <-limit.C:
		l.stuck.Add(1)
		return false
	}
}

// settleTransactions ends what is open under an id.
func (l *brokerLoad) settleTransactions(id string) {
	for l.quit.Err() == nil {
		c := l.client(kgo.TransactionalID(id))
		_, _, err := c.ProducerID(l.quit)
		c.Close()
		if err == nil {
			return
		}
	}
}

const copyOf = "copy of "

// copyRecords copies a topic within transactions, together with its positions.
func (l *brokerLoad) copyRecords(id string) {
	rng := l.rng(id)
	for l.quit.Err() == nil {
		s, err := kgo.NewGroupTransactSession(l.with(kgo.TransactionalID(id), kgo.ConsumerGroup("copiers"), kgo.ConsumeTopics("idempotent"),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(), kgo.SessionTimeout(8*time.Second))...)
		if err != nil {
			panic(err) // the options are wrong
		}
		for n := 5 + rng.IntN(200); n > 0 && l.copySome(s, rng); n-- {
		}
		l.rejoined.Add(1)
		s.Close()
	}
	bg, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := l.client(kgo.TransactionalID(id))
	defer c.Close()
	if _, _, err := c.ProducerID(bg); err != nil {
		l.t.Errorf("%s: %v", id, err)
	}
}

// copySome copies what one poll gives and reports whether to go on.
func (l *brokerLoad) copySome(s *kgo.GroupTransactSession, rng *rand.Rand) bool {
	fs := s.PollRecords(l.quit, 1+rng.IntN(100))
	if fs.NumRecords() == 0 {
		return l.quit.Err() == nil && rest(l.quit, pace)
	}
	if err := s.Begin(); err != nil {
		return false
	}
	var failed atomic.Bool
	var wg sync.WaitGroup
	fs.EachRecord(func(r *kgo.Record) {
		value := fmt.Sprint(copyOf, string(r.Value))
		wg.Add(1)
		s.Produce(l.quit, &kgo.Record{Topic: "copies", Partition: r.Partition, Value: []byte(value)}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.Store(true)
			}
			wg.Done()
		})
	})
	wg.Wait()
	end := kgo.TransactionEndTry(!failed.Load() && rng.IntN(6) > 0)
	ok, err := s.End(l.quit, end)
	if ok {
		l.copied.Add(int64(fs.NumRecords()))
	}
	return err == nil && l.quit.Err() == nil
}

// follow reads topics without a group, for some time with each client.
func (l *brokerLoad) follow(committed bool) {
	rng := l.rng(fmt.Sprint("follow", committed))
	isolation := kgo.ReadUncommitted()
	if committed {
		isolation = kgo.ReadCommitted()
	}
	for l.quit.Err() == nil {
		name := fmt.Sprint("reader-", l.names.Add(1))
		c := l.client(kgo.FetchIsolationLevel(isolation), kgo.ConsumeTopics("plain", "idempotent", "moves"))
		at := map[logPart]*reading{}
		ctx, cancel := context.WithTimeout(l.quit, time.Second+time.Duration(rng.Int64N(int64(5*time.Second))))
		for ctx.Err() == nil {
			l.note(at, name, "", committed, c.PollFetches(ctx))
		}
		cancel()
		c.Close()
	}
}

// note keeps what a poll gave.
func (l *brokerLoad) note(at map[logPart]*reading, name, group string, committed bool, fs kgo.Fetches) map[logPart]int64 {
	next := map[logPart]int64{}
	fs.EachRecord(func(r *kgo.Record) {
		p := logPart{r.Topic, r.Partition}
		if at[p] == nil {
			at[p] = l.h.reads(&reading{by: name, group: group, place: p, committed: committed})
		}
		l.h.read(at[p], seen{r.Offset, string(r.Value)})
		next[p] = r.Offset + 1
		l.read.Add(1)
	})
	return next
}

// member reads as a member of a group, commits what it has read, and leaves and
// comes back.
func (l *brokerLoad) member(group string, n int, committed bool, opts ...kgo.Opt) {
	rng := l.rng(fmt.Sprint(group, n))
	isolation := kgo.ReadUncommitted()
	if committed {
		isolation = kgo.ReadCommitted()
	}
	for l.quit.Err() == nil {
		name := fmt.Sprint(group, "-", l.names.Add(1))
		at := map[logPart]*reading{}
		var mu sync.Mutex // callbacks come from the client
		elsewhere := func(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
			mu.Lock()
			defer mu.Unlock()
			for topic, ps := range parts {
				for _, p := range ps {
					delete(at, logPart{topic, p})
				}
			}
		}
		c := l.client(append(opts, kgo.ConsumerGroup(group), kgo.ConsumeTopics("plain", "idempotent", "moves"), kgo.FetchIsolationLevel(isolation), kgo.DisableAutoCommit(),
			kgo.BlockRebalanceOnPoll(), kgo.SessionTimeout(8*time.Second), kgo.OnPartitionsAssigned(elsewhere), kgo.OnPartitionsRevoked(elsewhere), kgo.OnPartitionsLost(elsewhere))...)
		ctx, cancel := context.WithTimeout(l.quit, 3*time.Second+time.Duration(rng.Int64N(int64(12*time.Second))))
		for ctx.Err() == nil {
			fs := c.PollRecords(ctx, 200)
			mu.Lock()
			next := l.note(at, name, group, committed, fs)
			mu.Unlock()
			if len(next) > 0 && rng.IntN(3) > 0 {
				l.commit(ctx, c, group, next)
			}
			c.AllowRebalance()
		}
		cancel()
		l.rejoined.Add(1)
		c.CloseAllowingRebalance()
	}
}

// commit commits positions, and notes those that were confirmed.
func (l *brokerLoad) commit(ctx context.Context, c *kgo.Client, group string, next map[logPart]int64) {
	offsets := map[string]map[int32]kgo.EpochOffset{}
	for p, offset := range next {
		if offsets[p.topic] == nil {
			offsets[p.topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[p.topic][p.partition] = kgo.EpochOffset{Epoch: -1, Offset: offset}
	}
	c.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		if err != nil {
			return
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if at := (logPart{t.Topic, p.Partition}); p.ErrorCode == 0 {
					l.h.committed(group, at, next[at])
				}
			}
		}
	})
}

// audit looks at the positions of groups again and again.
func (l *brokerLoad) audit(groups ...string) {
	c := l.client()
	defer c.Close()
	for rest(l.quit, 50*time.Millisecond) {
		for _, group := range groups {
			l.look(l.quit, c, group)
		}
	}
}

// look notes the positions of a group.
func (l *brokerLoad) look(ctx context.Context, c *kgo.Client, group string) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = group
	rg := kmsg.NewOffsetFetchRequestGroup()
	rg.Group = group
	req.Groups = append(req.Groups, rg)
	began := l.h.tick()
	resp, err := req.RequestWith(ctx, c)
	if err != nil || resp.ErrorCode != 0 {
		return
	}
	end := l.h.tick()
	for _, g := range resp.Groups {
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				if g.ErrorCode == 0 && p.ErrorCode == 0 {
					l.h.looked(cursorLook{group, logPart{t.Topic, p.Partition}, p.Offset, began, end})
				}
			}
		}
	}
}
