package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors/format/csvfmt"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

func check(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// world is a cluster in this process with the connector in front of it.
type world struct {
	t       testing.TB
	ctx     context.Context
	cluster *kfake.Cluster
	addrs   []string // of real brokers, in place of the cluster
	client  *kgo.Client
	admin   *kadm.Client
	conn    *Connector
}

func newWorld(t testing.TB, opts ...kfake.Opt) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(3)}, opts...)...)
	check(t, err)
	t.Cleanup(c.Close)
	w := &world{t: t, ctx: ctx, cluster: c, conn: New(jsonfmt.Format{}, csvfmt.Format{})}
	w.client, w.admin = w.dial()
	return w
}

func (w *world) brokers() []string {
	if w.cluster == nil {
		return w.addrs
	}
	return w.cluster.ListenAddrs()
}

// dial is a client without any security.
func (w *world) dial(opts ...kgo.Opt) (*kgo.Client, *kadm.Client) {
	w.t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(w.brokers()...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(50 * time.Millisecond)}, opts...)...)
	check(w.t, err)
	w.t.Cleanup(c.Close)
	return c, kadm.NewClient(c)
}

func (w *world) topic(name string, partitions int32, configs map[string]string) {
	w.t.Helper()
	if w.cluster != nil {
		check(w.t, w.cluster.CreateTopic(name, partitions, configs))
		return
	}
	all := map[string]*string{}
	for k, v := range configs {
		all[k] = &v
	}
	_, err := w.admin.CreateTopic(w.ctx, partitions, -1, all, name)
	check(w.t, err)
}

func rec(topic string, partition int32, value string) *kgo.Record {
	r := &kgo.Record{Topic: topic, Partition: partition, Key: []byte("key"), Value: []byte(value), Timestamp: time.UnixMilli(1000),
		Headers: []kgo.RecordHeader{{Key: "h", Value: []byte(value)}}}
	if value == "NULL" {
		r.Value = nil
	}
	return r
}

// put produces one batch.
func (w *world) put(topic string, partition int32, values ...string) {
	w.t.Helper()
	var rs []*kgo.Record
	for _, v := range values {
		rs = append(rs, rec(topic, partition, v))
	}
	check(w.t, w.client.ProduceSync(w.ctx, rs...).FirstErr())
}

func columns(fields ...types.Field) []connector.Column {
	var out []connector.Column
	for _, f := range fields {
		out = append(out, connector.Column{Field: f})
	}
	return out
}

func field(name string, t types.Type) types.Field { return types.Field{Name: name, Type: t} }

var idOnly = columns(field("id", types.NewBigInt()))

func (w *world) options(topic string, with ...string) map[string]string {
	m := map[string]string{"connector": "kafka", "topic": topic, "scan.startup.mode": scanrange.Earliest,
		"properties.bootstrap.servers": strings.Join(w.brokers(), ","),
		"properties.fetch.max.wait.ms": "20", "properties.default.api.timeout.ms": "20000"}
	for i := 0; i < len(with); i += 2 {
		m[with[i]] = with[i+1]
	}
	return m
}

func (w *world) table(topic string, cols []connector.Column, with ...string) *connector.Table {
	w.t.Helper()
	v, errs := w.conn.Spec().Resolve(w.options(topic, with...))
	if len(errs) > 0 {
		w.t.Fatal(errs[0])
	}
	return &connector.Table{Name: "t", Columns: cols, Options: v}
}

func (w *world) source(t *connector.Table) *source {
	w.t.Helper()
	s, err := w.conn.OpenSource(w.ctx, t)
	check(w.t, err)
	w.t.Cleanup(func() { s.Close() })
	s.(*source).patience = 200 * time.Millisecond
	return s.(*source)
}

// several opens a table over a list of topics, or over a pattern.
func (w *world) several(with ...string) *several {
	w.t.Helper()
	m := w.options("", with...)
	if m["topic"] == "" {
		delete(m, "topic")
	}
	v, errs := w.conn.Spec().Resolve(m)
	if len(errs) > 0 {
		w.t.Fatal(errs[0])
	}
	s, err := w.conn.OpenSource(w.ctx, &connector.Table{Name: "t", Columns: idOnly, Options: v})
	check(w.t, err)
	w.t.Cleanup(func() { s.Close() })
	all := s.(*several)
	all.common.patience = 200 * time.Millisecond
	for _, m := range all.byName {
		m.patience = all.common.patience
	}
	return all
}

// feedOf is a reader with what it takes to wait for it.
type feedOf struct {
	*reader
	w    *world
	wake chan struct{}
}

// splits are all partitions by the table's own options.
func (w *world) splits(s connector.Source) []connector.Split {
	w.t.Helper()
	parts, err := s.Partitions(w.ctx)
	check(w.t, err)
	from, err := s.Start(w.ctx, parts)
	check(w.t, err)
	ends, err := s.End(w.ctx, parts)
	check(w.t, err)
	var out []connector.Split
	for i := range parts {
		out = append(out, connector.Split{Number: int32(i), From: from[i], End: ends[i]})
	}
	return out
}

func (w *world) open(s connector.Source, columns []int) *feedOf {
	w.t.Helper()
	return w.openAt(s, columns, w.splits(s)...)
}

func (w *world) openAt(s connector.Source, columns []int, splits ...connector.Split) *feedOf {
	w.t.Helper()
	f := &feedOf{w: w, wake: make(chan struct{}, 1)}
	r, err := s.Open(w.ctx, splits, columns, func() {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	})
	check(w.t, err)
	w.t.Cleanup(func() { r.Close() })
	f.reader = r.(*reader)
	return f
}

// next waits for a batch.
func (f *feedOf) next(b *batch.Batch, maxRows, maxBytes int) error {
	for {
		err := f.Next(f.w.ctx, b, maxRows, maxBytes)
		if !errors.Is(err, connector.ErrNoData) {
			return err
		}
		select {
		case <-f.wake:
		case <-f.w.ctx.Done():
			return fmt.Errorf("no notice: %w", f.w.ctx.Err())
		}
	}
}

// got is a row or a note as text, by split.
type got map[int32][]string

func (g got) rows() int {
	n := 0
	for _, x := range g {
		n += len(x)
	}
	return n
}

// collect reads until the end, or until there are so many rows and notes, and
// checks that runs follow each other without a gap.
func (f *feedOf) collect(rows, maxRows, maxBytes int, each func(b *batch.Batch)) (got, error) {
	f.w.t.Helper()
	out := got{}
	next := map[int32]int64{}
	for number, sp := range f.splits {
		next[number] = sp.next
	}
	for rows < 0 || out.rows() < rows {
		b := new(batch.Batch)
		if err := f.next(b, maxRows, maxBytes); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return out, err
		}
		if each != nil {
			each(b)
		}
		f.Release() // the batch stays valid
		for k := range b.Runs {
			run := &b.Runs[k]
			if run.BaseOffset != next[run.Partition] || run.EndOffset <= run.BaseOffset {
				f.w.t.Fatalf("split %d: a run from %d to %d after %d", run.Partition, run.BaseOffset, run.EndOffset, next[run.Partition])
			}
			next[run.Partition] = run.EndOffset
			out[run.Partition] = append(out[run.Partition], runText(b, run)...)
		}
	}
	return out, nil
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
