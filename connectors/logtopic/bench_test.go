package logtopic

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// smallEvents are the shipped events of at most 1,090 bytes, 759 in the mean:
// the workload that the throughput figures are about.
func smallEvents(tb testing.TB) (events [][]byte, size int64) {
	tb.Helper()
	packed, err := os.ReadFile("../../examples/github-events/data/events.ndjson.zst")
	check(tb, err)
	z, err := zstd.NewReader(nil)
	check(tb, err)
	defer z.Close()
	raw, err := z.DecodeAll(packed, nil)
	check(tb, err)
	for _, e := range bytes.Split(bytes.TrimSpace(raw), []byte("\n")) {
		if len(e) <= 1090 {
			events = append(events, e)
			size += int64(len(e))
		}
	}
	return events, size
}

func eventColumns() []connector.Column {
	str, big, in := types.NewString(), types.NewBigInt(), types.NewInt()
	return append(columns(field("id", big), field("type", str),
		field("actor", types.NewRow(field("id", big), field("login", str))),
		field("repo", types.NewRow(field("id", big), field("name", str))),
		field("payload", types.NewRow(field("size", in), field("distinct_size", in), field("ref", str), field("action", str))),
		field("public", types.NewBoolean()), field("created_at", types.NewTimestampLTZ(3))),
		connector.Column{Field: field("o", types.NewBigInt()), Metadata: "offset", Virtual: true},
		connector.Column{Field: field("ts", types.NewTimestampLTZ(3)), Metadata: "timestamp", Virtual: true})
}

const isoTimes = "json.timestamp-format.standard"

// eventTopic holds the events times times, 500 to a batch.
func eventTopic(tb testing.TB, w *logWorld, events [][]byte, times int, codec record.Codec) {
	p := w.topic("events", 1, nil).Partitions[0]
	b := record.Builder{Codec: codec}
	flush := func() {
		raw, err := b.Build()
		check(tb, err)
		w.raw(p, raw)
		b.Reset()
	}
	for range times {
		for _, e := range events {
			check(tb, b.Append(1_600_000_000_000, nil, e, nil))
			if b.Count() == 500 {
				flush()
			}
		}
	}
	if b.Count() > 0 {
		flush()
	}
}

func roomy(o *topiclog.Options) {
	o.CacheBytes, o.JournalFileBytes, o.JournalMaxBytes, o.PoisonReleased = 256<<20, 0, 0, false
}

// BenchmarkTopicToBatch reads small GitHub events into 12 columns, beside the
// decoder alone on the same bytes in memory.
func BenchmarkTopicToBatch(b *testing.B) {
	events, size := smallEvents(b)
	const times = 40
	run := func(name string, codec record.Codec, where string, columns []int) {
		b.Run(name, func(b *testing.B) {
			w := openWorld(b, vfs.NewOS(), func(o *topiclog.Options) { roomy(o); o.Dir = b.TempDir() })
			eventTopic(b, w, events, times, codec)
			if where == "segments" {
				check(b, w.store.Flush(ctx))
			}
			s := w.source(w.table("events", eventColumns(), isoTimes, "ISO-8601"))
			bt := new(batch.Batch)
			b.SetBytes(size * times)
			b.ReportAllocs()
			for b.Loop() {
				r := w.open(s, columns, nil)
				rows := 0
				for {
					err := r.Next(ctx, bt, 4096, 256<<10)
					if errors.Is(err, connector.ErrNoData) {
						break
					}
					check(b, err)
					rows += bt.Len
				}
				if rows != len(events)*times {
					b.Fatalf("%d rows", rows)
				}
				check(b, r.Close())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)*times), "ns/row")
		})
	}
	physical := []int{0, 1, 2, 3, 4, 5, 6}
	b.Run("decoder-alone", func(b *testing.B) {
		var fields []types.Field
		for _, c := range eventColumns()[:7] {
			fields = append(fields, c.Field)
		}
		d, err := jsonfmt.Format{}.NewDecoder(format.DecoderConfig{Fields: fields, Options: format.FromMap(map[string]string{isoTimes: "ISO-8601"})})
		check(b, err)
		a, bt, schema := format.NewAppender(), new(batch.Batch), &batch.Schema{Fields: fields}
		b.SetBytes(size * times)
		b.ReportAllocs()
		for b.Loop() {
			for range times {
				a.Begin(bt, schema)
				a.BeginRun(0, 0)
				for i, e := range events {
					d.Decode(e, int64(i), a)
				}
				a.EndRun(int64(len(events)), 0)
				a.Finish()
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)*times), "ns/row")
	})
	run("cache", record.None, "cache", physical)
	run("segments", record.None, "segments", physical)
	run("segments-zstd", record.Zstd, "segments", physical)
	run("cache-offset-timestamp", record.None, "cache", nil)
}

// BenchmarkBatchToTopic writes rows of the acceptance suite, fsync included.
func BenchmarkBatchToTopic(b *testing.B) {
	w := openWorld(b, vfs.NewOS(), func(o *topiclog.Options) { roomy(o); o.Dir = b.TempDir() })
	w.topic("out", 1, nil)
	s := w.sink(w.sinkTable("out"), 1)
	wr := w.writer(s, 1)
	rows := conntest.Rows(0, 8192)
	var ids []connector.BucketID
	n := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		ids, _ = wr.Buckets(rows, nil, ids[:0])
		check(b, wr.Write(rows, nil, ids[0]))
		n++
		as := seal(b, wr, n)
		check(b, s.Publish(ctx, as)...)
		check(b, s.Settled(ctx, artifactID(1, n+1)))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*8192), "ns/row")
}

// Nothing is allocated for a row; a fetch and a batch may cost a few objects.
func TestReadingAllocatesNothingPerRow(t *testing.T) {
	events, _ := smallEvents(t)
	for _, codec := range []record.Codec{record.None, record.Zstd} {
		w := openWorld(t, vfs.NewMem(), roomy)
		eventTopic(t, w, events, 10, codec)
		s := w.source(w.table("events", eventColumns(), isoTimes, "ISO-8601"))
		bt := new(batch.Batch)
		read := func() (rows, batches int) {
			r := w.open(s, nil, nil)
			defer r.Close()
			for {
				err := r.Next(ctx, bt, 1000, 256<<10)
				if errors.Is(err, connector.ErrNoData) {
					return rows, batches
				}
				check(t, err)
				rows += bt.Len
				batches++
			}
		}
		rows, batches := read() // grows the columns
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		read()
		runtime.ReadMemStats(&after)
		perBatch := float64(after.Mallocs-before.Mallocs) / float64(batches)
		if rows != len(events)*10 || perBatch > 40 {
			t.Errorf("%s: %d rows in %d batches, %.1f objects a batch", codec, rows, batches, perBatch)
		}
		t.Log(fmt.Sprintf("%s: %d rows in %d batches, %.1f objects a batch, opening included", codec, rows, batches, perBatch))
	}
}
