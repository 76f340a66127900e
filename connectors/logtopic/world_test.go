package logtopic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/millrace/millrace/connectors/format/csvfmt"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/client"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

var ctx = context.Background()

func check(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// logWorld is a store with the connector in front of it. Released memory is
// overwritten, so that what is used afterwards is not right by luck.
type logWorld struct {
	t     testing.TB
	fs    vfs.FS
	opts  topiclog.Options
	store *topiclog.Store
	conn  *Connector
}

func openWorld(t testing.TB, fsys vfs.FS, change func(*topiclog.Options)) *logWorld {
	t.Helper()
	o := topiclog.Options{FS: fsys, Dir: "data", Shards: 1, CacheBytes: 1 << 20, JournalFileBytes: 64 << 10, JournalMaxBytes: 1 << 20,
		ReserveBytes: -1, RetentionInterval: -1, PoisonReleased: true}
	if change != nil {
		change(&o)
	}
	store, err := topiclog.Open(o)
	check(t, err)
	w := &logWorld{t: t, fs: fsys, opts: o, store: store, conn: New(client.New(store), jsonfmt.Format{}, csvfmt.Format{})}
	t.Cleanup(func() { store.Close() })
	return w
}

func newWorld(t testing.TB) *logWorld { return openWorld(t, vfs.NewMem(), nil) }

func (w *logWorld) topic(name string, partitions int, config map[string]string) topiclog.Topic {
	w.t.Helper()
	t, err := w.store.CreateTopic(ctx, topiclog.TopicSpec{Name: name, Partitions: partitions, Config: config})
	check(w.t, err)
	return t
}

// put appends one batch and returns its first offset.
func (w *logWorld) put(p topiclog.Partition, codec record.Codec, values ...string) int64 {
	w.t.Helper()
	b := record.Builder{Codec: codec}
	for i, v := range values {
		value := []byte(v)
		if v == "NULL" {
			value = nil
		}
		check(w.t, b.Append(int64(1000+i), []byte("key"), value, []record.RecordHeader{{Key: []byte("h"), Value: []byte(v)}}))
	}
	raw, err := b.Build()
	check(w.t, err)
	return w.raw(p, raw)
}

func (w *logWorld) raw(p topiclog.Partition, raw []byte) int64 {
	w.t.Helper()
	res, err := w.store.Append(ctx, topiclog.AppendRequest{Partition: p.ID, Batches: raw})
	check(w.t, err)
	return res.BaseOffset
}

func columns(fields ...types.Field) []connector.Column {
	var out []connector.Column
	for _, f := range fields {
		out = append(out, connector.Column{Field: f})
	}
	return out
}

func field(name string, t types.Type) types.Field { return types.Field{Name: name, Type: t} }

func (w *logWorld) table(topic string, cols []connector.Column, with ...string) *connector.Table {
	w.t.Helper()
	m := map[string]string{"connector": "log", "topic": topic, "scan.startup.mode": scanrange.Earliest}
	for i := 0; i < len(with); i += 2 {
		m[with[i]] = with[i+1]
	}
	v, errs := w.conn.Spec().Resolve(m)
	if len(errs) > 0 {
		w.t.Fatal(errs[0])
	}
	return &connector.Table{Name: "t", Columns: cols, Options: v}
}

func (w *logWorld) source(t *connector.Table) connector.Source {
	w.t.Helper()
	s, err := w.conn.OpenSource(ctx, t)
	check(w.t, err)
	return s
}

// open opens a reader over all partitions by the table's own options.
func (w *logWorld) open(s connector.Source, columns []int, notify func()) *reader {
	w.t.Helper()
	parts, err := s.Partitions(ctx)
	check(w.t, err)
	from, err := s.Start(ctx, parts)
	check(w.t, err)
	ends, err := s.End(ctx, parts)
	check(w.t, err)
	var splits []connector.Split
	for i := range parts {
		splits = append(splits, connector.Split{Number: int32(i), From: from[i], End: ends[i]})
	}
	if notify == nil {
		notify = func() {}
	}
	r, err := s.Open(ctx, splits, columns, notify)
	check(w.t, err)
	w.t.Cleanup(func() { r.Close() })
	return r.(*reader)
}

// got is a row or a note as text, by split.
type got map[int32][]string

// collect reads until there is nothing, and checks that runs follow each other
// without a gap.
func collect(t testing.TB, r *reader, maxRows, maxBytes int, each func(b *batch.Batch)) (got, error) {
	t.Helper()
	out := got{}
	next := map[int32]int64{}
	for number, sp := range r.splits {
		next[number] = sp.next
	}
	for {
		b := new(batch.Batch)
		err := r.Next(ctx, b, maxRows, maxBytes)
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, connector.ErrNoData) {
				err = nil
			}
			return out, err
		}
		if each != nil {
			each(b)
		}
		r.Release() // the batch stays valid
		for k := range b.Runs {
			run := &b.Runs[k]
			if run.BaseOffset != next[run.Partition] || run.EndOffset <= run.BaseOffset {
				t.Fatalf("split %d: a run from %d to %d after %d", run.Partition, run.BaseOffset, run.EndOffset, next[run.Partition])
			}
			next[run.Partition] = run.EndOffset
			out[run.Partition] = append(out[run.Partition], runText(b, run)...)
		}
	}
}

func runText(b *batch.Batch, run *batch.Run) []string {
	var out []string
	note := run.FirstNote
	notes := func(below int64) {
		for ; note < run.FirstNote+run.Notes && b.Notes[note].Offset < below; note++ {
			out = append(out, fmt.Sprintf("%d:%s", b.Notes[note].Offset, b.Notes[note].Code))
		}
	}
	for i := int(run.FirstRow); i < int(run.FirstRow+run.Rows); i++ {
		notes(b.Offset(run, i))
		s := fmt.Sprint(b.Offset(run, i))
		if b.Index(i) > 0 {
			s += fmt.Sprintf("+%d", b.Index(i))
		}
		s += ":"
		for c := range b.Cols {
			if c > 0 {
				s += ","
			}
			s += cellText(&b.Cols[c], i)
		}
		out = append(out, s)
	}
	notes(run.EndOffset)
	return out
}

func cellText(v *batch.Vec, i int) string {
	if e := v.Err(i); e != nil {
		return "!" + string(e.Code)
	}
	if v.IsNull(i) {
		return "NULL"
	}
	switch v.Type.Physical() {
	case types.PhysInt64:
		return fmt.Sprint(v.I64[i])
	case types.PhysInt32:
		return fmt.Sprint(v.I32[i])
	case types.PhysBytes:
		return string(v.Data[v.Offsets[i]:v.Offsets[i+1]])
	case types.PhysMap:
		s := "{"
		for k := int(v.Offsets[i]); k < int(v.Offsets[i+1]); k++ {
			s += cellText(v.Children[0], k) + "=" + cellText(v.Children[1], k) + ";"
		}
		return s + "}"
	}
	return "?"
}
