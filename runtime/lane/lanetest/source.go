package lanetest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// SourceOptions configure a source.
type SourceOptions struct {
	// Bounded: reading ends at the present end.
	Bounded bool
	// Latest: a partition without a position starts at its end.
	Latest bool
	// MaxRecords bounds a batch; 0: as asked for. With Random a batch has 1 to
	// MaxRecords records.
	MaxRecords int
	Random     *rand.Rand
	// OnError is what DecodeErrors says; decode errors are those with
	// batch.CodeTypeMismatch.
	OnError connector.OnError
}

// Source reads a topic in a process.
type Source struct {
	p     *Process
	topic *Topic
	o     SourceOptions
	mu    sync.Mutex // of Random
}

// Source gives a source of a topic.
func (p *Process) Source(t *Topic, o SourceOptions) *Source { return &Source{p: p, topic: t, o: o} }

// DecodeErrors implements connector.DecodePolicy.
func (s *Source) DecodeErrors() (connector.OnError, func(string) bool) {
	return s.o.OnError, func(c string) bool { return c == string(batch.CodeTypeMismatch) }
}

// Partitions implements connector.Source.
func (s *Source) Partitions(context.Context) ([]connector.Partition, error) {
	return s.topic.Partitions(), nil
}

// Start implements connector.Source.
func (s *Source) Start(_ context.Context, parts []connector.Partition) ([]connector.Position, error) {
	s.topic.mu.Lock()
	defer s.topic.mu.Unlock()
	out := make([]connector.Position, len(parts))
	for i, p := range parts {
		log := &s.topic.parts[p.ID]
		out[i] = connector.Position{Partition: p, Offset: log.start}
		if s.o.Latest {
			out[i].Offset = log.end()
		}
	}
	return out, nil
}

// End implements connector.Source.
func (s *Source) End(_ context.Context, parts []connector.Partition) ([]int64, error) {
	out := make([]int64, len(parts))
	for i, p := range parts {
		out[i] = connector.Unbounded
		if s.o.Bounded {
			out[i] = s.topic.End(int(p.ID))
		}
	}
	return out, nil
}

// Check implements connector.Source.
func (s *Source) Check(_ context.Context, saved []connector.Position) ([]error, error) {
	s.topic.mu.Lock()
	defer s.topic.mu.Unlock()
	out := make([]error, len(saved))
	for i, at := range saved {
		log := &s.topic.parts[at.Partition.ID]
		m := &connector.MismatchError{Position: at, Earliest: log.start, Latest: log.end()}
		switch {
		case at.Partition.TopicID != s.topic.ID:
			m.Recreated, m.Lost, m.Reason = true, -1, "the topic was created again"
		case at.Offset < log.start:
			m.Lost, m.Reason = log.start-at.Offset, "the log starts behind it"
		case at.Offset > log.end():
			m.Lost, m.Reason = -1, "the log ends before it"
		default:
			continue
		}
		out[i] = m
	}
	return out, nil
}

// Open implements connector.Source.
func (s *Source) Open(_ context.Context, splits []connector.Split, columns []int, notify func()) (connector.Reader, error) {
	if err := s.p.op("source open", nil); err != nil {
		return nil, err
	}
	r := &reader{s: s, splits: append([]connector.Split(nil), splits...), columns: columns, wake: notify}
	s.topic.mu.Lock()
	s.topic.waiters[r] = struct{}{}
	s.topic.mu.Unlock()
	// Input may come before the caller has the reader.
	notify()
	runtime.Gosched()
	return r, nil
}

// Close implements connector.Source.
func (s *Source) Close() error { return nil }

type reader struct {
	s       *Source
	splits  []connector.Split
	columns []int
	wake    func()
	turn    int
	bytes   int64
}

func (r *reader) notify() { r.wake() }

// Next gives records of one or more splits.
func (r *reader) Next(ctx context.Context, b *batch.Batch, maxRows, _ int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.s.p.Crashed() {
		return ErrCrashed
	}
	t := r.s.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	n := maxRows
	if r.s.o.MaxRecords > 0 {
		n = min(n, r.s.o.MaxRecords)
	}
	if r.s.o.Random != nil {
		r.s.mu.Lock()
		n = 1 + r.s.o.Random.IntN(n)
		r.s.mu.Unlock()
	}
	f := r.filler(b)
	ended := 0
	for range r.splits {
		sp := &r.splits[r.turn%len(r.splits)]
		r.turn++
		log := &t.parts[sp.From.Partition.ID]
		end := min(log.end(), sp.End)
		if sp.From.Offset >= sp.End {
			ended++
			continue
		}
		if sp.From.Offset < log.start {
			return fmt.Errorf("reading offset %d of a log that starts at %d", sp.From.Offset, log.start)
		}
		upto := min(end, sp.From.Offset+int64(n))
		if upto <= sp.From.Offset {
			continue
		}
		f.run(sp, log, upto)
		n -= int(upto - sp.From.Offset)
		r.bytes += 100 * (upto - sp.From.Offset)
		sp.From.Offset = upto
		if n <= 0 {
			break
		}
	}
	f.finish()
	switch {
	case len(b.Runs) > 0:
		return nil
	case ended == len(r.splits):
		return io.EOF
	}
	return connector.ErrNoData
}

func (r *reader) Raw(split int32, offset int64) (connector.RawRecord, bool) {
	return connector.RawRecord{Value: fmt.Appendf(nil, "%d/%d", split, offset)}, true
}

func (r *reader) LogEnd(split int32) int64 {
	return r.s.topic.End(int(r.splits[split].From.Partition.ID))
}

func (r *reader) InputBytes() int64 { return r.bytes }
func (r *reader) Release()          {}

func (r *reader) Close() error {
	r.s.topic.mu.Lock()
	defer r.s.topic.mu.Unlock()
	delete(r.s.topic.waiters, r)
	return nil
}

// filler builds a batch.
type filler struct {
	b     *batch.Batch
	rows  [][]any
	delta []int32
	index []int32
	multi bool
	cols  []int
}

func (r *reader) filler(b *batch.Batch) *filler {
	s := &batch.Schema{}
	for _, c := range r.columns {
		s.Fields = append(s.Fields, r.s.topic.Schema.Fields[c])
	}
	b.Reset(s)
	return &filler{b: b, cols: r.columns}
}

func (f *filler) run(sp *connector.Split, log *partition, upto int64) {
	run := batch.Run{Partition: sp.Number, FirstRow: int32(len(f.rows)), BaseOffset: sp.From.Offset, EndOffset: upto,
		FirstNote: int32(len(f.b.Notes))}
	for o := sp.From.Offset; o < upto; o++ {
		rec := &log.records[o-log.start]
		run.LogTime = max(run.LogTime, rec.LogTime)
		for i, row := range rec.Rows {
			f.rows = append(f.rows, row)
			f.delta = append(f.delta, int32(o-run.BaseOffset))
			f.index = append(f.index, int32(i))
			f.multi = f.multi || i > 0
		}
		if len(rec.Rows) == 0 && rec.Note != "" {
			f.b.Notes = append(f.b.Notes, batch.Note{Offset: o, Code: rec.Note, Message: "as the test says"})
		}
	}
	run.Rows = int32(len(f.rows)) - run.FirstRow
	run.Notes = int32(len(f.b.Notes)) - run.FirstNote
	f.b.Runs = append(f.b.Runs, run)
}

func (f *filler) finish() {
	b := f.b
	b.Len, b.OffsetDelta = len(f.rows), f.delta
	if f.delta == nil {
		b.OffsetDelta = []int32{}
	}
	if f.multi {
		b.RowIndex = f.index
	}
	for c := range b.Cols {
		v := &b.Cols[c]
		v.Reset(b.Schema.Fields[c].Type, b.Len)
		for i, row := range f.rows {
			put(v, i, row[f.cols[c]])
		}
		v.PadOffsets()
	}
}
