package main

import (
	"context"
	"errors"
	"fmt"
)

// cell is one thing that is measured: everything but the system.
type cell struct {
	Record     int `json:"record"`
	Batch      int `json:"batch"`
	Partitions int `json:"partitions"`
}

func (c cell) String() string {
	return fmt.Sprintf("records of %d bytes, batch.size %d, %d partitions", c.Record, c.Batch, c.Partitions)
}

// measurement is one phase of one repetition. Rates are 10^6 bytes of records per
// second.
type measurement struct {
	cell
	Phase      string  `json:"phase"`
	System     string  `json:"system"`
	Repetition int     `json:"repetition"`
	Rate       float64 `json:"mb_per_s"`
	// Whole is the rate of consume with the time to join a group.
	Whole    float64 `json:"whole_mb_per_s,omitempty"`
	CPU      float64 `json:"cpu_s_per_gb,omitempty"`
	Tool     float64 `json:"client_cpu_s_per_gb,omitempty"` // CPU of Kafka's tool, which is the client
	P50      float64 `json:"p50_ms,omitempty"`
	P99      float64 `json:"p99_ms,omitempty"`
	Resident float64 `json:"peak_mib,omitempty"`
	Files    float64 `json:"files,omitempty"`
	// Of scenario many: the client, how many records its batches have, and the
	// microseconds of processor time of both for each.
	Client       string  `json:"client,omitempty"`
	PerBatch     float64 `json:"records_per_batch,omitempty"`
	ServerMicros float64 `json:"server_us_per_batch,omitempty"`
	ClientMicros float64 `json:"client_us_per_batch,omitempty"`
	// Of scenario restart: seconds until the server answers, of which processor time,
	// and the 10^6 bytes of files that it finds.
	Open    float64 `json:"open_s,omitempty"`
	OpenCPU float64 `json:"open_cpu_s,omitempty"`
	Disk    float64 `json:"files_mb,omitempty"`
	Load    string  `json:"load,omitempty"`
}

// Phases of throughput, and what stands for the disk among the systems.
const (
	producing = "produce"
	consuming = "consume"
	reopening = "restart"
	diskOnce  = "disk, one fdatasync"
	diskEach  = "disk, fdatasync each 512 KiB"
)

func (b *bench) throughput(ctx context.Context) error {
	systems := b.choose(allSystems()...)
	var failed []error
	for _, record := range b.records {
		for _, batch := range b.batches {
			for _, partitions := range b.partitions {
				if err := b.throughputOf(ctx, cell{record, batch, partitions}, systems); err != nil {
					failed = append(failed, err)
				}
				if err := ctx.Err(); err != nil {
					return errors.Join(append(failed, err)...)
				}
			}
		}
	}
	return errors.Join(failed...)
}

// throughputOf measures one cell and prints its table. A repetition that fails is
// missing in it, and the others go on: runs take hours.
func (b *bench) throughputOf(ctx context.Context, c cell, systems []string) error {
	var all []measurement
	note := func(m measurement) error {
		all = append(all, m)
		return b.note(m)
	}
	disk := func(repetition int) error {
		r, err := b.measureDisk()
		if err != nil || b.diskBytes <= 0 {
			return err
		}
		if err := note(measurement{cell: c, Phase: producing, System: diskOnce, Repetition: repetition, Rate: r.once}); err != nil {
			return err
		}
		return note(measurement{cell: c, Phase: producing, System: diskEach, Repetition: repetition, Rate: r.each})
	}
	b.say("%v", c)
	var failed []error
	for repetition := range b.repetitions {
		for i := range systems {
			system := systems[i]
			if repetition%2 == 1 {
				system = systems[len(systems)-1-i]
			}
			ms, err := b.repetition(ctx, c, system, repetition)
			if err != nil {
				failed = append(failed, fmt.Errorf("repetition %d of %s, %v: %w", repetition+1, system, c, err))
				b.say("  %v", failed[len(failed)-1])
			}
			if err := ctx.Err(); err != nil {
				return errors.Join(append(failed, err)...)
			}
			for _, m := range ms {
				if err := note(m); err != nil {
					return err
				}
			}
		}
		if err := disk(repetition); err != nil {
			return err
		}
	}
	b.printThroughput(c, all)
	return errors.Join(failed...)
}

// repetition measures one system once.
func (b *bench) repetition(ctx context.Context, c cell, system string, repetition int) ([]measurement, error) {
	s, err := b.start(ctx, system, 0)
	if err != nil {
		return nil, err
	}
	defer s.end(ctx)
	if err := b.warm(ctx, s, c); err != nil {
		return nil, err
	}
	if err := createTopics(ctx, s, c.Partitions, "measured"); err != nil {
		return nil, err
	}
	bytes := b.bytes
	if system == kafkaFlush {
		bytes = b.flushBytes
	}
	m := measurement{cell: c, Phase: producing, System: system, Repetition: repetition}
	n := max(bytes/int64(c.Record), 1)
	gb := float64(n) * float64(c.Record) / 1e9
	var p produced
	if m.CPU, err = s.cpuOf(ctx, func() error {
		p, err = b.produce(ctx, s, "measured", c.Record, c.Batch, bytes, -1)
		return err
	}); err != nil {
		return nil, err
	}
	m.CPU /= gb
	m.Rate, m.P50, m.P99, m.Tool = p.perSecond*float64(c.Record)/1e6, p.p50, p.p99, p.cpu.Seconds()/gb
	if m.Resident, err = s.peakMiB(); err != nil {
		return nil, err
	}
	out := []measurement{m}
	if !b.consume {
		return out, nil
	}
	m = measurement{cell: c, Phase: consuming, System: system, Repetition: repetition}
	var got consumed
	if m.CPU, err = s.cpuOf(ctx, func() error {
		got, err = b.consumeAll(ctx, s, "measured", n)
		return err
	}); err != nil {
		return nil, err
	}
	m.CPU /= gb
	m.Rate, m.Whole, m.Tool = got.fetchedPer*float64(c.Record)/1e6, got.perSecond*float64(c.Record)/1e6, got.cpu.Seconds()/gb
	if m.Resident, err = s.peakMiB(); err != nil {
		return nil, err
	}
	return append(out, m), nil
}

// warm gives a server records for a topic of its own. It is small: what a topic of
// many partitions costs at first use is measured.
func (b *bench) warm(ctx context.Context, s *server, c cell) error {
	const topic = "warm"
	if err := createTopics(ctx, s, min(c.Partitions, 12), topic); err != nil {
		return err
	}
	bytes := b.warmBytes
	if s.name == kafkaFlush {
		bytes = min(bytes, b.flushBytes)
	}
	if _, err := b.produce(ctx, s, topic, c.Record, c.Batch, bytes, -1); err != nil {
		return err
	}
	if b.consume {
		if _, err := b.consumeAll(ctx, s, topic, max(bytes/int64(c.Record), 1)); err != nil {
			return err
		}
	}
	_, err := s.rested(ctx)
	return err
}

// cpuOf is the processor time, in seconds, that the server spends on a phase and on
// what it puts off in it.
func (s *server) cpuOf(ctx context.Context, phase func() error) (float64, error) {
	before, err := s.cpu()
	if err != nil {
		return 0, err
	}
	if err := phase(); err != nil {
		return 0, fmt.Errorf("%w\nthe server said:\n%s", err, s.Log())
	}
	after, err := s.rested(ctx)
	return (after - before).Seconds(), err
}

func (s *server) peakMiB() (float64, error) {
	_, peak, err := s.memory()
	return float64(peak) / (1 << 20), err
}
