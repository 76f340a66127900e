package topiclog_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// The trace proves what a kill cannot, since the page cache survives it: each
// acknowledgement comes after an fdatasync that comes after the write.
func TestFdatasyncBeforeAcknowledgement(t *testing.T) {
	ctx := context.Background()
	var log strings.Builder
	fsys := vfs.NewTrace(vfs.NewMem(), &log, vfs.OpWrite|vfs.OpSync)
	o := small(fsys)
	o.Shards = 1
	o.MarkDelay, o.SyncInterval = time.Hour, time.Hour
	s := open(t, o)
	_, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "safe", Partitions: 1})
	check(t, err)
	_, err = s.CreateTopic(ctx, topiclog.TopicSpec{Name: "fast", Partitions: 1, Config: map[string]string{"millrace.durability": "os"}})
	check(t, err)
	start := log.Len()
	acked := func(name string) func(topiclog.AppendResult, error) {
		ch := make(chan struct{})
		return func(_ topiclog.AppendResult, err error) {
			fsys.Printf("acknowledge %s: %v", name, err)
			close(ch)
		}
	}
	appendTo := func(name string) {
		tp, err := s.Topic(name)
		check(t, err)
		done := make(chan struct{})
		ack := acked(name)
		s.AppendAsync(topiclog.AppendRequest{Partition: tp.Partitions[0].ID, Batches: batch(t, "x")}, func(r topiclog.AppendResult, err error) {
			ack(r, err)
			close(done)
		})
		<-done
	}
	appendTo("safe")
	appendTo("safe")
	appendTo("fast")
	appendTo("safe")
	check(t, s.CommitCursors(ctx, "g", []topiclog.Cursor{{Partition: 0, Offset: 1}}))
	fsys.Printf("cursor committed")
	got := log.String()[start:]
	const want = `write-at data/journal/00-000001.mrj offset=4096 size=4096
sync-data data/journal/00-000001.mrj
acknowledge safe: <nil>
write-at data/journal/00-000001.mrj offset=8192 size=4096
sync-data data/journal/00-000001.mrj
acknowledge safe: <nil>
write-at data/journal/00-000001.mrj offset=12288 size=4096
acknowledge fast: <nil>
write-at data/journal/00-000001.mrj offset=16384 size=4096
sync-data data/journal/00-000001.mrj
acknowledge safe: <nil>
write-at data/journal/00-000001.mrj offset=20480 size=4096
sync-data data/journal/00-000001.mrj
cursor committed
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	check(t, s.Close())
}
