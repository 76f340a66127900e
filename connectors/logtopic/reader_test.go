package logtopic

import (
	"bytes"
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

	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

var codecs = []record.Codec{record.None, record.Gzip, record.Snappy, record.LZ4, record.Zstd}

var idOnly = columns(field("id", types.NewBigInt()))

// fill writes batches of random sizes and codecs and says what is to be read.
func fill(w *logWorld, tp topiclog.Topic, rng *rand.Rand, batches int) got {
	want := got{}
	id := 0
	for range batches {
		p := rng.IntN(len(tp.Partitions))
		var values []string
		next := int64(len(want[int32(p)]))
		for range 1 + rng.IntN(40) {
			id++
			values = append(values, fmt.Sprintf(`{"id":%d,"pad":"%s"}`, id, strings.Repeat("x", rng.IntN(60))))
			want[int32(p)] = append(want[int32(p)], fmt.Sprintf("%d:%d", next, id))
			next++
		}
		w.put(tp.Partitions[p], codecs[rng.IntN(len(codecs))], values...)
	}
	return want
}

func TestReadsEverythingOnce(t *testing.T) {
	const seed = 11
	for _, fsys := range []vfs.FS{vfs.NewMem(), nil} {
		if fsys == nil {
			fsys = vfs.NewOS()
		}
		dir := t.TempDir()
		w := openWorld(t, fsys, func(o *topiclog.Options) { o.Dir, o.Shards = dir+"/log", 2 })
		tp := w.topic("t", 3, nil)
		rng := rand.New(rand.NewPCG(seed, 1))
		want := fill(w, tp, rng, 60)
		for _, where := range []string{"cache", "segments", "both"} {
			for _, size := range []struct{ rows, bytes int }{{1, 1 << 20}, {7, 1 << 20}, {1000, 300}, {1000, 1}, {1 << 20, 1 << 20}} {
				r := w.open(w.source(w.table("t", idOnly)), nil, nil)
				have, err := collect(t, r, size.rows, size.bytes, func(b *batch.Batch) {
					if b.Len > size.rows {
						t.Fatalf("%d rows of at most %d", b.Len, size.rows)
					}
					if len(r.held) > len(b.Runs)+1 {
						t.Fatalf("%d leases for %d runs", len(r.held), len(b.Runs))
					}
				})
				check(t, err)
				if !reflect.DeepEqual(have, want) {
					t.Fatalf("seed %d, %s, %+v: read %v\nwant %v", seed, where, size, have, want)
				}
				if len(r.held) != 0 || r.cur.Lease != nil {
					t.Errorf("%d leases are held after everything was read", len(r.held))
				}
				check(t, r.Close())
			}
			check(t, w.store.Flush(ctx))
			if where == "segments" {
				for p, more := range fill2(w, tp, want, rng) {
					want[p] = append(want[p], more...)
				}
			}
		}
	}
}

func fill2(w *logWorld, tp topiclog.Topic, have got, rng *rand.Rand) got {
	more := got{}
	for i, p := range tp.Partitions {
		n := int64(len(have[int32(i)]))
		w.put(p, codecs[rng.IntN(len(codecs))], `{"id":-1}`, `{"id":-2}`)
		more[int32(i)] = []string{fmt.Sprintf("%d:-1", n), fmt.Sprintf("%d:-2", n+1)}
	}
	return more
}

// A record may give several rows, none, or be no JSON at all; its offset counts
// once.
func TestRecordsOfSeveralRows(t *testing.T) {
	w := newWorld(t)
	p := w.topic("t", 1, nil).Partitions[0]
	for _, codec := range []record.Codec{record.None, record.Zstd} {
		w.put(p, codec, `{"id":1}`, "{\"id\":2}\n{\"id\":3}\n{\"id\":4}", `[{"id":5},{"id":6}]`, `[]`, `NULL`, ``, `{"id":`, `[{"id":7},8]`, "\xef\xbb\xbf{\"id\":9}", `{"id":"x"}`)
	}
	one := func(base int64) []string {
		var out []string
		for _, s := range []string{"0:1", "1:2", "1+1:3", "1+2:4", "2:5", "2+1:6", "3:empty", "4:empty", "5:empty",
			"6:malformed_record", "7:malformed_record", "8:9", "9:!type_mismatch"} {
			var o int64
			fmt.Sscan(s[:1], &o)
			out = append(out, fmt.Sprint(o+base)+s[1:])
		}
		return out
	}
	want := got{0: append(one(0), one(10)...)}
	for _, rows := range []int{1, 2, 3, 100} {
		have, err := collect(t, w.open(w.source(w.table("t", idOnly)), nil, nil), rows, 1<<20, nil)
		check(t, err)
		if !reflect.DeepEqual(have, want) {
			t.Errorf("%d rows at a time: %v\nwant %v", rows, have, want)
		}
	}
}

func TestMetadataAndProjection(t *testing.T) {
	w := newWorld(t)
	tp := w.topic("t", 2, nil)
	b := record.Builder{}
	check(t, b.Append(1_700_000_000_123, []byte("k"), []byte(`{"id":1,"name":"a"}`), []record.RecordHeader{
		{Key: []byte("a"), Value: []byte("1")}, {Key: []byte("b")}, {Key: []byte("a"), Value: []byte("2")}}))
	check(t, b.Append(-1, nil, []byte(`{"id":2,"name":"b"} {"id":3,"name":"c"}`), nil))
	check(t, b.Append(1<<62, nil, []byte(`{"id":4}`), nil))
	raw, err := b.Build()
	check(t, err)
	w.raw(tp.Partitions[1], raw)
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
	table := w.table("t", cols)
	table.Zone = shanghai
	read := func(columns []int) []string {
		have, err := collect(t, w.open(w.source(table), columns, nil), 100, 1<<20, nil)
		check(t, err)
		return have[1]
	}
	want := []string{
		"0:1,1,0,1700000000123000,a,1700028800123000000,CreateTime,0,{b=NULL;a=2;},t",
		"1:1,2,1,-1000,b,28799999000000,CreateTime,0,{},t",
		"1+1:1,3,1,-1000,c,28799999000000,CreateTime,0,{},t",
		"2:1,4,2,!timestamp_range,NULL,!timestamp_range,CreateTime,0,{},t",
	}
	if have := read(nil); !slices.Equal(have, want) {
		t.Errorf("read  %q\nwant %q", have, want)
	}
	if have, want := read([]int{9, 4, 0}), []string{"0:t,a,1", "1:t,b,1", "1+1:t,c,1", "2:t,NULL,1"}; !slices.Equal(have, want) {
		t.Errorf("projected: %q, want %q", have, want)
	}
	// What is not selected is checked all the same.
	w.put(tp.Partitions[1], record.None, `{"id":5,"name":"x"`)
	if have, want := read([]int{}), []string{"0:", "1:", "1+1:", "2:", "3:malformed_record"}; !slices.Equal(have, want) {
		t.Errorf("without columns: %q, want %q", have, want)
	}
	for _, bad := range []connector.Column{
		meta("x", "partition", types.NewString()), meta("x", "timestamp", types.NewBigInt()), meta("x", "offset", types.NewInt()),
		meta("x", "headers", types.NewMap(types.NewString(), types.NewString())), meta("x", "timestamp", types.NewTimestampLTZ(0)),
	} {
		if _, err := w.conn.OpenSource(ctx, w.table("t", []connector.Column{bad})); err == nil || !strings.Contains(err.Error(), "column x") {
			t.Errorf("metadata %s as %s: %v", bad.Metadata, bad.Type, err)
		}
	}
}

// Every record of the last batch can be asked for, in any order, also when its
// lease is only partly decoded.
func TestRaw(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 2))
	w := newWorld(t)
	tp := w.topic("t", 3, nil)
	values := map[[2]int64]string{}
	for i := range 40 {
		p := rng.IntN(3)
		var vs []string
		for k := range 1 + rng.IntN(30) {
			vs = append(vs, fmt.Sprintf(`{"id":"bad %d %d"`, i, k))
		}
		base := w.put(tp.Partitions[p], codecs[rng.IntN(len(codecs))], vs...)
		for k, v := range vs {
			values[[2]int64{int64(p), base + int64(k)}] = v
		}
	}
	for _, rows := range []int{1, 10, 64, 1000} {
		seen := 0
		r := w.open(w.source(w.table("t", idOnly)), nil, nil)
		_, err := collect(t, r, rows, 4096, func(b *batch.Batch) {
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
			for _, order := range []string{"up", "down", "shuffled"} {
				switch order {
				case "down":
					slices.Reverse(asks)
				case "shuffled":
					rng.Shuffle(len(asks), func(i, k int) { asks[i], asks[k] = asks[k], asks[i] })
				}
				// All of a batch are held at once, as letters are.
				raws := make([]connector.RawRecord, len(asks))
				for i, a := range asks {
					var ok bool
					if raws[i], ok = r.Raw(a.split, a.offset); !ok {
						t.Fatalf("seed %d: no record at %d of split %d (%s)", seed, a.offset, a.split, order)
					}
				}
				for i, a := range asks {
					want := values[[2]int64{int64(a.split), a.offset}]
					if x := raws[i]; string(x.Value) != want || string(x.Key) != "key" || len(x.Headers) != 1 || string(x.Headers[0].Value) != want {
						t.Fatalf("seed %d: record %d of split %d is %q %q %v, want %q", seed, a.offset, a.split, x.Key, x.Value, x.Headers, want)
					}
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

// A batch that its producer broke is one malformed record and costs no other.
func TestBatchThatCannotBeUnpacked(t *testing.T) {
	w := newWorld(t)
	p := w.topic("t", 1, nil).Partitions[0]
	broken := func(codec record.Codec, change func(body []byte)) []byte {
		b := record.Builder{Codec: codec}
		for i := range 5 {
			check(t, b.Append(0, nil, []byte(fmt.Sprintf(`{"id":%d,"pad":"%s"}`, i, strings.Repeat("z", 100))), nil))
		}
		raw, err := b.Build()
		check(t, err)
		raw = bytes.Clone(raw)
		change(raw[record.HeaderSize:])
		crc := record.Checksum(raw[21:])
		raw[17], raw[18], raw[19], raw[20] = byte(crc>>24), byte(crc>>16), byte(crc>>8), byte(crc)
		return raw
	}
	w.put(p, record.None, `{"id":1}`)
	w.raw(p, broken(record.Zstd, func(b []byte) { b[0] ^= 0xff })) // 1 to 5
	w.put(p, record.None, `{"id":6}`)
	half := broken(record.None, func(b []byte) {
		// The third record's length.
		at := bytes.Index(b, []byte(`{"id":2`))
		b[at-8] ^= 0x40
	}) // 7 to 11
	w.raw(p, half)
	w.put(p, record.None, `{"id":12}`)
	want := got{0: {"0:1", "1:malformed_record", "6:6", "7:0", "8:1", "9:malformed_record", "12:12"}}
	for _, rows := range []int{1, 100} {
		r := w.open(w.source(w.table("t", idOnly)), nil, nil)
		have, err := collect(t, r, rows, 1<<20, func(b *batch.Batch) {
			for _, n := range b.Notes {
				// The letter keeps what there is: the batch, which any Kafka
				// tool can look at.
				x, ok := r.Raw(0, n.Offset)
				if !ok || len(x.Value) < record.HeaderSize {
					t.Errorf("nothing for the letter of %d", n.Offset)
					continue
				}
				h, err := record.ParseHeader(x.Value)
				check(t, err)
				if n.Offset < h.BaseOffset || n.Offset > h.LastOffset() || h.Size() != len(x.Value) {
					t.Errorf("the letter of %d has the batch at %d", n.Offset, h.BaseOffset)
				}
			}
		})
		check(t, err)
		if !reflect.DeepEqual(have, want) {
			t.Errorf("%d rows at a time: %v\nwant %v", rows, have, want)
		}
	}
	// Within a bounded range it is there only if it begins in it.
	have, err := collect(t, w.open(w.source(w.table("t", idOnly, "scan.bounded.mode", scanrange.Specific, "scan.bounded.specific-offsets", "partition:0,offset:4")), nil, nil), 100, 1<<20, nil)
	check(t, err)
	if want := (got{0: {"0:1", "1:malformed_record"}}); !reflect.DeepEqual(have, want) {
		t.Errorf("up to 4: %v", have)
	}
}

// One busy partition does not keep 200 quiet ones waiting.
func TestFairness(t *testing.T) {
	w := newWorld(t)
	const quiet = 200
	tp := w.topic("t", quiet+1, nil)
	pad := strings.Repeat("x", 500)
	for range 40 {
		var vs []string
		for range 50 {
			vs = append(vs, `{"id":0,"pad":"`+pad+`"}`)
		}
		w.put(tp.Partitions[0], record.None, vs...)
	}
	for i := range quiet {
		w.put(tp.Partitions[i+1], record.None, `{"id":1}`)
	}
	r := w.open(w.source(w.table("t", idOnly)), nil, nil)
	var b batch.Batch
	seen := map[int32]bool{}
	for n := 1; len(seen) < quiet+1; n++ {
		check(t, r.Next(ctx, &b, 1000, 64<<10))
		for _, run := range b.Runs {
			seen[run.Partition] = true
		}
		if n > 4 {
			t.Fatalf("after %d batches %d of %d partitions were read", n, len(seen), quiet+1)
		}
	}
}

// Writers and a reader that waits for notify alone: nothing is missed.
func TestNotifyIsNeverLost(t *testing.T) {
	w := openWorld(t, vfs.NewMem(), func(o *topiclog.Options) {
		o.Shards = 2
		o.GroupDelay = time.Microsecond
		o.SyncInterval = time.Millisecond
	})
	tps := []topiclog.Topic{w.topic("t", 4, nil), w.topic("o", 4, map[string]string{"millrace.durability": "os"})}
	const each = 200
	var writers sync.WaitGroup
	for _, tp := range tps {
		for _, p := range tp.Partitions {
			writers.Go(func() {
				for i := range each {
					b := record.Builder{}
					_ = b.Append(0, nil, []byte(fmt.Sprintf(`{"id":%d}`, i)), nil)
					raw, _ := b.Build()
					if _, err := w.store.Append(ctx, topiclog.AppendRequest{Partition: p.ID, Batches: raw, Trusted: true}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	var readers sync.WaitGroup
	for _, tp := range tps {
		wake := make(chan struct{}, 1)
		r := w.open(w.source(w.table(tp.Name, idOnly)), nil, func() {
			select {
			case wake <- struct{}{}:
			default:
			}
		})
		readers.Go(func() {
			next := map[int32]int64{}
			left := each * len(tp.Partitions)
			var b batch.Batch
			for left > 0 {
				err := r.Next(ctx, &b, 10, 1000)
				if errors.Is(err, connector.ErrNoData) {
					select {
					case <-wake:
					case <-time.After(20 * time.Second):
						t.Errorf("topic %s: no notice, %d records are missing", tp.Name, left)
						return
					}
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				for k := range b.Runs {
					run := &b.Runs[k]
					for i := int(run.FirstRow); i < int(run.FirstRow+run.Rows); i++ {
						if b.Cols[0].I64[i] != next[run.Partition] {
							t.Errorf("topic %s: row %d where %d was due", tp.Name, b.Cols[0].I64[i], next[run.Partition])
							return
						}
						next[run.Partition]++
						left--
					}
				}
			}
		})
	}
	writers.Wait()
	readers.Wait()
}

// Positions outlive the process, so an os topic is read to its durable end.
func TestOsTopicsEndAtTheDurableEnd(t *testing.T) {
	w := openWorld(t, vfs.NewMem(), func(o *topiclog.Options) { o.SyncInterval = time.Hour; o.MarkDelay = time.Hour })
	p := w.topic("o", 1, map[string]string{"millrace.durability": "os"}).Partitions[0]
	other := w.topic("f", 1, nil).Partitions[0]
	notified := make(chan struct{}, 10)
	r := w.open(w.source(w.table("o", idOnly)), nil, func() { notified <- struct{}{} })
	var b batch.Batch
	drain := func() {
		for len(notified) > 0 {
			<-notified
		}
	}
	w.put(p, record.None, `{"id":1}`)
	if err := r.Next(ctx, &b, 10, 1000); !errors.Is(err, connector.ErrNoData) || r.LogEnd(0) != 0 {
		t.Fatalf("unsynced records were read: %v, end %d", err, r.LogEnd(0))
	}
	drain()
	w.put(other, record.None, `{"id":2}`) // its fdatasync is that of the whole shard
	<-notified
	check(t, r.Next(ctx, &b, 10, 1000))
	if b.Len != 1 || b.Cols[0].I64[0] != 1 || r.LogEnd(0) != 1 {
		t.Errorf("read %d rows, end %d", b.Len, r.LogEnd(0))
	}
}

func TestBoundedReadsEnd(t *testing.T) {
	w := newWorld(t)
	tp := w.topic("t", 3, nil)
	w.put(tp.Partitions[0], record.Zstd, `{"id":0}`, `{"id":1}`, `{"id":2}`, `{"id":3}`)
	w.put(tp.Partitions[0], record.None, `{"id":4}`)
	w.put(tp.Partitions[1], record.None, `{"id":10}`)
	table := w.table("t", idOnly, "scan.bounded.mode", scanrange.Specific, "scan.bounded.specific-offsets", "partition:0,offset:2")
	for _, rows := range []int{1, 2, 100} {
		r := w.open(w.source(table), nil, nil)
		have, err := collect(t, r, rows, 1<<20, nil)
		check(t, err)
		if want := (got{0: {"0:0", "1:1"}, 1: {"0:10"}}); !reflect.DeepEqual(have, want) {
			t.Errorf("read %v, want %v", have, want)
		}
		var b batch.Batch
		for range 2 {
			if err := r.Next(ctx, &b, rows, 100); !errors.Is(err, io.EOF) {
				t.Errorf("after the end: %v", err)
			}
		}
	}
}

// A reader goes on, or says what is gone; it never starts again by itself.
func TestRecordsGoneWhileReading(t *testing.T) {
	w := newWorld(t)
	p := w.topic("t", 1, nil).Partitions[0]
	for i := range 4 {
		w.put(p, record.None, fmt.Sprintf(`{"id":%d}`, i), fmt.Sprintf(`{"id":-%d}`, i))
	}
	r := w.open(w.source(w.table("t", idOnly)), nil, nil)
	var b batch.Batch
	check(t, r.Next(ctx, &b, 1, 1))
	check(t, r.Next(ctx, &b, 1, 1)) // the first batch, whose lease is done
	_, err := w.store.DeleteRecords(ctx, p.ID, 6)
	check(t, err)
	r.Release()
	var m *connector.MismatchError
	err = r.Next(ctx, &b, 100, 100)
	if !errors.As(err, &m) || m.Position.Offset != 2 || m.Earliest != 6 || m.Lost != 4 || m.Latest != 8 || m.Damaged || m.Recreated {
		t.Errorf("records removed below the reader: %+v (%v)", m, err)
	}
	if err := r.Next(ctx, &b, 100, 100); !errors.As(err, &m) {
		t.Errorf("asked again: %v", err)
	}
	r = w.open(w.source(w.table("t", idOnly)), nil, nil)
	check(t, w.store.DeleteTopic(ctx, "t", false))
	err = r.Next(ctx, &b, 100, 100)
	if !errors.As(err, &m) || !m.Recreated || m.Lost != -1 || !errors.Is(err, topiclog.ErrPartitionNotFound) {
		t.Errorf("topic deleted: %+v (%v)", m, err)
	}
}

// Damaged records stop the reader in front of them, after everything below was
// given, and name the offsets; behind them it goes on.
func TestDamagedRecords(t *testing.T) {
	mem := vfs.NewMem()
	w := openWorld(t, mem, nil)
	p := w.topic("t", 1, nil).Partitions[0]
	for i := range 6 {
		w.put(p, record.None, fmt.Sprintf(`{"id":%d}`, i), fmt.Sprintf(`{"id":1%d,"mark":"here-%d"}`, i, i))
	}
	check(t, w.store.Flush(ctx))
	check(t, w.store.Close())
	flip(t, mem, "here-2", "here-3")
	w = openWorld(t, mem, nil)
	r := w.open(w.source(w.table("t", idOnly)), nil, nil)
	have, err := collect(t, r, 100, 1<<20, nil)
	var m *connector.MismatchError
	if !errors.As(err, &m) || !m.Damaged || m.Position.Offset != 4 || !errors.Is(err, topiclog.ErrCorrupt) {
		t.Fatalf("read %v, then %v", have, err)
	}
	if want := (got{0: {"0:0", "1:10", "2:1", "3:11"}}); !reflect.DeepEqual(have, want) {
		t.Errorf("before the damage: %v", have)
	}
	// The lane stops there; the saved position says the same, and where to go on.
	s := w.source(w.table("t", idOnly))
	at := connector.Position{Partition: m.Position.Partition, LeaderEpoch: r.LeaderEpoch(0), Offset: 4}
	lost := int64(0)
	for {
		errs, err := s.Check(ctx, []connector.Position{at})
		check(t, err)
		if errs[0] == nil {
			break
		}
		if !errors.As(errs[0], &m) || !m.Damaged || m.Earliest <= at.Offset || m.Lost != m.Earliest-at.Offset || m.Latest < m.Earliest {
			t.Fatalf("saved position in front of damage: %v", errs[0])
		}
		lost += m.Lost
		at.Offset = m.Earliest
	}
	if at.Offset != 8 || lost != 4 {
		t.Fatalf("goes on at %d after %d lost offsets, want 8 after 4", at.Offset, lost)
	}
	rest, err := s.Open(ctx, []connector.Split{{From: at, End: connector.Unbounded}}, nil, func() {})
	check(t, err)
	defer rest.Close()
	have, err = collect(t, rest.(*reader), 100, 1<<20, nil)
	check(t, err)
	if want := (got{0: {"8:4", "9:14", "10:5", "11:15"}}); !reflect.DeepEqual(have, want) {
		t.Errorf("behind the damage: %v", have)
	}
}

// flip changes a bit behind each text wherever a file has it.
func flip(t testing.TB, mem *vfs.MemFS, texts ...string) {
	t.Helper()
	var walk func(dir string)
	hits := 0
	walk = func(dir string) {
		names, err := mem.List(dir)
		check(t, err)
		for _, n := range names {
			name := mem.Join(dir, n)
			info, err := mem.Stat(name)
			check(t, err)
			if info.IsDir() {
				walk(name)
				continue
			}
			f, err := mem.OpenReadWrite(name)
			check(t, err)
			data := make([]byte, info.Size())
			_, err = f.ReadAt(data, 0)
			if err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			for _, x := range texts {
				for at := 0; ; {
					k := bytes.Index(data[at:], []byte(x))
					if k < 0 {
						break
					}
					at += k + len(x)
					_, err := f.WriteAt([]byte{data[at-1] ^ 1}, int64(at-1))
					check(t, err)
					hits++
				}
			}
			check(t, f.Close())
		}
	}
	walk("data")
	if hits < len(texts) {
		t.Fatalf("%d places to damage for %d texts", hits, len(texts))
	}
}
