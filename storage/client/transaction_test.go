package client_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/storage/client"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

// A fetcher reads committed records only, without asking again and again at the
// first record of an open transaction.
func TestFetcherReadsCommitted(t *testing.T) {
	ctx := context.Background()
	c := open(t)
	tp := create(t, c, "t", 1, nil)
	s, id := c.Store(), tp.Partitions[0].ID
	var who topiclog.ProducerIdentity
	seq := int32(0)
	put := func(value string) {
		t.Helper()
		check(t, s.AddToTransaction(ctx, "tx", who, []topiclog.PartitionID{id}))
		var b record.Builder
		b.SetProducer(who.ID, who.Epoch, seq, true)
		check(t, b.Append(1, nil, []byte(value), nil))
		raw, err := b.Build()
		check(t, err)
		_, err = s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: raw, TransactionalID: "tx"})
		check(t, err)
		seq++
	}
	end := func(commit bool) {
		t.Helper()
		_, err := s.EndTransaction(ctx, "tx", who, commit, false)
		check(t, err)
	}
	who, err := s.InitTransaction(ctx, "tx", time.Minute, topiclog.NoProducer)
	check(t, err)
	f := c.NewFetcher(client.FetcherOptions{MaxBytes: 1})
	defer f.Close()
	check(t, f.Add(id, 0))
	var d record.Decoder
	defer d.Close()
	next := int64(0)
	var got []string
	drain := func() {
		t.Helper()
		for {
			x, err := f.Poll()
			check(t, err)
			if x == nil {
				return
			}
			check(t, client.EachRecord(x.Lease, &d, next, func(r *record.Record) error {
				got = append(got, string(r.Value))
				return nil
			}))
			next = x.NextOffset
			x.Release()
		}
	}
	for i := range 30 {
		put(fmt.Sprint(i))
		drain() // returns: the open record is not offered
		end(i%10 == 3)
	}
	drain()
	put("open")
	drain()
	if want := []string{"3", "13", "23"}; !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
	if next != 60 {
		t.Errorf("read up to %d, want 60", next)
	}
}
