package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"golang.org/x/sys/unix"
)

// Phases of scenario scan.
const (
	alone    = "alone"
	scanning = "scanned"
)

// scan measures the latency of a producer of a steady rate, by turns with readers of
// old records from the disk and without.
func (b *bench) scan(ctx context.Context) error {
	systems := b.choose(millrace, kafka)
	var all []measurement
	for _, system := range systems {
		ms, err := b.scanOf(ctx, system)
		if err != nil {
			return fmt.Errorf("%s: %w", system, err)
		}
		all = append(all, ms...)
	}
	fmt.Fprintf(b.out, "\nproducer of %d records of %d bytes per second, and %d readers of %d MB of old records; medians of %d (lowest-highest)\n", b.rate, b.records[0], b.scanners, b.bytes/1e6, b.repetitions)
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "system\tp50 ms alone\tscanned\tp99 ms alone\tscanned\tratio\treaders MB/s\tpeak MiB")
	for _, s := range systems {
		before, after := of(all, alone, s, p99Of), of(all, scanning, s, p99Of)
		fmt.Fprintln(w, strings.Join([]string{s, of(all, alone, s, p50Of).format(0), of(all, scanning, s, p50Of).format(0), before.format(0), after.format(0),
			ratio(after.median, before.median), of(all, scanning, s, rateOf).format(1), of(all, scanning, s, peakOf).format(0)}, "\t"))
	}
	return w.Flush()
}

func (b *bench) scanOf(ctx context.Context, system string) (all []measurement, err error) {
	s, err := b.start(ctx, system, 0)
	if err != nil {
		return nil, err
	}
	defer s.end(ctx)
	c := cell{b.records[0], b.batches[0], b.partitions[0]}
	for topic, partitions := range map[string]int{"old": max(b.scanners, c.Partitions), "new": c.Partitions} {
		if err := createTopics(ctx, s, partitions, topic); err != nil {
			return nil, err
		}
	}
	if _, err := b.produce(ctx, s, "old", c.Record, c.Batch, b.bytes, -1); err != nil {
		return nil, err
	}
	phase := func(name string, repetition int) error {
		m := measurement{cell: c, Phase: name, System: system, Repetition: repetition}
		if _, err := s.rested(ctx); err != nil {
			return err
		}
		stop := func() (float64, error) { return 0, nil }
		if name == scanning {
			if stop, err = b.startScanners(ctx, s, max(b.scanners, c.Partitions)); err != nil {
				return err
			}
		}
		p, err := b.produce(ctx, s, "new", c.Record, c.Batch, int64(b.rate)*int64(b.seconds)*int64(c.Record), b.rate)
		read, scanned := stop()
		if err := errors.Join(err, scanned); err != nil {
			return fmt.Errorf("%w\nthe server said:\n%s", err, s.Log())
		}
		m.Rate, m.P50, m.P99 = read, p.p50, p.p99
		if m.Resident, err = s.peakMiB(); err != nil {
			return err
		}
		all = append(all, m)
		return b.note(m)
	}
	for repetition := range b.repetitions {
		for _, name := range []string{alone, scanning} {
			if err := phase(name, repetition); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// startScanners starts readers of topic old, each from another partition on, which
// read all of it round and round without decoding it. Before each round of the first
// one the server's files leave the page cache. stop returns how many MB/s they read.
func (b *bench) startScanners(ctx context.Context, s *server, partitions int) (stop func() (float64, error), err error) {
	if err := evict(s.dir); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var read atomic.Int64
	errs := make([]error, b.scanners)
	var wg sync.WaitGroup
	began := time.Now()
	for i := range b.scanners {
		wg.Go(func() {
			for ctx.Err() == nil && errs[i] == nil {
				if errs[i] = scanOnce(ctx, s, i, partitions, &read); errs[i] == nil && i == 0 && ctx.Err() == nil {
					errs[i] = evict(s.dir)
				}
			}
		})
	}
	return func() (float64, error) {
		took := time.Since(began)
		cancel()
		wg.Wait()
		return perSecond(read.Load(), took), errors.Join(errs...)
	}, nil
}

// scanOnce reads every partition of topic old, the first one first. It returns when
// ctx ends as well.
func scanOnce(ctx context.Context, s *server, first, partitions int, read *atomic.Int64) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(s.addr), kgo.ClientID(fmt.Sprintf("scanner-%d", first)),
		kgo.MaxVersions(kversion.V2_8_0())) // the last whose fetches name topics by their names
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	defer c.Close()
	for i := range partitions {
		partition := int32((first + i) % partitions)
		for at := int64(0); ctx.Err() == nil; {
			next, bytes, err := fetchOld(ctx, c, partition, at)
			if err != nil && ctx.Err() == nil {
				return err
			}
			read.Add(int64(bytes))
			if next == at {
				break
			}
			at = next
		}
	}
	return nil
}

// fetchOld reads up to 1 MiB from an offset on, and returns the offset after it, which
// is the same at the end of the partition.
func fetchOld(ctx context.Context, c *kgo.Client, partition int32, at int64) (next int64, bytes int, err error) {
	const atOnce = 1 << 20
	req := kmsg.NewFetchRequest()
	req.ReplicaID, req.MaxBytes, req.MinBytes, req.MaxWaitMillis, req.SessionEpoch = -1, atOnce, 1, 100, -1
	topic, p := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = partition, at, atOnce, -1
	topic.Topic, topic.Partitions = "old", append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	res, err := c.SeedBrokers()[0].RetriableRequest(ctx, &req)
	if err != nil {
		return at, 0, fmt.Errorf("fetching old records: %w", err)
	}
	for _, t := range res.(*kmsg.FetchResponse).Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return at, 0, fmt.Errorf("fetching old records: %w", err)
			}
			return max(at, endOf(p.RecordBatches)), len(p.RecordBatches), nil
		}
	}
	return at, 0, nil
}

// endOf is the offset after the last whole batch, 0 where there is none. Of a batch it
// reads the base offset, the length and the last offset's distance from the base.
func endOf(batches []byte) (next int64) {
	const lengthAt, lastAt, headLen = 8, 23, 12
	for len(batches) >= lastAt+4 {
		n := headLen + int(binary.BigEndian.Uint32(batches[lengthAt:]))
		if n > len(batches) {
			break
		}
		next = int64(binary.BigEndian.Uint64(batches)) + int64(binary.BigEndian.Uint32(batches[lastAt:])) + 1
		batches = batches[n:]
	}
	return next
}

// evict drops what the page cache has of a server's files and is on the disk already.
func evict(dir string) error {
	unix.Sync()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("emptying the page cache: %w", err)
	}
	return nil
}
