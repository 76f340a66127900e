package engine

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
)

// Ready tells those who read a table that one of its partitions is complete. It may be
// told more than once: job, database, table, partition and version name it.
type Ready struct {
	Job   string
	Facts connector.PartitionFacts
	// Version rises when late rows came and the partition was announced again.
	Version uint32
	Home    uint8
	// Watermark is the table's, in ms; batch.NoWatermark when it has none.
	Watermark  int64
	TimeMillis int64
}

// readiness gives what tells of a table's partitions; nil when its policy names no topic.
func (r *Run) readiness(ctx context.Context, t *table, p connector.CommitPolicy) (func(context.Context, *ledger.Close) error, error) {
	topic := p.Readiness.Name
	if topic == "" {
		return nil, nil
	}
	d, ok := t.sink.(connector.PartitionDescriber)
	if !ok {
		return nil, fmt.Errorf("BUG: table %s: a %T does not describe its partitions", t.fact.Name, t.sink)
	}
	if r.deps.Readiness == nil {
		return nil, fmt.Errorf("table %s: there is no log here for its readiness topic %s", t.fact.Name, topic)
	}
	write, err := r.deps.Readiness(ctx, p.Readiness)
	if err != nil {
		return nil, fmt.Errorf("table %s: readiness topic: %w", t.fact.Name, err)
	}
	return func(ctx context.Context, c *ledger.Close) error {
		k := ledger.CloseKey{Table: t.fact.ID, TablePartition: c.TablePartition}
		rows := map[string]int64{}
		for _, a := range r.book.LiveArtifacts(k) {
			rows[a.Location] = a.Header.Rows
		}
		facts, err := d.DescribePartition(ctx, c.TablePartition, func(path string) (int64, bool) {
			n, ok := rows[path]
			return n, ok
		})
		if err != nil {
			return fmt.Errorf("describing it for topic %s: %w", topic, err)
		}
		err = write(ctx, Ready{Job: r.job.Name, Facts: facts, Version: c.Version, Home: r.book.HomeOf(k),
			Watermark: t.closer.seen(), TimeMillis: r.clock.Now().UnixMilli()})
		if err != nil {
			return fmt.Errorf("writing to the readiness topic %s: %w", topic, err)
		}
		return nil
	}, nil
}

// told is what a table's closer tells, in turn, before a partition counts as announced.
func (r *Run) told(ctx context.Context, t *table, p connector.CommitPolicy) (func(context.Context, *ledger.Close) error, error) {
	manifest := r.tellAnnounced(t)
	ready, err := r.readiness(ctx, t, p)
	if err != nil || ready == nil {
		return manifest, err
	}
	return func(ctx context.Context, c *ledger.Close) error {
		if err := manifest(ctx, c); err != nil {
			return err
		}
		return ready(ctx, c)
	}, nil
}

// seen is the watermark at the last look; batch.NoWatermark when there is none.
func (c *closer) seen() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watermark == batch.MaxWatermark {
		return batch.NoWatermark
	}
	return c.watermark
}
