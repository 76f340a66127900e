package topiclog_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// A reader in sequence finds the next records read before it asks, gets what one
// without reading ahead gets, and no place is read twice.
func TestReadAhead(t *testing.T) {
	const want = 64 << 10
	read := func(ahead int64) (all []byte, reads map[string]int) {
		synctest.Test(t, func(t *testing.T) {
			ctx := context.Background()
			fsys := vfs.NewFault(vfs.NewMem(), nil)
			o := small(fsys)
			o.ReadAheadBytes = ahead
			s := open(t, o)
			tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1})
			check(t, err)
			id := tp.Partitions[0].ID
			for i := range 16 {
				appendTo(t, s, id, batch(t, fmt.Sprintf("%d-%s", i, strings.Repeat("x", 20_000))))
			}
			check(t, s.Flush(ctx))
			fetch := func(offset int64) int64 {
				l, err := s.Fetch(ctx, topiclog.FetchRequest{Partition: id, Offset: offset, MaxBytes: want})
				check(t, err)
				defer l.Release()
				if l.Bytes == 0 || l.Bytes > want {
					t.Errorf("%d bytes at %d", l.Bytes, offset)
				}
				all = append(all, bytes.Join(l.Chunks, nil)...)
				return l.NextOffset
			}
			for next := int64(0); next < 16; {
				next = fetch(next) // opens the files
			}
			synctest.Wait()
			all = nil
			reads = map[string]int{}
			fsys.SetInjector(vfs.InjectorFunc(func(op vfs.Op) error {
				if op.Kind&vfs.OpRead != 0 && strings.HasSuffix(op.Path, ".mrs") {
					reads[fmt.Sprint(op.Path, " ", op.Offset)]++
				}
				return nil
			}))
			next := fetch(0)
			synctest.Wait()
			if len(reads) != 1 {
				t.Errorf("%d reads after a Fetch elsewhere, want its own", len(reads))
			}
			next = fetch(next)
			synctest.Wait()
			if got := len(reads); got != 2 && ahead < 0 || got != 3 && ahead > 0 {
				t.Errorf("%d reads after the second Fetch", got)
			}
			for next < 16 {
				next = fetch(next)
				synctest.Wait()
			}
			fsys.SetInjector(nil)
			check(t, s.Close())
		})
		return all, reads
	}
	plain, _ := read(-1)
	ahead, reads := read(1 << 20)
	if !bytes.Equal(plain, ahead) {
		t.Errorf("%d bytes with reading ahead, %d without", len(ahead), len(plain))
	}
	for at, n := range reads {
		if n != 1 {
			t.Errorf("%s was read %d times", at, n)
		}
	}
}
