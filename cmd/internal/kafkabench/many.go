package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// partitionsEach is how many partitions the topics of scenario many have.
const partitionsEach = 3

// many writes one record into each of many partitions, round and round, and shows
// what a server needs for that beside the same with few partitions.
func (b *bench) many(ctx context.Context) error {
	systems := b.choose(millrace)
	var all []measurement
	for repetition := range b.repetitions {
		for _, partitions := range b.partitions {
			for _, system := range systems {
				m, err := b.manyOf(ctx, system, partitions)
				if err != nil {
					return fmt.Errorf("%s with %d partitions: %w", system, partitions, err)
				}
				m.Repetition = repetition
				all = append(all, m)
				if err := b.note(m); err != nil {
					return err
				}
			}
		}
	}
	fmt.Fprintf(b.out, "\none record of %d bytes into each partition in turn, %d MB in all, ulimit -n %d; medians of %d (lowest-highest)\n", b.records[0], b.bytes/1e6, b.files, b.repetitions)
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "system\tpartitions\tMB/s\tof fewest\tCPU s/GB\tpeak MiB\tmost files")
	for _, system := range systems {
		first := 0.0
		for _, partitions := range b.partitions {
			var own []measurement
			for _, m := range all {
				if m.Partitions == partitions {
					own = append(own, m)
				}
			}
			get := func(value func(measurement) float64) spread { return of(own, producing, system, value) }
			r := get(rateOf)
			if first == 0 {
				first = r.median
			}
			fmt.Fprintln(w, strings.Join([]string{system, fmt.Sprint(partitions), r.format(1), ratio(r.median, first), get(cpuOf).format(2), get(peakOf).format(0), get(filesOf).format(0)}, "\t"))
		}
	}
	return w.Flush()
}

func (b *bench) manyOf(ctx context.Context, system string, partitions int) (m measurement, err error) {
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
	m = measurement{cell: cell{b.records[0], 0, topics * partitionsEach}, Phase: producing, System: system}
	n := max(b.bytes/int64(m.Record), int64(m.Partitions))
	stop := s.watchFiles(ctx)
	if m.CPU, err = s.cpuOf(ctx, func() error {
		took, err := b.roundRobin(ctx, s, names, n)
		m.Rate = perSecond(n*int64(m.Record), took)
		return err
	}); err != nil {
		stop()
		return m, err
	}
	m.CPU /= float64(n) * float64(m.Record) / 1e9
	m.Files = float64(stop())
	m.Resident, err = s.peakMiB()
	return m, err
}

// roundRobin produces n records, one into each partition of each topic in turn, and
// returns how long that took until the last was acknowledged. The first round, in
// which the client asks for each topic, is not in it.
func (b *bench) roundRobin(ctx context.Context, s *server, topics []string, n int64) (time.Duration, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(s.addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(b.buffered),
		kgo.ProducerLinger(defaultLinger*time.Millisecond), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return 0, fmt.Errorf("making a client: %w", err)
	}
	defer c.Close()
	value := make([]byte, b.records[0])
	for i := range value {
		value[i] = 'A' + byte(i%26)
	}
	var failed atomic.Pointer[error]
	send := func(from, to int64) error {
		for i := from; i < to && failed.Load() == nil && ctx.Err() == nil; i++ {
			at := i % int64(len(topics)*partitionsEach)
			c.Produce(ctx, &kgo.Record{Topic: topics[at/partitionsEach], Partition: int32(at % partitionsEach), Value: value}, func(_ *kgo.Record, err error) {
				if err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			})
		}
		if err := c.Flush(ctx); err != nil {
			return err
		}
		if err := failed.Load(); err != nil {
			return fmt.Errorf("producing: %w", *err)
		}
		return nil
	}
	round := int64(len(topics) * partitionsEach)
	if err := send(0, round); err != nil {
		return 0, err
	}
	began := time.Now()
	err = send(round, round+n)
	return time.Since(began), err
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
