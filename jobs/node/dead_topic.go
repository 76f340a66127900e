package node

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

// deadMaxBatch is the largest batch of a dead-letter topic: an entry holds the
// record as it came.
const deadMaxBatch = 64 << 20

// deadValue is the value of a record of a dead-letter topic. It is JSON, so
// that any consumer can read it; fields may be added.
type deadValue struct {
	Job        string  `json:"job_id"`
	Generation uint32  `json:"generation"`
	TableID    string  `json:"table_id"`
	Table      string  `json:"table"`
	TopicID    string  `json:"topic_id"`
	Topic      string  `json:"topic"`
	Partition  int32   `json:"partition"`
	Offset     int64   `json:"offset"`
	Rows       []int32 `json:"rows,omitempty"`
	Reason     string  `json:"reason"`
	Column     string  `json:"column,omitempty"`
	Message    string  `json:"message"`
	Attempts   int32   `json:"attempts"`
	// Follows is the offset, in this topic, of the entry whose replay failed;
	// -1 for a first failure.
	Follows   int64       `json:"follows"`
	Timestamp int64       `json:"timestamp"`
	Key       []byte      `json:"key_base64,omitzero"`
	Value     []byte      `json:"value_base64"`
	Headers   []deadField `json:"headers,omitempty"`
}

type deadField struct {
	Key   string `json:"key"`
	Value []byte `json:"value_base64"`
}

// deadTopic is one job's dead letters: lane.DeadLetters over a topic, with an
// index of what is durable above the resume positions.
type deadTopic struct {
	store *topiclog.Store
	topic topiclog.Topic
	now   func() time.Time

	mu      sync.Mutex
	builder record.Builder
	index   deadIndex
}

// deadKey is what durable entries are asked for by.
type deadKey struct {
	table, topic connector.UUID
	partition    int32
}

var _ lane.DeadLetters = (*deadTopic)(nil)

// openDeadTopic opens a job's dead-letter topic, made at first use, and reads
// what is in it. Dead letters are kept until somebody removes them.
func openDeadTopic(ctx context.Context, store *topiclog.Store, name string, now func() time.Time, resume resumeFunc) (*deadTopic, error) {
	t, err := ownTopic(ctx, store, name, map[string]string{
		"retention.ms": "-1", "max.message.bytes": fmt.Sprint(deadMaxBatch),
	})
	if err != nil {
		return nil, err
	}
	if t.Settings.Compact || t.Settings.Durability != topiclog.Fsync {
		return nil, inputError(fmt.Errorf("topic %s cannot take dead letters: it needs 'cleanup.policy' = 'delete' and 'millrace.durability' = 'fsync'", name))
	}
	d := &deadTopic{store: store, topic: t, now: now, index: newDeadIndex(resume)}
	d.builder.Codec = record.Zstd
	err = d.each(ctx, func(_ *record.Record, v *deadValue) error {
		key, err := v.key()
		if err != nil {
			return err
		}
		d.index.add(v.scope(), key, v.Offset, v.Rows, batch.Code(v.Reason), v.Column)
		return nil
	})
	return d, err
}

// scope is the job and generation that an entry belongs to.
func (v *deadValue) scope() ledger.Scope {
	job, _ := parseUUID(v.Job) // another form belongs to no job
	return ledger.Scope{Job: job, Generation: v.Generation}
}

// of reports whether an entry is a job's and generation's: the topic may be
// shared, and it outlives generations.
func (v *deadValue) of(s ledger.Scope) bool {
	return v.Generation == s.Generation && v.Job == s.Job.String()
}

// key parses the ids of an entry.
func (v *deadValue) key() (deadKey, error) {
	table, err := parseUUID(v.TableID)
	if err != nil {
		return deadKey{}, fmt.Errorf("reading a dead letter's table id: %w", err)
	}
	topic, err := parseUUID(v.TopicID)
	if err != nil {
		return deadKey{}, fmt.Errorf("reading a dead letter's topic id: %w", err)
	}
	return deadKey{table, topic, v.Partition}, nil
}

// each calls f for every entry, in log order.
func (d *deadTopic) each(ctx context.Context, f func(*record.Record, *deadValue) error) error {
	for _, p := range d.topic.Partitions {
		st, err := d.store.State(p.ID)
		if err != nil {
			return fmt.Errorf("reading topic %s: %w", d.topic.Name, err)
		}
		err = readAll(ctx, d.store, p.ID, st.Start, st.HighWatermark, func(r *record.Record) error {
			var v deadValue
			if err := json.Unmarshal(r.Value, &v); err != nil {
				return fmt.Errorf("topic %s partition %d offset %d is no dead letter: %w", d.topic.Name, p.Index, r.Offset, err)
			}
			return f(r, &v)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// raw is the record as it came.
func (v *deadValue) raw() connector.RawRecord {
	r := connector.RawRecord{Key: v.Key, Value: v.Value, TimestampMillis: v.Timestamp}
	for _, h := range v.Headers {
		r.Headers = append(r.Headers, connector.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return r
}

// entry reads one entry.
func (d *deadTopic) entry(ctx context.Context, offset int64) (*deadValue, error) {
	var out *deadValue
	err := readAll(ctx, d.store, d.topic.Partitions[0].ID, offset, offset+1, func(r *record.Record) error {
		out = &deadValue{}
		return json.Unmarshal(r.Value, out)
	})
	if err == nil && out == nil {
		err = fmt.Errorf("topic %s has no offset %d", d.topic.Name, offset)
	}
	return out, err
}

// failedAgain lists the entries at or above an offset of this topic that a
// replay from a source for a table has found dead again.
func (d *deadTopic) failedAgain(ctx context.Context, table, source connector.UUID, from int64) ([]lane.DeadRecord, error) {
	var again []lane.DeadEntry
	id := table.String()
	err := d.each(ctx, func(_ *record.Record, v *deadValue) error {
		if v.TableID == id && v.Attempts > 0 && v.Follows >= from && replaySource(d.topic.ID, v.Topic) == source {
			again = append(again, lane.DeadEntry{Table: table, TopicID: source, Offset: v.Follows, Rows: v.Rows,
				Reason: batch.Code(v.Reason), Column: v.Column})
		}
		return nil
	})
	return lane.MergeDead(again, table, source, map[int32]int64{0: from}), err
}

// Write implements lane.DeadLetters.
func (d *deadTopic) Write(ctx context.Context, entries []lane.DeadEntry) error {
	return d.write(ctx, entries, nil)
}

// write appends entries; follows are the offsets of the entries that they
// follow, nil for first failures.
func (d *deadTopic) write(ctx context.Context, entries []lane.DeadEntry, follows []int64) error {
	for len(entries) > 0 {
		built, n, err := d.build(entries, follows)
		if err != nil {
			return err
		}
		if _, err := d.store.Append(ctx, topiclog.AppendRequest{Partition: d.topic.Partitions[0].ID, Batches: built, Trusted: true}); err != nil {
			return fmt.Errorf("writing dead letters to topic %s: %w", d.topic.Name, err)
		}
		d.mu.Lock()
		for i := range entries[:n] {
			e := &entries[i]
			d.index.add(ledger.Scope{Job: e.Job, Generation: e.Generation}, deadKey{e.Table, e.TopicID, e.Partition}, e.Offset, e.Rows, e.Reason, e.Column)
		}
		d.index.prune()
		d.mu.Unlock()
		entries = entries[n:]
		if follows != nil {
			follows = follows[n:]
		}
	}
	return nil
}

// build packs as many entries as fit half a batch, at least one.
func (d *deadTopic) build(entries []lane.DeadEntry, follows []int64) (built []byte, n int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.builder.Reset()
	at := d.now().UnixMilli()
	for ; n < len(entries) && (n == 0 || d.builder.Size() < deadMaxBatch/2); n++ {
		e := &entries[n]
		v := deadValue{
			Job: e.Job.String(), Generation: e.Generation, TableID: e.Table.String(), Table: e.TableName,
			TopicID: e.TopicID.String(), Topic: e.Topic, Partition: e.Partition, Offset: e.Offset, Rows: e.Rows,
			Reason: string(e.Reason), Column: e.Column, Message: e.Message, Attempts: e.Attempts,
			Follows: -1, Timestamp: e.Raw.TimestampMillis, Key: e.Raw.Key, Value: e.Raw.Value,
		}
		if follows != nil {
			v.Follows = follows[n]
		}
		for _, h := range e.Raw.Headers {
			v.Headers = append(v.Headers, deadField{h.Key, h.Value})
		}
		b, err := json.Marshal(v)
		if err != nil {
			return nil, 0, fmt.Errorf("encoding a dead letter: %w", err)
		}
		key := fmt.Sprintf("%s/%s/%d/%d", e.TableName, e.Topic, e.Partition, e.Offset)
		if err := d.builder.Append(at, []byte(key), b, nil); err != nil {
			return nil, 0, fmt.Errorf("encoding a dead letter: %w", err)
		}
	}
	raw, err := d.builder.Build()
	if err != nil {
		return nil, 0, fmt.Errorf("encoding dead letters: %w", err)
	}
	return bytes.Clone(raw), n, nil
}

// Durable implements lane.DeadLetters.
func (d *deadTopic) Durable(ctx context.Context, table, topic connector.UUID, from map[int32]int64) ([]lane.DeadRecord, error) {
	var out []lane.DeadRecord
	d.mu.Lock()
	forgotten := false
	for p, first := range from {
		key := deadKey{table, topic, p}
		forgotten = forgotten || d.index.forgotten(key, first)
		out = append(out, d.index.list(key, first)...)
	}
	d.mu.Unlock()
	if forgotten {
		// A position from before the ledger's: of a checkpoint that was gone back to.
		var err error
		if out, err = d.scan(ctx, table, topic, from); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b lane.DeadRecord) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	return out, nil
}

// scan is Durable from the topic itself.
func (d *deadTopic) scan(ctx context.Context, table, topic connector.UUID, from map[int32]int64) ([]lane.DeadRecord, error) {
	x := newDeadIndex(nil)
	err := d.each(ctx, func(_ *record.Record, v *deadValue) error {
		key, err := v.key()
		if err == nil && key.table == table && key.topic == topic {
			x.add(v.scope(), key, v.Offset, v.Rows, batch.Code(v.Reason), v.Column)
		}
		return err
	})
	var out []lane.DeadRecord
	for p, first := range from {
		out = append(out, x.list(deadKey{table, topic, p}, first)...)
	}
	return out, err
}
