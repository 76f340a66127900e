package topiclog_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// Requests at once over the partitions of all shards: each is answered once and
// under its index, those of a partition in their order, and one that is refused
// refuses no other.
func TestAppendAll(t *testing.T) {
	store, err := topiclog.Open(topiclog.Options{FS: vfs.NewMem(), Dir: "data", ReserveBytes: -1, RetentionInterval: -1, Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	tp, err := store.CreateTopic(context.Background(), topiclog.TopicSpec{Name: "t", Partitions: 5})
	if err != nil {
		t.Fatal(err)
	}
	var b record.Builder
	if err := b.Append(1000, nil, []byte("v"), nil); err != nil {
		t.Fatal(err)
	}
	one, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	const rounds, refused = 20, 7
	var reqs []topiclog.AppendRequest
	for i := range rounds * len(tp.Partitions) {
		reqs = append(reqs, topiclog.AppendRequest{Partition: tp.Partitions[i%len(tp.Partitions)].ID, Batches: one})
	}
	reqs[refused].Partition = 1 << 20
	var mu sync.Mutex
	left, ended := len(reqs), make(chan struct{})
	bases, errs := make([]int64, len(reqs)), make([]error, len(reqs))
	store.AppendAll(reqs, func(i int, res topiclog.AppendResult, err error) {
		mu.Lock()
		defer mu.Unlock()
		if left--; left < 0 {
			t.Errorf("request %d: a second answer", i)
		}
		bases[i], errs[i] = res.BaseOffset, err
	}, func() {
		mu.Lock()
		defer mu.Unlock()
		if left != 0 {
			t.Errorf("ended with %d requests to answer", left)
		}
		close(ended) // panics at a second end
	})
	<-ended
	next := map[topiclog.PartitionID]int64{}
	for i, r := range reqs {
		if i == refused {
			if !errors.Is(errs[i], topiclog.ErrPartitionNotFound) {
				t.Errorf("request %d: %v, want that there is no such partition", i, errs[i])
			}
			continue
		}
		if errs[i] != nil || bases[i] != next[r.Partition] {
			t.Errorf("request %d: offset %d, %v, want %d", i, bases[i], errs[i], next[r.Partition])
		}
		next[r.Partition]++
	}
	if start, err := store.Start(tp.Partitions[0].ID); start != 0 || err != nil {
		t.Errorf("start %d, %v", start, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store.AppendAll(reqs[:1], func(_ int, _ topiclog.AppendResult, err error) {
		if !errors.Is(err, topiclog.ErrClosed) {
			t.Errorf("after the close: %v", err)
		}
	}, nil)
}
