package logtopic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// What the log answers with an error that says nothing stays unknown until the
// log is opened again.
func TestFailedSyncIsUnknown(t *testing.T) {
	for _, survives := range []bool{false, true} {
		mem := vfs.NewMem()
		var mu sync.Mutex
		broken := false
		w := openWorld(t, vfs.NewFault(mem, vfs.InjectorFunc(func(op vfs.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if broken && op.Kind&vfs.OpSync != 0 {
				return syscall.EIO
			}
			return nil
		})), func(o *topiclog.Options) { o.Shards = 2 })
		w.topic("out", 2, nil)
		s := w.sink(w.sinkTable("out"), 1)
		wr := w.writer(s, 1)
		write(t, wr, conntest.Rows(0, 3))
		as := seal(t, wr, 1)
		mu.Lock()
		broken = true
		mu.Unlock()
		if err := s.Publish(ctx, as)[0]; err == nil || errors.Is(err, connector.ErrRefused) {
			t.Fatalf("published without a sync: %v", err)
		}
		mu.Lock()
		broken = false
		mu.Unlock()
		for range 2 {
			outcomes, err := s.Resolve(ctx, as)
			check(t, err)
			if outcomes[0] != connector.Unknown {
				t.Fatalf("after a failed sync it is %s", outcomes[0])
			}
			if err := s.Publish(ctx, as)[0]; err == nil || errors.Is(err, connector.ErrRefused) {
				t.Fatalf("tried again: %v", err)
			}
			if err := s.Discard(ctx, as); err == nil {
				t.Fatal("it was discarded")
			}
		}
		percent := 0
		if survives {
			percent = 100
		}
		w = openWorld(t, mem.CrashClone(vfs.CrashOptions{UnsyncedPercent: percent}), func(o *topiclog.Options) { o.Shards = 2 })
		s = w.sink(w.sinkTable("out"), 2)
		outcomes, err := s.Resolve(ctx, as)
		check(t, err)
		want, rows := connector.Absent, 0
		if survives {
			want, rows = connector.Published, 3
		}
		if got := len(slices.Concat(w.ids("out")...)); outcomes[0] != want || got != rows {
			t.Errorf("survives %t: it is %s with %d rows", survives, outcomes[0], got)
		}
	}
}

// An os topic acknowledges before it is durable; an artefact is published when
// it is.
func TestOsTopicIsPublishedWhenDurable(t *testing.T) {
	mem := vfs.NewMem()
	w := openWorld(t, mem, func(o *topiclog.Options) { o.SyncInterval = time.Hour; o.MarkDelay = time.Hour })
	tp := w.topic("out", 1, map[string]string{"millrace.durability": "os"})
	other := w.topic("f", 1, nil).Partitions[0]
	s := w.sink(w.sinkTable("out"), 1)
	wr := w.writer(s, 1)
	write(t, wr, conntest.Rows(0, 3))
	as := seal(t, wr, 1)
	stop, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.Publish(stop, as)[0] }()
	visible := func() bool {
		st, err := w.store.State(tp.Partitions[0].ID)
		check(t, err)
		return st.HighWatermark == 3
	}
	for !visible() {
		select {
		case err := <-done:
			t.Fatalf("published before it was synced: %v", err)
		default:
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || errors.Is(err, connector.ErrRefused) {
		t.Fatalf("given up: %v", err)
	}
	// Looking waits for the sync, too: what is seen may be gone after a crash.
	go func() {
		o, err := s.Resolve(ctx, as)
		if err == nil && o[0] != connector.Published {
			err = fmt.Errorf("it is %s", o[0])
		}
		done <- err
	}()
	w.put(other, record.None, `{}`) // syncs the shard
	check(t, <-done)
	check(t, s.Publish(ctx, as)...)
	w = openWorld(t, mem.CrashClone(vfs.CrashOptions{}), nil)
	if got := len(w.ids("out")[0]); got != 3 {
		t.Errorf("%d rows after a crash", got)
	}
}

// A topic that was deleted refuses; what an attempt had published there is gone
// with it.
func TestTopicDeletedUnderTheSink(t *testing.T) {
	w := newWorld(t)
	w.topic("out", 1, nil)
	table := w.sinkTable("out")
	s := w.sink(table, 1)
	wr := w.writer(s, 1)
	write(t, wr, conntest.Rows(0, 3))
	as := seal(t, wr, 1)
	check(t, w.store.DeleteTopic(ctx, "out", false))
	w.topic("out", 1, nil)
	if err := s.Publish(ctx, as)[0]; !errors.Is(err, connector.ErrRefused) || !errors.Is(err, topiclog.ErrPartitionNotFound) {
		t.Errorf("published to a topic that is gone: %v", err)
	}
	outcomes, err := s.Resolve(ctx, as)
	check(t, err)
	if outcomes[0] != connector.Absent {
		t.Errorf("it is %s", outcomes[0])
	}
	if _, err := s.OpenWriter(ctx, connector.Attempt{ID: artifactID(2, 0)}); !errors.Is(err, topiclog.ErrTopicNotFound) {
		t.Errorf("a writer of a topic that is gone: %v", err)
	}
	if s = w.sink(table, 1); len(w.ids("out")[0]) != 0 {
		t.Error("rows in the new topic")
	}
}

// Many attempts of one lane, alive at once, write the same rows: whoever looks
// first decides, and each row is there once.
func TestZombiesRace(t *testing.T) {
	w := newWorld(t)
	w.topic("out", 2, nil)
	s := w.sink(w.sinkTable("out"), 1)
	wr := w.writer(s, 1)
	write(t, wr, conntest.Rows(0, 5))
	as := seal(t, wr, 1)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { s.Publish(ctx, as) })
	}
	all.Go(func() {
		next, err := s.OpenWriter(ctx, connector.Attempt{ID: artifactID(2, 0)})
		if err != nil {
			t.Error(err)
			return
		}
		defer next.Close()
		o, err := s.Resolve(ctx, as)
		if err != nil || o[0] == connector.Absent || o[0] == connector.Unknown {
			t.Errorf("it is %v, %v", o, err)
			return
		}
		if err := s.Publish(ctx, as)[0]; err != nil {
			t.Error(err)
		}
	})
	all.Wait()
	if got := slices.Concat(w.ids("out")...); len(got) != 5 {
		t.Errorf("rows %v", got)
	}
}
