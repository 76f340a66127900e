package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors/conntest/services"
)

// restartGroup is the group that has a position in every partition.
const restartGroup = "restart"

// journalBytes of records of 1 kB are what the default write cache holds: no more can be
// in the journal and in no segment.
const journalBytes = 120e6

// restart kills a server that has just acknowledged records of many partitions, by
// SIGKILL, and shows how long the next one takes until it answers. The first one has a
// cache so large that it flushes nothing: all records are in the journal alone.
func (b *bench) restart(ctx context.Context) error {
	systems := b.choose(millrace)
	var all []measurement
	for repetition := range b.repetitions {
		for _, partitions := range b.partitions {
			for _, system := range systems {
				m, err := b.restartOf(ctx, system, partitions)
				if err != nil {
					return fmt.Errorf("%s with %d partitions: %w", system, partitions, err)
				}
				m.Repetition = repetition
				all = append(all, m)
				b.say("  %d %-12s %6d partitions: answers after %.2f s, %.2f CPU s; data files %.0f MB; load %s", repetition+1, system, m.Partitions, m.Open, m.OpenCPU, m.Disk, m.Load)
				if err := b.keep(m); err != nil {
					return err
				}
			}
		}
	}
	fmt.Fprintf(b.out, "\nkilled with %d MB of records of %d bytes in the journal alone and a position in each partition; medians of %d (lowest-highest)\n", b.bytes/1e6, b.records[0], b.repetitions)
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "system\tpartitions\tseconds until it answers\tCPU s\tpeak MiB\tMB of data files")
	for _, system := range systems {
		for _, partitions := range b.partitions {
			var own []measurement
			for _, m := range all {
				if m.Partitions == partitions {
					own = append(own, m)
				}
			}
			get := func(value func(measurement) float64) spread { return of(own, reopening, system, value) }
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\n", system, partitions, get(openOf).format(2), get(openCPU).format(2), get(peakOf).format(0), get(diskOf).format(0))
		}
	}
	return w.Flush()
}

// restartOf measures one start after a kill.
func (b *bench) restartOf(ctx context.Context, system string, partitions int) (m measurement, err error) {
	if system != millrace && system != millraceOS {
		return m, errors.New("it has no journal")
	}
	// A flush begins when a shard's half of the cache is half full.
	s, err := b.start(ctx, system, 0, "--write-cache", fmt.Sprintf("%d mb", max(4*b.bytes>>20, 128)))
	if err != nil {
		return m, err
	}
	defer s.end(ctx)
	names := make([]string, max(partitions/partitionsEach, 1))
	for i := range names {
		names[i] = fmt.Sprintf("restart-%05d", i)
	}
	if err := createTopics(ctx, s, partitionsEach, names...); err != nil {
		return m, err
	}
	if err := commitEach(ctx, s, names); err != nil {
		return m, err
	}
	p, err := b.producer(ctx, s, clientPrepared, names)
	if err != nil {
		return m, err
	}
	sent, _, err := p.send(ctx, max(b.bytes/int64(b.records[0]), int64(partitions)))
	p.close()
	if err != nil {
		return m, fmt.Errorf("%w\nthe server said:\n%s", err, s.Log())
	}
	s.Kill()
	segments, err := os.ReadDir(filepath.Join(s.dir, "data", "log", "segments"))
	if err == nil && len(segments) > 0 {
		err = fmt.Errorf("%d segments were written before the kill: not everything is in the journal", len(segments))
	}
	if err != nil {
		return m, err
	}
	m = measurement{cell: cell{b.records[0], 0, partitions}, Phase: reopening, System: system}
	if m.Disk, err = filesMB(s.dir); err != nil {
		return m, err
	}
	began := time.Now()
	if s.Process, err = services.Launch(ctx, s.again); err != nil {
		return m, err
	}
	c, err := kgo.NewClient(kgo.SeedBrokers(s.addr))
	if err != nil {
		return m, fmt.Errorf("making a client: %w", err)
	}
	defer c.Close()
	admin := kadm.NewClient(c)
	if _, err := recordsIn(ctx, admin, names[:1]); err != nil {
		return m, err
	}
	m.Open = time.Since(began).Seconds()
	cpu, err := s.cpu()
	if err != nil {
		return m, err
	}
	m.OpenCPU = cpu.Seconds()
	if m.Resident, err = s.peakMiB(); err != nil {
		return m, err
	}
	m.Load = services.LoadAverage()
	// A server that forgets is fast.
	got, err := recordsIn(ctx, admin, names)
	if err == nil && got != sent {
		err = fmt.Errorf("%d records were acknowledged, %d are there after the kill", sent, got)
	}
	return m, err
}

// commitEach gives the group a position in every partition.
func commitEach(ctx context.Context, s *server, names []string) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(s.addr))
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	defer c.Close()
	admin := kadm.NewClient(c)
	for at := 0; at < len(names); at += topicsAtOnce {
		offsets := kadm.Offsets{}
		for _, name := range names[at:min(at+topicsAtOnce, len(names))] {
			for i := range partitionsEach {
				offsets.AddOffset(name, int32(i), 0, -1)
			}
		}
		if err := admin.CommitAllOffsets(ctx, restartGroup, offsets); err != nil {
			return fmt.Errorf("committing positions: %w", err)
		}
	}
	return nil
}

// topicsAtOnce is how many topics a request of restart names.
const topicsAtOnce = 200

// recordsIn counts the records of topics by their ends.
func recordsIn(ctx context.Context, admin *kadm.Client, names []string) (records int64, err error) {
	for at := 0; at < len(names); at += topicsAtOnce {
		got, err := admin.ListEndOffsets(ctx, names[at:min(at+topicsAtOnce, len(names))]...)
		if err == nil {
			err = got.Error()
		}
		if err != nil {
			return 0, fmt.Errorf("asking for the ends: %w", err)
		}
		got.Each(func(o kadm.ListedOffset) { records += o.Offset })
	}
	return records, nil
}

// filesMB is how much the files below a directory hold, in 10^6 bytes.
func filesMB(dir string) (float64, error) {
	size := int64(0)
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("measuring the data: %w", err)
	}
	return float64(size) / 1e6, nil
}
