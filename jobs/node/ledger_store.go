package node

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

// LedgerTopic holds the ledger of every job of a data directory.
const LedgerTopic = "__millrace_ledger"

// ledgerMaxBatch is the largest batch of facts: intents of big artefacts.
const ledgerMaxBatch = 64 << 20

// ledgerStore keeps the ledger in a compacted topic: one append is one record
// batch, which the log writes all or nothing.
type ledgerStore struct {
	store     *topiclog.Store
	partition topiclog.PartitionID
	now       func() time.Time

	mu      sync.Mutex
	builder record.Builder
}

func openLedgerStore(ctx context.Context, store *topiclog.Store, now func() time.Time) (*ledgerStore, error) {
	t, err := ownTopic(ctx, store, LedgerTopic, map[string]string{
		"cleanup.policy": "compact", "max.message.bytes": fmt.Sprint(ledgerMaxBatch),
	})
	if err != nil {
		return nil, err
	}
	return &ledgerStore{store: store, partition: t.Partitions[0].ID, now: now}, nil
}

// Append implements ledger.Store.
func (s *ledgerStore) Append(ctx context.Context, records []ledger.Record) error {
	s.mu.Lock()
	s.builder.Reset()
	at := s.now().UnixMilli()
	for _, r := range records {
		if err := s.builder.Append(at, r.Key, r.Value, nil); err != nil {
			s.mu.Unlock()
			return fmt.Errorf("building a ledger batch: %w", err)
		}
	}
	built, err := s.builder.Build()
	// The log copies the batch before the append ends, and appends may overlap.
	batch := bytes.Clone(built)
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("building a ledger batch: %w", err)
	}
	if _, err := s.store.Append(ctx, topiclog.AppendRequest{Partition: s.partition, Batches: batch, Trusted: true}); err != nil {
		return fmt.Errorf("appending to the ledger: %w", err)
	}
	return nil
}

// Load implements ledger.Store.
func (s *ledgerStore) Load(ctx context.Context, f func(ledger.Record) error) error {
	st, err := s.store.State(s.partition)
	if err != nil {
		return fmt.Errorf("reading the ledger: %w", err)
	}
	err = readAll(ctx, s.store, s.partition, st.Start, st.HighWatermark, func(r *record.Record) error {
		return f(ledger.Record{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)})
	})
	if err != nil {
		return fmt.Errorf("reading the ledger: %w", err)
	}
	return nil
}
