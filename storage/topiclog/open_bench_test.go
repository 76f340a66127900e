package topiclog_test

import (
	"context"
	"testing"

	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// BenchmarkOpenNew is what a first command pays: a new store, a topic, a record.
func BenchmarkOpenNew(b *testing.B) {
	ctx := context.Background()
	raw := kilobyteBatch(b, 1)
	for b.Loop() {
		s := open(b, topiclog.Options{FS: vfs.NewOS(), Dir: b.TempDir()})
		tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1})
		check(b, err)
		_, err = s.Append(ctx, topiclog.AppendRequest{Partition: tp.Partitions[0].ID, Batches: raw})
		check(b, err)
		check(b, s.Close())
	}
}
