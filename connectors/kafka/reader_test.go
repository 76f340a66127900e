package kafka

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

func TestReadsEverythingOnce(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(t)
	w.topic("t", 3, nil)
	codecs := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}
	want := got{}
	id := 0
	for _, codec := range codecs {
		client, _ := w.dial(kgo.ProducerBatchCompression(codec))
		for range 10 {
			p := int32(rng.IntN(3))
			var rs []*kgo.Record
			for range 1 + rng.IntN(40) {
				id++
				want[p] = append(want[p], fmt.Sprintf("%d:%d", len(want[p]), id))
				rs = append(rs, rec("t", p, fmt.Sprintf(`{"id":%d,"pad":"%s"}`, id, strings.Repeat("x", rng.IntN(60)))))
			}
			check(t, client.ProduceSync(w.ctx, rs...).FirstErr())
		}
	}
	s := w.source(w.table("t", idOnly, "scan.bounded.mode", scanrange.Latest, "properties.max.partition.fetch.bytes", "1024", "properties.fetch.max.bytes", "2048"))
	for _, size := range []struct{ rows, bytes int }{{1, 1 << 20}, {7, 1 << 20}, {1000, 300}, {1000, 1}, {1 << 20, 1 << 20}} {
		r := w.open(s, nil)
		have, err := r.collect(-1, size.rows, size.bytes, func(b *batch.Batch) {
			if b.Len > size.rows {
				t.Fatalf("%d rows of at most %d", b.Len, size.rows)
			}
		})
		check(t, err)
		if !reflect.DeepEqual(have, want) {
			t.Fatalf("seed %d, %+v: read %v\nwant %v", seed, size, have, want)
		}
		if len(r.held) != 0 || r.cur.split != nil {
			t.Error("something is held after everything was read")
		}
		check(t, r.Close(), r.Close())
	}
}

func TestRecordsOfSeveralRows(t *testing.T) {
	w := newWorld(t)
	w.topic("t", 1, nil)
	w.put("t", 0, `{"id":1}`, "{\"id\":2}\n{\"id\":3}\n{\"id\":4}", `[{"id":5},{"id":6}]`, `[]`, `NULL`, ``, `{"id":`, `[{"id":7},8]`, "\xef\xbb\xbf{\"id\":9}", `{"id":"x"}`)
	want := got{0: {"0:1", "1:2", "1+1:3", "1+2:4", "2:5", "2+1:6", "3:empty", "4:empty", "5:empty",
		"6:malformed_record", "7:malformed_record", "8:9", "9:!type_mismatch"}}
	s := w.source(w.table("t", idOnly, "scan.bounded.mode", scanrange.Latest))
	for _, rows := range []int{1, 2, 3, 100} {
		have, err := w.open(s, nil).collect(-1, rows, 1<<20, nil)
		check(t, err)
		if !reflect.DeepEqual(have, want) {
			t.Errorf("%d rows at a time: %v\nwant %v", rows, have, want)
		}
	}
	s = w.source(w.table("t", idOnly, "scan.bounded.mode", scanrange.Latest, "format", "csv", "csv.on-error", "drop"))
	if on, _ := s.DecodeErrors(); on != connector.OnErrorDrop {
		t.Errorf("policy %v", on)
	}
}

func TestMetadataAndProjection(t *testing.T) {
	w := newWorld(t)
	w.topic("t", 2, nil)
	check(t, w.client.ProduceSync(w.ctx,
		&kgo.Record{Topic: "t", Partition: 1, Timestamp: time.UnixMilli(1_700_000_000_123), Key: []byte("k"), Value: []byte(`{"id":1,"name":"a"}`),
			Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "b"}, {Key: "a", Value: []byte("2")}}},
		&kgo.Record{Topic: "t", Partition: 1, Timestamp: time.UnixMilli(5), Value: []byte(`{"id":2,"name":"b"} {"id":3,"name":"c"}`)},
	).FirstErr())
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	check(t, err)
	meta := func(name, key string, typ types.Type) connector.Column {
		return connector.Column{Field: field(name, typ), Metadata: key, Virtual: true}
	}
	cols := []connector.Column{
		meta("part", "partition", types.NewBigInt()),
		{Field: field("id", types.NewBigInt())},
		meta("off", "offset", types.NewBigInt()),
		meta("ts", "timestamp", types.NewTimestampLTZ(3)),
		{Field: field("name", types.NewString())},
		meta("wall", "timestamp", types.NewTimestamp(9)),
		meta("tt", "timestamp-type", types.NewString()),
		meta("ep", "leader-epoch", types.NewInt()),
		meta("hs", "headers", types.NewMap(types.NewString().NotNull(), types.NewBytes())),
		meta("topic", "topic", types.NewString()),
	}
	epoch := w.cluster.PartitionInfo("t", 1).Epoch
	table := w.table("t", cols, "scan.bounded.mode", scanrange.Latest)
	table.Zone = shanghai
	s := w.source(table)
	read := func(columns []int) []string {
		have, err := w.open(s, columns).collect(-1, 100, 1<<20, nil)
		check(t, err)
		return have[1]
	}
	want := []string{
		fmt.Sprintf("0:1,1,0,1700000000123000,a,1700028800123000000,CreateTime,%d,{b=NULL;a=2;},t", epoch),
		fmt.Sprintf("1:1,2,1,5000,b,28800005000000,CreateTime,%d,{},t", epoch),
		fmt.Sprintf("1+1:1,3,1,5000,c,28800005000000,CreateTime,%d,{},t", epoch),
	}
	if have := read(nil); !slices.Equal(have, want) {
		t.Errorf("read  %q\nwant %q", have, want)
	}
	if have, want := read([]int{9, 4, 0}), []string{"0:t,a,1", "1:t,b,1", "1+1:t,c,1"}; !slices.Equal(have, want) {
		t.Errorf("projected: %q, want %q", have, want)
	}
	// What is not selected is checked all the same.
	w.put("t", 1, `{"id":5,"name":"x"`)
	if have, want := read([]int{}), []string{"0:", "1:", "1+1:", "2:malformed_record"}; !slices.Equal(have, want) {
		t.Errorf("without columns: %q, want %q", have, want)
	}
	for _, bad := range []connector.Column{
		meta("x", "partition", types.NewString()), meta("x", "timestamp", types.NewBigInt()), meta("x", "offset", types.NewInt()),
		meta("x", "headers", types.NewMap(types.NewString(), types.NewString())), meta("x", "timestamp", types.NewTimestampLTZ(0)),
		meta("x", "key", types.NewString()),
	} {
		if _, err := w.conn.OpenSource(w.ctx, w.table("t", []connector.Column{bad})); err == nil || !strings.Contains(err.Error(), "column x") {
			t.Errorf("metadata %s as %s: %v", bad.Metadata, bad.Type, err)
		}
	}
}

// Every record of the last batch can be asked for, in any order.
func TestRaw(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 2))
	w := newWorld(t)
	w.topic("t", 3, nil)
	values := map[[2]int64]string{}
	var next [3]int64
	zstd, _ := w.dial(kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	for i := range 20 {
		p := int32(rng.IntN(3))
		var rs []*kgo.Record
		for k := range 1 + rng.IntN(30) {
			v := fmt.Sprintf(`{"id":"bad %d %d"`, i, k)
			values[[2]int64{int64(p), next[p]}] = v
			next[p]++
			rs = append(rs, rec("t", p, v))
		}
		c := w.client
		if i%2 == 0 {
			c = zstd
		}
		check(t, c.ProduceSync(w.ctx, rs...).FirstErr())
	}
	s := w.source(w.table("t", idOnly, "scan.bounded.mode", scanrange.Latest))
	for _, rows := range []int{1, 10, 1000} {
		seen := 0
		r := w.open(s, nil)
		_, err := r.collect(-1, rows, 4096, func(b *batch.Batch) {
			type ask struct {
				split  int32
				offset int64
			}
			var asks []ask
			for _, run := range b.Runs {
				for _, n := range b.Notes[run.FirstNote : run.FirstNote+run.Notes] {
					asks = append(asks, ask{run.Partition, n.Offset})
				}
			}
			seen += len(asks)
			rng.Shuffle(len(asks), func(i, k int) { asks[i], asks[k] = asks[k], asks[i] })
			// All of a batch are held at once, as letters are.
			raws := make([]connector.RawRecord, len(asks))
			for i, a := range asks {
				var ok bool
				if raws[i], ok = r.Raw(a.split, a.offset); !ok {
					t.Fatalf("seed %d: no record at %d of split %d", seed, a.offset, a.split)
				}
			}
			for i, a := range asks {
				want := values[[2]int64{int64(a.split), a.offset}]
				if x := raws[i]; string(x.Value) != want || string(x.Key) != "key" || x.TimestampMillis != 1000 || len(x.Headers) != 1 || string(x.Headers[0].Value) != want {
					t.Fatalf("seed %d: record %d of split %d is %q %q %v, want %q", seed, a.offset, a.split, x.Key, x.Value, x.Headers, want)
				}
			}
			if _, ok := r.Raw(7, 0); ok {
				t.Fatal("a record of a split that is not there")
			}
			if _, ok := r.Raw(b.Runs[0].Partition, 1<<40); ok {
				t.Fatal("a record that is not there")
			}
		})
		check(t, err)
		if seen != len(values) {
			t.Errorf("%d notes of %d", seen, len(values))
		}
	}
}

// Aborted records are never seen, open ones not yet; the end is reached though
// the last offsets are markers.
func TestTransactions(t *testing.T) {
	w := newWorld(t)
	w.topic("t", 1, nil)
	txn, _ := w.dial(kgo.TransactionalID("x"))
	write := func(commit kgo.TransactionEndTry, values ...string) {
		t.Helper()
		check(t, txn.BeginTransaction())
		for _, v := range values {
			check(t, txn.ProduceSync(w.ctx, rec("t", 0, v)).FirstErr())
		}
		check(t, txn.EndTransaction(w.ctx, commit))
	}
	w.put("t", 0, `{"id":1}`)
	write(kgo.TryCommit, `{"id":2}`, `{"id":3}`)
	write(kgo.TryAbort, `{"id":-4}`, `{"id":-5}`)
	w.put("t", 0, `{"id":6}`)
	write(kgo.TryCommit, `{"id":7}`)
	write(kgo.TryAbort, `{"id":-8}`)
	want := got{0: {"0:1", "1:2", "2:3", "7:6", "8:7"}}
	s := w.source(w.table("t", idOnly, "scan.bounded.mode", scanrange.Latest))
	for _, rows := range []int{1, 100} {
		r := w.open(s, nil)
		have, err := r.collect(-1, rows, 1<<20, nil)
		check(t, err)
		if !reflect.DeepEqual(have, want) || r.splits[0].next != 12 {
			t.Errorf("read %v up to %d, want %v up to 12", have, r.splits[0].next, want)
		}
	}
	// In the middle of an aborted transaction.
	r := w.openAt(s, nil, connector.Split{From: connector.Position{Partition: connector.Partition{TopicID: s.id, Topic: "t"}, Offset: 5, LeaderEpoch: -1}, End: 12})
	have, err := r.collect(-1, 100, 1<<20, nil)
	check(t, err)
	if want := (got{0: {"7:6", "8:7"}}); !reflect.DeepEqual(have, want) {
		t.Errorf("from 5: %v", have)
	}

	check(t, txn.BeginTransaction())
	check(t, txn.ProduceSync(w.ctx, rec("t", 0, `{"id":9}`)).FirstErr())
	w.put("t", 0, `{"id":10}`)
	have, err = w.open(s, nil).collect(-1, 100, 1<<20, nil)
	check(t, err)
	if !reflect.DeepEqual(have, want) {
		t.Errorf("with an open transaction: %v, want %v", have, want)
	}
	live := w.open(w.source(w.table("t", idOnly)), nil)
	if _, err := live.collect(len(want[0]), 100, 1<<20, nil); err != nil {
		t.Fatal(err)
	}
	check(t, txn.EndTransaction(w.ctx, kgo.TryCommit))
	have, err = live.collect(2, 100, 1<<20, nil)
	check(t, err)
	if !reflect.DeepEqual(have, got{0: {"12:9", "13:10"}}) {
		t.Errorf("after the commit: %v", have)
	}
}

func TestBoundedReadsEnd(t *testing.T) {
	w := newWorld(t)
	w.topic("t", 3, nil)
	w.put("t", 0, `{"id":0}`, `{"id":1}`, `{"id":2}`, `{"id":3}`)
	w.put("t", 1, `{"id":10}`)
	s := w.source(w.table("t", idOnly, "scan.bounded.mode", scanrange.Specific, "scan.bounded.specific-offsets", "partition:0,offset:2"))
	for _, rows := range []int{1, 2, 100} {
		r := w.open(s, nil)
		have, err := r.collect(-1, rows, 1<<20, nil)
		check(t, err)
		if want := (got{0: {"0:0", "1:1"}, 1: {"0:10"}}); !reflect.DeepEqual(have, want) {
			t.Errorf("read %v, want %v", have, want)
		}
		var b batch.Batch
		for range 2 {
			if err := r.Next(w.ctx, &b, rows, 100); !errors.Is(err, io.EOF) {
				t.Errorf("after the end: %v", err)
			}
		}
	}
}

// Writers, moving leaders and a reader that waits for notify alone: nothing is
// missed, nothing comes twice.
func TestNotifyIsNeverLost(t *testing.T) {
	w := newWorld(t)
	const partitions, each = 4, 100
	w.topic("t", partitions, nil)
	var writers sync.WaitGroup
	writers.Go(func() {
		for i := range each {
			for p := range int32(partitions) {
				if err := w.client.ProduceSync(w.ctx, rec("t", p, fmt.Sprintf(`{"id":%d}`, i))).FirstErr(); err != nil {
					t.Error(err)
					return
				}
			}
			if i%20 == 10 {
				w.cluster.ShufflePartitionLeaders()
			}
		}
	})
	r := w.open(w.source(w.table("t", idOnly)), nil)
	have, err := r.collect(partitions*each, 10, 1000, nil)
	writers.Wait()
	check(t, err)
	for p := range int32(partitions) {
		if len(have[p]) != each {
			t.Errorf("partition %d: %d rows of %d", p, len(have[p]), each)
		}
		for i, x := range have[p] {
			if x != fmt.Sprintf("%d:%d", i, i) {
				t.Fatalf("partition %d: %q where %d was due", p, x, i)
			}
		}
	}
}
