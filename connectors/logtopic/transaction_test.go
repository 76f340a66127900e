package logtopic

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// transact appends a batch in a transaction of the producer and leaves it open.
func (w *logWorld) transact(p topiclog.Partition, id string, key string, values ...string) topiclog.ProducerIdentity {
	w.t.Helper()
	who, err := w.store.InitTransaction(ctx, id, time.Minute, topiclog.NoProducer)
	check(w.t, err)
	check(w.t, w.store.AddToTransaction(ctx, id, who, []topiclog.PartitionID{p.ID}))
	b := record.Builder{}
	b.SetProducer(who.ID, who.Epoch, 0, true)
	for i, v := range values {
		check(w.t, b.Append(int64(1000+i), []byte(key), []byte(v), nil))
	}
	raw, err := b.Build()
	check(w.t, err)
	_, err = w.store.Append(ctx, topiclog.AppendRequest{Partition: p.ID, Batches: raw, TransactionalID: id})
	check(w.t, err)
	return who
}

func (w *logWorld) end(id string, who topiclog.ProducerIdentity, commit bool) {
	w.t.Helper()
	_, err := w.store.EndTransaction(ctx, id, who, commit, false)
	check(w.t, err)
}

// A bounded read whose last offsets are markers and aborted records ends, has read
// what is committed, and its positions reach the end of the log.
func TestTransactionMarkersAtTheEnd(t *testing.T) {
	for _, flush := range []bool{false, true} {
		w := newWorld(t)
		tp := w.topic("t", 1, nil)
		p := tp.Partitions[0]
		w.end("a", w.transact(p, "a", "k", `{"id":1}`, `{"id":2}`, `{"id":3}`), true) // marker at 3
		for i := range 20 {                                                           // 4 to 43, each with its marker
			w.end("b", w.transact(p, "b", "k", fmt.Sprintf(`{"id":%d}`, 100+i)), i == 7)
		}
		w.end("b", w.transact(p, "b", "k", `{"id":4}`, `{"id":5}`), false)
		if flush {
			check(t, w.store.Flush(ctx))
		}
		for _, limit := range [][2]int{{1, 1 << 20}, {100, 1}, {100, 1 << 20}} {
			r := w.open(w.source(w.table("t", idOnly, "scan.bounded.mode", scanrange.Latest)), nil, nil)
			have, err := collect(t, r, limit[0], limit[1], nil)
			check(t, err)
			if want := (got{0: {"0:1", "1:2", "2:3", "18:107"}}); !reflect.DeepEqual(have, want) {
				t.Errorf("flush %v, limit %v: read %v, want %v", flush, limit, have, want)
			}
			if err := r.Next(ctx, new(batch.Batch), 10, 100); !errors.Is(err, io.EOF) {
				t.Errorf("flush %v, limit %v: after the end: %v", flush, limit, err)
			}
			st, err := w.store.State(p.ID)
			check(t, err)
			if next, end := r.splits[0].next, r.LogEnd(0); next != end || end != st.HighWatermark || end != 47 {
				t.Errorf("flush %v, limit %v: read up to %d of %d, the log ends at %d", flush, limit, next, end, st.HighWatermark)
			}
		}
	}
}

// Behind the first record of an open transaction nothing is read, and the lag does
// not count it; its end wakes the reader.
func TestOpenTransactionHoldsTheReader(t *testing.T) {
	w := newWorld(t)
	p := w.topic("t", 1, nil).Partitions[0]
	w.put(p, record.None, `{"id":1}`)
	who := w.transact(p, "a", "k", `{"id":2}`)
	w.put(p, record.None, `{"id":3}`)
	notified := make(chan struct{}, 10)
	r := w.open(w.source(w.table("t", idOnly)), nil, func() { notified <- struct{}{} })
	have, err := collect(t, r, 10, 1000, nil)
	check(t, err)
	if want := (got{0: {"0:1"}}); !reflect.DeepEqual(have, want) || r.LogEnd(0) != 1 {
		t.Errorf("read %v, end %d", have, r.LogEnd(0))
	}
	for len(notified) > 0 {
		<-notified
	}
	w.end("a", who, true)
	<-notified
	have, err = collect(t, r, 10, 1000, nil)
	check(t, err)
	if want := (got{0: {"1:2", "2:3"}}); !reflect.DeepEqual(have, want) || r.LogEnd(0) != 4 || r.splits[0].next != 4 {
		t.Errorf("read %v, end %d, next %d", have, r.LogEnd(0), r.splits[0].next)
	}
}

// When compaction has left nothing right before an open transaction, a bounded read
// gets to its end all the same.
func TestNothingLeftBeforeAnOpenTransaction(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	w := openWorld(t, vfs.NewMem(), func(o *topiclog.Options) { o.Clock.Wall = func() time.Time { return now } })
	p := w.topic("t", 1, map[string]string{"cleanup.policy": "compact", "delete.retention.ms": "1000"}).Partitions[0]
	w.put(p, record.None, `{"id":1}`)
	w.put(p, record.None, "NULL")
	w.transact(p, "a", "key", `{"id":2}`)
	check(t, w.store.Flush(ctx))
	now = now.Add(time.Hour)
	check(t, w.store.Compact(ctx, "t"))
	r := w.open(w.source(w.table("t", idOnly, "scan.bounded.mode", scanrange.Latest)), nil, nil)
	have, err := collect(t, r, 10, 1000, nil)
	check(t, err)
	if len(have[0]) != 0 || r.splits[0].next != 2 {
		t.Errorf("read %v, next %d", have, r.splits[0].next)
	}
	if err := r.Next(ctx, new(batch.Batch), 10, 100); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
	// The same without an end waits.
	r = w.open(w.source(w.table("t", idOnly)), nil, nil)
	_, err = collect(t, r, 10, 1000, nil)
	check(t, err)
	if err := r.Next(ctx, new(batch.Batch), 10, 100); !errors.Is(err, connector.ErrNoData) {
		t.Errorf("at the open transaction: %v", err)
	}
}
