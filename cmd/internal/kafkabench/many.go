package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sys/unix"
)

// partitionsEach is how many partitions the topics of scenario many have.
const partitionsEach = 3

// Clients of scenario many.
const (
	clientFranz    = "franz"
	clientPrepared = "prepared"
)

// many writes one record into each of many partitions, round and round, and shows
// what a server needs for that beside the same with few partitions.
func (b *bench) many(ctx context.Context) error {
	systems := b.choose(millrace)
	var all []measurement
	for repetition := range b.repetitions {
		for _, partitions := range b.partitions {
			for _, client := range b.clients {
				for _, system := range systems {
					m, err := b.manyOf(ctx, system, client, partitions)
					if err != nil {
						return fmt.Errorf("%s with %d partitions and client %s: %w", system, partitions, client, err)
					}
					m.Repetition = repetition
					all = append(all, m)
					if err := b.note(m); err != nil {
						return err
					}
				}
			}
		}
	}
	fmt.Fprintf(b.out, "\none record of %d bytes into each partition in turn, %d MB in all, ulimit -n %d; medians of %d (lowest-highest)\n", b.records[0], b.bytes/1e6, b.files, b.repetitions)
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "system\tclient\tpartitions\tMB/s\tof fewest\tCPU s/GB\trecords/batch\tserver us/batch\tclient us/batch\tpeak MiB\tmost files")
	for _, system := range systems {
		for _, client := range b.clients {
			b.printMany(w, all, system, client)
		}
	}
	return w.Flush()
}

// printMany prints the lines of a system with a client.
func (b *bench) printMany(w io.Writer, all []measurement, system, client string) {
	first := 0.0
	for _, partitions := range b.partitions {
		var own []measurement
		for _, m := range all {
			if m.Partitions == partitions && m.Client == client {
				own = append(own, m)
			}
		}
		get := func(value func(measurement) float64) spread { return of(own, producing, system, value) }
		r := get(rateOf)
		if first == 0 {
			first = r.median
		}
		fmt.Fprintln(w, strings.Join([]string{system, client, fmt.Sprint(partitions), r.format(1), ratio(r.median, first), get(cpuOf).format(2),
			get(func(m measurement) float64 { return m.PerBatch }).format(0),
			get(func(m measurement) float64 { return m.ServerMicros }).format(1),
			get(func(m measurement) float64 { return m.ClientMicros }).format(1),
			get(peakOf).format(0), get(filesOf).format(0)}, "\t"))
	}
}

// manyOf measures one system with one client. The first round, in which a client asks
// for each topic and partitions get their first record, is not in it.
func (b *bench) manyOf(ctx context.Context, system, client string, partitions int) (m measurement, err error) {
	s, err := b.start(ctx, system, b.files)
	if err != nil {
		return m, err
	}
	defer s.end(ctx)
	topics := max(partitions/partitionsEach, 1)
	names := make([]string, topics)
	for i := range names {
		names[i] = fmt.Sprintf("many-%05d", i)
	}
	if err := createTopics(ctx, s, partitionsEach, names...); err != nil {
		return m, err
	}
	m = measurement{cell: cell{b.records[0], 0, topics * partitionsEach}, Phase: producing, System: system, Client: client}
	p, err := b.producer(ctx, s, client, names)
	if err != nil {
		return m, err
	}
	defer p.close()
	if _, _, err := p.send(ctx, int64(m.Partitions)); err != nil {
		return m, fmt.Errorf("%w\nthe server said:\n%s", err, s.Log())
	}
	stop := s.watchFiles(ctx)
	var sent, batches int64
	var own time.Duration
	cpu, err := s.cpuOf(ctx, func() (err error) {
		before, began := cpuTime(unix.RUSAGE_SELF), time.Now()
		sent, batches, err = p.send(ctx, max(b.bytes/int64(m.Record), int64(m.Partitions)))
		m.Rate, own = perSecond(sent*int64(m.Record), time.Since(began)), cpuTime(unix.RUSAGE_SELF)-before
		return err
	})
	m.Files = float64(stop())
	if err != nil {
		return m, err
	}
	m.CPU = cpu / (float64(sent) * float64(m.Record) / 1e9)
	m.PerBatch = float64(sent) / float64(batches)
	m.ServerMicros, m.ClientMicros = cpu*1e6/float64(batches), own.Seconds()*1e6/float64(batches)
	m.Resident, err = s.peakMiB()
	return m, err
}

// cpuTime is the processor time of this process, or of its children that have ended.
func cpuTime(who int) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(who, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// roundRobin writes records, one into each partition of each topic in turn, and goes
// on where it ended.
type roundRobin interface {
	// send writes n records, or a few more, and returns how many in how many batches
	// when all are acknowledged.
	send(ctx context.Context, n int64) (sent, batches int64, err error)
	close()
}

func (b *bench) producer(ctx context.Context, s *server, client string, topics []string) (roundRobin, error) {
	value := make([]byte, b.records[0])
	for i := range value {
		value[i] = 'A' + byte(i%26)
	}
	if client == clientPrepared {
		return newPrepared(ctx, s.addr, topics, value, b.perBatch)
	}
	f := &franz{topics: topics, value: value}
	var err error
	f.c, err = kgo.NewClient(kgo.SeedBrokers(s.addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(b.buffered),
		kgo.ProducerLinger(defaultLinger*time.Millisecond), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.WithHooks(f))
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return f, nil
}

// franz is the client of franz-go, with its batching.
type franz struct {
	c       *kgo.Client
	topics  []string
	value   []byte
	next    int64
	batches atomic.Int64
}

func (f *franz) close() { f.c.Close() }

// OnProduceBatchWritten counts batches for send.
func (f *franz) OnProduceBatchWritten(kgo.BrokerMetadata, string, int32, kgo.ProduceBatchMetrics) {
	f.batches.Add(1)
}

func (f *franz) send(ctx context.Context, n int64) (sent, batches int64, err error) {
	var failed atomic.Pointer[error]
	before := f.batches.Load()
	for ; sent < n && failed.Load() == nil && ctx.Err() == nil; sent++ {
		at := f.next % int64(len(f.topics)*partitionsEach)
		f.next++
		f.c.Produce(ctx, &kgo.Record{Topic: f.topics[at/partitionsEach], Partition: int32(at % partitionsEach), Value: f.value}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		})
	}
	if err := f.c.Flush(ctx); err != nil {
		return 0, 0, err
	}
	if err := failed.Load(); err != nil {
		return 0, 0, fmt.Errorf("producing: %w", *err)
	}
	return sent, f.batches.Load() - before, nil
}

// watchFiles looks again and again how many files the server has open; stop returns
// the most.
func (s *server) watchFiles(ctx context.Context) (stop func() int) {
	const every = 200 * time.Millisecond
	ctx, cancel := context.WithCancel(ctx)
	most := make(chan int)
	go func() {
		n := 0
		for {
			if now, err := s.descriptors(); err == nil {
				n = max(n, now)
			}
			if err := wait(ctx, every); err != nil {
				most <- n
				return
			}
		}
	}()
	return func() int {
		cancel()
		return <-most
	}
}
