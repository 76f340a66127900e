package main

import (
	"context"
	"fmt"
)

// idle shows the memory of servers with ten topics, of which each has some records,
// once they are at rest.
func (b *bench) idle(ctx context.Context) error {
	const topics = 10
	for _, system := range b.choose(millrace, kafka) {
		if err := b.idleOf(ctx, system, topics); err != nil {
			return fmt.Errorf("%s: %w", system, err)
		}
	}
	return nil
}

func (b *bench) idleOf(ctx context.Context, system string, topics int) error {
	s, err := b.start(ctx, system, 0)
	if err != nil {
		return err
	}
	defer s.end(ctx)
	names := make([]string, topics)
	for i := range names {
		names[i] = fmt.Sprintf("idle-%d", i)
	}
	if err := createTopics(ctx, s, partitionsEach, names...); err != nil {
		return err
	}
	p, err := b.producer(ctx, s, clientFranz, names)
	if err != nil {
		return err
	}
	_, _, err = p.send(ctx, int64(2*topics*partitionsEach))
	p.close()
	if err != nil {
		return err
	}
	if _, err := s.rested(ctx); err != nil {
		return err
	}
	now, peak, err := s.memory()
	if err != nil {
		return err
	}
	files, err := s.descriptors()
	fmt.Fprintf(b.out, "%s, %d topics of %d partitions, at rest: %.1f MiB resident, %.1f at its highest, %d files\n", system, topics, partitionsEach, float64(now)/(1<<20), float64(peak)/(1<<20), files)
	return err
}
