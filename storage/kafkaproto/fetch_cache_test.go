package kafkaproto

import (
	"testing"
	"time"
)

// TestFetchSessionsAreBounded: a full cache refuses new sessions until one has
// been idle for long; the longest idle one goes.
func TestFetchSessionsAreBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	c := newFetchSessions()
	c.now = func() time.Time { return now }
	open := func(partitions int) int32 {
		f := &fetchRequest{epoch: initialEpoch, topics: []fetchTopic{{topicRef: topicRef{name: "a"}}}}
		for i := range partitions {
			f.topics[0].partitions = append(f.topics[0].partitions, fetchPartition{index: int32(i)})
		}
		if code := c.begin(f); code != codeNone {
			t.Fatalf("code %d", code)
		}
		return f.session
	}
	first := open(3)
	second := open(1)
	for range maxFetchSessions - 2 {
		if open(1) == 0 {
			t.Fatal("refused before the bound")
		}
	}
	if open(1) != 0 {
		t.Error("one more than the bound")
	}
	now = now.Add(evictAfter)
	// The first one is used again.
	if code := c.begin(&fetchRequest{session: first, epoch: 1}); code != codeNone {
		t.Fatalf("code %d", code)
	}
	if open(1) == 0 {
		t.Error("refused although others are idle")
	}
	if code := c.begin(&fetchRequest{session: first, epoch: 2}); code != codeNone {
		t.Errorf("the session in use: code %d", code)
	}
	if code := c.begin(&fetchRequest{session: second, epoch: 1}); code != codeSessionIDNotFound {
		t.Errorf("the longest idle: code %d, want 70", code)
	}
	if len(c.byID) != maxFetchSessions || c.order.Len() != maxFetchSessions || c.partitions != maxFetchSessions+2 {
		t.Errorf("%d sessions, %d in order, %d partitions", len(c.byID), c.order.Len(), c.partitions)
	}
	if open(maxSessionPartitions+1) != 0 {
		t.Error("more partitions than the bound")
	}
}
