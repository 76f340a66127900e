package topiclog_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// An answer does not end with a segment, but it keeps to what was asked for, and to
// where reading may go.
func TestFetchReadsOnInTheNextSegment(t *testing.T) {
	ctx := context.Background()
	s := open(t, small(vfs.NewMem()))
	defer s.Close()
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 2})
	check(t, err)
	id := tp.Partitions[0].ID
	var all [][]byte
	for i := range 4 {
		raw := batch(t, fmt.Sprintf("%d-%s", i, strings.Repeat("x", 5000)))
		appendTo(t, s, id, raw)
		appendTo(t, s, tp.Partitions[1].ID, raw)
		check(t, s.Flush(ctx)) // a segment of its own for each
	}
	appendTo(t, s, id, batch(t, "in the write cache"))
	fetch := func(offset int64, maxBytes int) (next int64, got []byte) {
		l, err := s.Fetch(ctx, topiclog.FetchRequest{Partition: id, Offset: offset, MaxBytes: maxBytes})
		check(t, err)
		defer l.Release()
		got = bytes.Join(l.Chunks, nil)
		if len(got) != l.Bytes {
			t.Errorf("%d bytes in chunks of %d", l.Bytes, len(got))
		}
		return l.NextOffset, got
	}
	size := 0
	for i := range 4 {
		next, got := fetch(int64(i), 1)
		if next != int64(i)+1 {
			t.Fatalf("from %d up to %d, want one batch", i, next)
		}
		all = append(all, got)
		size = len(got)
	}
	for _, c := range []struct{ from, maxBytes, next int }{
		{0, 1 << 20, 4}, {1, 1 << 20, 4}, {3, 1 << 20, 4}, {0, 2 * size, 2}, {0, 2*size - 1, 1}, {1, 3*size - 1, 3},
	} {
		next, got := fetch(int64(c.from), c.maxBytes)
		if next != int64(c.next) || !bytes.Equal(got, bytes.Join(all[c.from:c.next], nil)) {
			t.Errorf("from %d at most %d bytes: %d bytes up to %d, want those up to %d", c.from, c.maxBytes, len(got), next, c.next)
		}
	}
}
