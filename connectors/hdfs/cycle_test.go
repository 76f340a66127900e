//go:build services

package hdfs_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/offsets"
)

// steps are those of a commit cycle, in their order.
var steps = []string{"claim", "fence", "seal", "intent", "publish", "committed", "announce"}

// cycle writes two rounds of rows into one table, as a lane does: what has an
// intent is resolved before anything else, everything else is written again by
// a new attempt.
type cycle struct {
	t     testing.TB
	conn  *filesystem.Connector
	table *connector.Table
	rows  int // of a round

	intents   []connector.Artifact
	committed int
	done      int64 // rows below have an intent
	epoch     uint64
	jobEpoch  uint64
	// last is the error that ended the last attempt.
	last error
}

const rounds = 2

func newCycle(t testing.TB, url string, options ...string) *cycle {
	c := newConnector()
	return &cycle{t: t, conn: c, table: tableAt(t, c, url, "parquet", options...), rows: 20}
}

// once is one life of the process; before is called at each step of each round
// and may be nil.
func (c *cycle) once(before func(round int, step string)) error {
	c.last = c.attempt(before)
	return c.last
}

func (c *cycle) attempt(before func(round int, step string)) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	at := func(round int, step string) {
		if before != nil {
			before(round, step)
		}
	}
	c.jobEpoch++
	at(0, "claim")
	s, err := c.conn.OpenSink(ctx, c.table, conntest.OwnerOf(1, c.jobEpoch))
	if err != nil {
		return fmt.Errorf("opening sink: %w", err)
	}
	defer s.Close()
	lane := connector.LaneID{Topic: conntest.UUID(7), Set: 1}
	highest, err := s.MaxEpoch(ctx, lane)
	if err != nil {
		return fmt.Errorf("highest epoch: %w", err)
	}
	c.epoch = max(c.epoch, highest) + 1
	id := connector.ArtifactID{Job: conntest.UUID(1), Table: conntest.UUID(9), Lane: lane, Epoch: c.epoch}
	at(0, "fence")
	w, err := s.OpenWriter(ctx, connector.Attempt{ID: id, MemoryBytes: 16 << 20})
	if err != nil {
		return fmt.Errorf("opening writer: %w", err)
	}
	defer w.Close()
	if err := c.recover(ctx, s); err != nil {
		return err
	}
	for c.done < int64(rounds*c.rows) {
		round := int(c.done) / c.rows
		at(round, "seal")
		as, err := c.seal(ctx, w, &id)
		if err != nil {
			return fmt.Errorf("sealing: %w", err)
		}
		at(round, "intent")
		c.intents = append(c.intents, as...)
		c.done += int64(c.rows)
		at(round, "publish")
		for _, err := range s.Publish(ctx, as) {
			if err != nil {
				return fmt.Errorf("publishing: %w", err)
			}
		}
		at(round, "committed")
		c.committed = len(c.intents)
	}
	at(rounds-1, "announce")
	for _, a := range c.intents {
		if err := s.(connector.PartitionCommitter).CommitPartition(ctx, a.Header.TablePartition); err != nil {
			return fmt.Errorf("announcing: %w", err)
		}
	}
	if err := s.(connector.Settler).Settled(ctx, id); err != nil {
		return fmt.Errorf("settling: %w", err)
	}
	return nil
}

func (c *cycle) seal(ctx context.Context, w connector.Writer, id *connector.ArtifactID) ([]connector.Artifact, error) {
	b := conntest.Rows(c.done, c.rows)
	buckets, err := w.Buckets(b, nil, nil)
	if err != nil {
		return nil, err
	}
	for row, k := range buckets {
		if err := w.Write(b, batch.Sel{int32(row)}, k); err != nil {
			return nil, err
		}
	}
	var reqs []connector.SealRequest
	for _, k := range w.Open() {
		id.Sequence++
		reqs = append(reqs, connector.SealRequest{Bucket: k.ID, Header: connector.Header{ID: *id, TablePartition: k.TablePartition, Rows: k.Rows,
			Inputs: []connector.Input{{Topic: id.Lane.Topic, Offsets: offsets.Of(c.done, c.done+int64(c.rows))}}}})
	}
	return w.Seal(ctx, reqs)
}

// recover completes what has an intent and is not committed.
func (c *cycle) recover(ctx context.Context, s connector.Sink) error {
	pending := c.intents[c.committed:]
	outcomes, err := s.Resolve(ctx, pending)
	if err != nil {
		return fmt.Errorf("resolving: %w", err)
	}
	for i, o := range outcomes {
		switch o {
		case connector.Published:
		case connector.Sealed:
			if err := s.Publish(ctx, pending[i:i+1])[0]; err != nil {
				return fmt.Errorf("publishing: %w", err)
			}
		default:
			c.t.Fatalf("artefact %s, which has an intent, is %s", pending[i].Header.ID, o)
		}
	}
	c.committed = len(c.intents)
	return nil
}

// finish goes on as a restarted process until the cycle is through, and checks
// that each row is there once, and nothing else under a name that readers see.
func (c *cycle) finish(what string) {
	c.t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for c.last != nil || c.done == 0 {
		if c.once(nil) != nil && time.Now().After(deadline) {
			c.t.Fatalf("%s: it does not come through: %v", what, c.last)
		}
	}
	ids := visible(c.t, c.conn, c.table)
	slices.Sort(ids)
	want := make([]int64, rounds*c.rows)
	for i := range want {
		want[i] = int64(i)
	}
	if !slices.Equal(ids, want) {
		c.t.Fatalf("%s: %d rows are visible, want %d once each", what, len(ids), len(want))
	}
}
