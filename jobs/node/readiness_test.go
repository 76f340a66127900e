package node

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/storage/topiclog"
)

// TestReplayWithReadiness: rows of a table whose partitions are told of by topics can be
// replayed, and the topics hear of them.
func TestReplayWithReadiness(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "clicks", 1)
	w.produce(n, "clicks", `{"id":1,"a":1,"b":1}`, `{"id":2,"a":0,"b":1}`)
	sql := func(x string) string {
		return "SET 'manifest.topic' = 'files';\n" + source("clicks", "clicks") + fmt.Sprintf("CREATE TABLE `out` (id BIGINT, x BIGINT, dt STRING) PARTITIONED BY (dt) WITH ('connector'='filesystem', 'path'='%s', 'format'='json', "+
			"'sink.partition-commit.policy.kind'='readiness-topic', 'sink.partition-commit.readiness-topic.name'='ready');\n", w.dir+"/out") +
			"INSERT INTO `out` SELECT id, " + x + ", 'd1' FROM clicks;"
	}
	w.run(n, w.options("job", sql("100 / a")))
	if got := w.replay(n, "out", sql("a")); got.Written != 1 {
		t.Errorf("replayed %+v", got)
	}
	for _, name := range []string{"ready", "files"} {
		topic, err := n.store.Topic(name)
		if err != nil {
			t.Fatal(err)
		}
		st, err := n.store.State(topic.Partitions[0].ID)
		if err != nil || st.HighWatermark != 2 {
			t.Errorf("topic %s ends at %d, %v: told of the partition by the run and by the replay it has 2 records", name, st.HighWatermark, err)
		}
	}
}

// TestReadinessIsOnDisk: what a readiness topic was told of is on disk, also in a
// topic that acknowledges before its records are there.
func TestReadinessIsOnDisk(t *testing.T) {
	for _, durability := range []string{"fsync", "os"} {
		w := newWorld(t)
		n := w.open()
		w.topic(n, "ready", 1, "millrace.durability", durability)
		write, err := n.readinessTopic(w.ctx(), connector.ReadinessTopic{Name: "ready"})
		if err != nil {
			t.Fatal(err)
		}
		if err := write(w.ctx(), engine.Ready{Job: "j"}); err != nil {
			t.Fatal(err)
		}
		topic, err := n.store.Topic("ready")
		if err != nil {
			t.Fatal(err)
		}
		id := topic.Partitions[0].ID
		if st, err := n.store.State(id); err != nil || st.DurableEnd != 1 {
			t.Errorf("%s: on disk is what lies below %d of %d, %v", durability, st.DurableEnd, st.HighWatermark, err)
		}
	}
}

// TestJobsMakeATopicTogether: jobs that start together and name the same topic, which
// is not there, all get it.
func TestJobsMakeATopicTogether(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	for round := range 20 {
		name := fmt.Sprintf("ready-%d", round)
		begin := make(chan struct{})
		errs := make([]error, 16)
		var wait sync.WaitGroup
		for i := range errs {
			wait.Go(func() {
				<-begin
				write, err := n.readinessTopic(w.ctx(), connector.ReadinessTopic{Name: name})
				if err == nil {
					err = write(w.ctx(), engine.Ready{Job: "j"})
				}
				errs[i] = err
			})
		}
		close(begin)
		wait.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if got := w.told(n, name); got != 16 {
			t.Fatalf("topic %s has %d records of 16 jobs", name, got)
		}
	}
}

// told is how many records a topic's first partition has.
func (w *world) told(n *Node, name string) int64 {
	w.t.Helper()
	topic, err := n.store.Topic(name)
	if err != nil {
		w.t.Fatal(err)
	}
	st, err := n.store.State(topic.Partitions[0].ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return st.HighWatermark
}

// TestReadinessTopicIsDeleted: a topic that is deleted while a job runs is made again
// by what it is told next; one that somebody else has made again is told.
func TestReadinessTopicIsDeleted(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	write, err := n.readinessTopic(w.ctx(), connector.ReadinessTopic{Name: "ready"})
	if err != nil {
		t.Fatal(err)
	}
	tell := func(want int64) {
		t.Helper()
		if err := write(w.ctx(), engine.Ready{Job: "j"}); err != nil {
			t.Fatal(err)
		}
		if got := w.told(n, "ready"); got != want {
			t.Errorf("the topic has %d records, want %d", got, want)
		}
	}
	remove := func() {
		t.Helper()
		if err := n.store.DeleteTopic(w.ctx(), "ready", false); err != nil {
			t.Fatal(err)
		}
	}
	tell(1)
	tell(2)
	remove()
	tell(1)
	remove()
	w.topic(n, "ready", 2)
	tell(1)
	tell(2)
}

// TestReadinessIsTriedAgain: a full disk and a topic that comes and goes may be better
// later; a fenced log may not.
func TestReadinessIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&topiclog.DiskFullError{Dir: "d", Err: syscall.ENOSPC}, true},
		{topiclog.ErrTopicClosing, true},
		{topiclog.ErrPartitionNotFound, true},
		{&topiclog.FencedError{Err: syscall.EIO}, false},
		{topiclog.ErrTooLarge, false},
	} {
		var r connector.Retryable
		err := fmt.Errorf("writing: %w", &toldError{c.err})
		if !errors.As(err, &r) || r.Retryable() != c.want || !errors.Is(err, c.err) {
			t.Errorf("%v: retryable is to be %t", c.err, c.want)
		}
	}
}
