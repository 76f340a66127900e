package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/storage/client"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

// readAll calls f for every record of a partition from an offset up to, not
// including, end; the record is valid until f returns. It is for Millrace's
// own small topics, not for the data path.
func readAll(ctx context.Context, store *topiclog.Store, id topiclog.PartitionID, from, end int64, f func(*record.Record) error) error {
	var dec record.Decoder
	defer dec.Close()
	for from < end {
		next, err := readSome(ctx, store, &dec, id, from, end, f)
		if err != nil {
			return err
		}
		if next <= from {
			return fmt.Errorf("reading offset %d: the log has nothing there though it ends at %d", from, end)
		}
		from = next
	}
	return nil
}

// readSome reads one lease and returns the offset behind it.
func readSome(ctx context.Context, store *topiclog.Store, dec *record.Decoder, id topiclog.PartitionID, from, end int64, f func(*record.Record) error) (int64, error) {
	lease, err := store.Fetch(ctx, topiclog.FetchRequest{Partition: id, Offset: from, MaxBytes: 1 << 20})
	if err != nil {
		return 0, fmt.Errorf("reading from offset %d: %w", from, err)
	}
	defer lease.Release()
	err = client.EachRecord(lease, dec, from, func(r *record.Record) error {
		if r.Offset >= end {
			return nil
		}
		return f(r)
	})
	return lease.NextOffset, err
}

// ownTopic opens one of Millrace's own topics, made at first use.
func ownTopic(ctx context.Context, store *topiclog.Store, name string, config map[string]string) (topiclog.Topic, error) {
	for {
		t, err := store.Topic(name)
		if errors.Is(err, topiclog.ErrTopicNotFound) {
			t, err = store.CreateTopic(ctx, topiclog.TopicSpec{Name: name, Partitions: 1, Config: config})
		}
		if !errors.Is(err, topiclog.ErrTopicExists) {
			if err != nil {
				err = fmt.Errorf("opening topic %s: %w", name, err)
			}
			return t, err
		}
		// Another job is about to have made it.
		select {
		case <-time.After(topicPoll):
		case <-ctx.Done():
			return t, fmt.Errorf("opening topic %s: %w", name, ctx.Err())
		}
	}
}

// topicPoll is how often a topic that somebody else makes is looked for.
const topicPoll = 5 * time.Millisecond
