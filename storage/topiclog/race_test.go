package topiclog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// gate holds back the first sync of files below a folder until it is opened.
type gate struct {
	folder          string
	once            sync.Once
	reached, opened chan struct{}
}

func newGate(folder string) *gate {
	return &gate{folder: folder, reached: make(chan struct{}), opened: make(chan struct{})}
}

// Inject implements vfs.Injector.
func (g *gate) Inject(op vfs.Op) error {
	if op.Kind&vfs.OpSync != 0 && strings.Contains(op.Path, g.folder) {
		g.once.Do(func() {
			close(g.reached)
			<-g.opened
		})
	}
	return nil
}

// Notes that come, and others that are trimmed, while a segment is written are
// all accounted for when the journal is gone.
func TestNotesWhileFlushing(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	fsys := vfs.NewFault(mem, nil)
	s := open(t, small(fsys))
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1})
	check(t, err)
	id := tp.Partitions[0].ID
	add := func(n int) {
		t.Helper()
		_, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, "x"), NoteKey: "job", Note: []byte{byte(n)}})
		check(t, err)
	}
	for i := range 10 {
		add(i)
	}
	g := newGate("segments")
	fsys.SetInjector(g)
	flushed := make(chan error, 1)
	go func() { flushed <- s.Flush(ctx) }()
	<-g.reached
	for i := 10; i < 15; i++ {
		add(i)
	}
	check(t, s.TrimNotes(ctx, id, "job", 8))
	close(g.opened)
	check(t, <-flushed)
	check(t, s.Flush(ctx))
	for round := range 2 {
		if round > 0 {
			check(t, s.Close())
			s = open(t, small(mem))
		}
		notes, err := s.Notes(id, "job")
		check(t, err)
		got := ""
		for _, n := range notes {
			got += fmt.Sprintf("%d:%d ", n.LastOffset, n.Data[0])
		}
		if want := "8:8 9:9 10:10 11:11 12:12 13:13 14:14 "; got != want {
			t.Errorf("round %d: notes %s, want %s", round, got, want)
		}
	}
	check(t, s.Close())
}

// A cursor that was committed is not forgotten by a flush at that moment.
func TestCursorsWhileFlushing(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	s := open(t, small(mem))
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1})
	check(t, err)
	id := tp.Partitions[0].ID
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := s.Flush(ctx); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for i := range 300 {
		check(t, s.CommitCursors(ctx, "g", []topiclog.Cursor{{Partition: id, Offset: int64(i)}}))
		if i%3 > 0 {
			continue
		}
		after := open(t, small(mem.CrashClone(vfs.CrashOptions{})))
		if cs := after.Cursors("g"); len(cs) != 1 || cs[0].Offset < int64(i) {
			t.Errorf("after the crash the cursor is %+v, %d was committed", cs, i)
		}
		check(t, after.Close())
	}
	close(stop)
	wg.Wait()
	check(t, s.Close())
}

// A request behind one that is refused gets all the room it needs.
func TestLargeAppendBehindRefusedOne(t *testing.T) {
	ctx := context.Background()
	fsys := vfs.NewFault(vfs.NewMem(), nil)
	o := small(fsys)
	o.Shards = 1
	o.CacheBytes, o.JournalMaxBytes = 16<<20, 16<<20
	s := open(t, o)
	var ids []topiclog.PartitionID
	for _, name := range []string{"first", "gone", "large"} {
		tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: name, Partitions: 1})
		check(t, err)
		ids = append(ids, tp.Partitions[0].ID)
	}
	g := newGate("journal")
	fsys.SetInjector(g)
	errs := [3]chan error{}
	send := func(i int, raw []byte) {
		errs[i] = make(chan error, 1)
		s.AppendAsync(topiclog.AppendRequest{Partition: ids[i], Batches: raw}, func(_ topiclog.AppendResult, err error) { errs[i] <- err })
	}
	send(0, batch(t, "x"))
	<-g.reached
	send(1, batch(t, "x"))
	send(2, batch(t, strings.Repeat("y", 1_046_000)))
	check(t, s.DeleteTopic(ctx, "gone", false))
	close(g.opened)
	check(t, <-errs[0])
	if err := <-errs[1]; !errors.Is(err, topiclog.ErrPartitionNotFound) {
		t.Errorf("the deleted topic: %v", err)
	}
	check(t, <-errs[2])
	check(t, s.Close())
}

// Whoever subscribed successfully keeps the topic; whoever deleted it had no
// subscribers.
func TestSubscribeAgainstDelete(t *testing.T) {
	ctx := context.Background()
	s := open(t, small(vfs.NewMem()))
	for i := range 200 {
		tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1})
		check(t, err)
		var wg sync.WaitGroup
		var subscribed, deleted error
		wg.Go(func() { subscribed = s.Subscribe(ctx, topiclog.Subscription{Group: "g", Topic: tp.ID}) })
		wg.Go(func() { deleted = s.DeleteTopic(ctx, "t", i%2 == 0) })
		wg.Wait()
		d, err := s.Topic("t")
		switch exists := err == nil; {
		case exists && subscribed != nil:
			t.Fatalf("round %d: subscribing failed (%v), yet the topic stays: deleting gave %v", i, subscribed, deleted)
		case !exists && subscribed == nil:
			t.Fatalf("round %d: the topic went away under its subscriber", i)
		case exists && d.Closing != (deleted == nil):
			t.Fatalf("round %d: closing %v, deleting gave %v", i, d.Closing, deleted)
		}
		if err == nil {
			check(t, s.Unsubscribe(ctx, "g", tp.ID))
			if !d.Closing {
				check(t, s.DeleteTopic(ctx, "t", false))
			}
		}
		if _, err := s.Topic("t"); !errors.Is(err, topiclog.ErrTopicNotFound) || len(s.Subscriptions()) > 0 {
			t.Fatalf("round %d: left over: %v, %v", i, err, s.Subscriptions())
		}
	}
	check(t, s.Close())
}

// A closing topic goes with its last reader, whenever the machine stops.
func TestClosingTopicSurvivesCrash(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	fsys := vfs.NewFault(mem, nil)
	s := open(t, small(fsys))
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1})
	check(t, err)
	_, err = s.Append(ctx, topiclog.AppendRequest{Partition: tp.Partitions[0].ID, Batches: batch(t, "x")})
	check(t, err)
	check(t, s.Subscribe(ctx, topiclog.Subscription{Group: "g", Topic: tp.ID}))
	check(t, s.DeleteTopic(ctx, "t", true))
	if _, err := s.AlterConfig(ctx, "t", map[string]string{"retention.ms": "1"}, nil); !errors.Is(err, topiclog.ErrTopicClosing) {
		t.Errorf("changing it: %v", err)
	}
	var mu sync.Mutex
	var clones []*vfs.MemFS
	fsys.SetInjector(vfs.InjectorFunc(func(op vfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		clones = append(clones, mem.CrashClone(vfs.CrashOptions{}), mem.CrashClone(vfs.CrashOptions{UnsyncedPercent: 100}))
		return nil
	}))
	check(t, s.Unsubscribe(ctx, "g", tp.ID))
	fsys.SetInjector(nil)
	clones = append(clones, mem.CrashClone(vfs.CrashOptions{}))
	check(t, s.Close())
	for i, c := range clones {
		s := open(t, small(c))
		_, err := s.Topic("t")
		if subs := s.Subscriptions(); (err == nil) != (len(subs) == 1) {
			t.Errorf("crash %d of %d: the topic gives %v with subscriptions %v", i, len(clones), err, subs)
		}
		check(t, s.Close())
	}
}

// Notes of more bytes than one commit of metadata takes are kept all the same.
func TestManyNoteBytes(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	o := topiclog.Options{FS: mem, Dir: "data", Shards: 1, CacheBytes: 256 << 20, ReserveBytes: -1, RetentionInterval: -1}
	s := open(t, o)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1})
	check(t, err)
	id := tp.Partitions[0].ID
	note := make([]byte, 7<<20)
	for range 11 {
		_, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, "x"), NoteKey: "job", Note: note})
		check(t, err)
	}
	_, err = s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, "x"), NoteKey: "job", Note: make([]byte, 9<<20)})
	if !errors.Is(err, topiclog.ErrInvalidBatch) {
		t.Errorf("a note that is too large: %v", err)
	}
	check(t, s.Flush(ctx))
	check(t, s.Close())
	s = open(t, o)
	if notes, err := s.Notes(id, "job"); err != nil || len(notes) != 11 {
		t.Errorf("%d notes, %v", len(notes), err)
	}
	check(t, s.Close())
}
