package ledger

import (
	"context"
	"slices"
	"sync"
)

// Record is one record of the ledger's topic. A nil Value is a tombstone.
type Record struct{ Key, Value []byte }

// Store is a compacted, durable topic; given from above. Methods may be called
// from any goroutine.
type Store interface {
	// Append makes the records durable as one atomic batch: after a crash all
	// or none of them are there. After an error nothing is known; the Ledger
	// then refuses to go on until it is opened again.
	Append(ctx context.Context, records []Record) error
	// Load gives, in append order, every record that compaction has not
	// dropped: at least the last one of each key. The slices are f's to keep.
	Load(ctx context.Context, f func(Record) error) error
}

// MemStore is a Store in memory, for tests and for jobs that keep nothing.
type MemStore struct {
	mu      sync.Mutex
	records []Record
	hook    func([]Record) error
}

// NewMemStore returns an empty store.
func NewMemStore() *MemStore { return &MemStore{} }

// SetHook makes each Append call f before the records are stored; its error is
// Append's, and the records are not stored. nil removes it.
func (m *MemStore) SetHook(f func([]Record) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hook = f
}

// Append implements Store.
func (m *MemStore) Append(ctx context.Context, records []Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	hook := m.hook
	m.mu.Unlock()
	if hook != nil {
		if err := hook(records); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range records {
		m.records = append(m.records, Record{slices.Clone(r.Key), slices.Clone(r.Value)})
	}
	return nil
}

// Load implements Store.
func (m *MemStore) Load(ctx context.Context, f func(Record) error) error {
	m.mu.Lock()
	records := slices.Clone(m.records)
	m.mu.Unlock()
	for _, r := range records {
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

// Compact drops every record that a later one of the same key supersedes, and
// tombstones.
func (m *MemStore) Compact() {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := map[string]int{}
	for i, r := range m.records {
		last[string(r.Key)] = i
	}
	kept := m.records[:0:0]
	for i, r := range m.records {
		if last[string(r.Key)] == i && r.Value != nil {
			kept = append(kept, r)
		}
	}
	m.records = kept
}

// Len is the number of records kept.
func (m *MemStore) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.records)
}
