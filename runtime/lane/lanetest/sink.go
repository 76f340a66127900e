package lanetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// table is a table of the world: staged and published artefacts.
type table struct {
	mu        sync.Mutex
	fence     map[connector.LaneID]uint64 // highest epoch opened
	staged    map[connector.ArtifactID]*file
	published map[connector.ArtifactID]*file
	announced []string
	// after are the artefacts that came into a partition that was announced.
	after int
}

// file is an artefact's rows, as text.
type file struct {
	header connector.Header
	rows   []string
}

func (w *World) table(name string) *table {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tables[name]
	if t == nil {
		t = &table{fence: map[connector.LaneID]uint64{}, staged: map[connector.ArtifactID]*file{}, published: map[connector.ArtifactID]*file{}}
		w.tables[name] = t
	}
	return t
}

// Rows are the rows that readers of a table see, sorted, as "a|b|c".
func (w *World) Rows(name string) []string {
	t := w.table(name)
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for _, f := range t.published {
		out = append(out, f.rows...)
	}
	slices.Sort(out)
	return out
}

// RowsOf are the rows of Rows that lie in one table partition.
func (w *World) RowsOf(name, tablePartition string) []string {
	t := w.table(name)
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for _, f := range t.published {
		if f.header.TablePartition == tablePartition {
			out = append(out, f.rows...)
		}
	}
	slices.Sort(out)
	return out
}

// Files are the headers of a table's visible artefacts, by epoch and sequence.
func (w *World) Files(name string) []connector.Header {
	t := w.table(name)
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []connector.Header
	for _, f := range t.published {
		out = append(out, f.header)
	}
	slices.SortFunc(out, func(a, b connector.Header) int {
		return int(int64(a.ID.Epoch)-int64(b.ID.Epoch))*1000 + int(int64(a.ID.Sequence)-int64(b.ID.Sequence))
	})
	return out
}

// Announced are the table partitions announced, in order, with repetitions.
func (w *World) Announced(name string) []string {
	t := w.table(name)
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.announced)
}

// AfterAnnounced is the number of artefacts that were published into table partitions
// that had been announced.
func (w *World) AfterAnnounced(name string) int {
	t := w.table(name)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.after
}

// Unstage removes every staged artefact of a table, as a careless cleaner.
func (w *World) Unstage(name string) {
	t := w.table(name)
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.staged)
}

// SinkOptions configure a sink.
type SinkOptions struct {
	Roll connector.RollPolicy
	// MaxRows is what the writer holds at most before it is full; 0: no limit.
	MaxRows int
	// PartitionBy is the column whose text names the table partition, -1 or
	// no column: one partition.
	PartitionBy string
	// Policy makes the table one whose partitions are announced.
	Policy connector.CommitPolicy
	// Refuse names rows that the sink cannot represent.
	Refuse func(row string) bool
}

// Sink writes a table of the world in a process.
type Sink struct {
	p    *Process
	t    *table
	name string
	o    SinkOptions
}

// Sink gives the sink of a table.
func (p *Process) Sink(name string, o SinkOptions) *Sink {
	return &Sink{p: p, t: p.w.table(name), name: name, o: o}
}

// op is an operation on the table's system.
func (s *Sink) op(name string, effect func() error) error {
	if err := s.p.there(s.name); err != nil {
		return err
	}
	return s.p.op(name, effect)
}

// Hurry implements connector.Hurrier: nothing waits.
func (s *Sink) Hurry() {}

// Probe implements connector.HomeSink.
func (s *Sink) Probe(context.Context) error { return s.p.there(s.name) }

// Retract implements connector.HomeSink.
func (s *Sink) Retract(_ context.Context, as []connector.Artifact) error {
	return s.op("retract", func() error {
		s.t.mu.Lock()
		defer s.t.mu.Unlock()
		for _, a := range as {
			delete(s.t.staged, a.Header.ID)
			delete(s.t.published, a.Header.ID)
		}
		return nil
	})
}

// Roll implements connector.Sink.
func (s *Sink) Roll() connector.RollPolicy { return s.o.Roll }

// Close implements connector.Sink.
func (s *Sink) Close() error { return nil }

// CommitPolicy implements connector.PartitionCommitter.
func (s *Sink) CommitPolicy() connector.CommitPolicy { return s.o.Policy }

// CommitPartition implements connector.PartitionCommitter.
func (s *Sink) CommitPartition(_ context.Context, tp string) error {
	return s.op("announce", func() error {
		s.t.mu.Lock()
		defer s.t.mu.Unlock()
		s.t.announced = append(s.t.announced, tp)
		return nil
	})
}

// MaxEpoch implements connector.Sink.
func (s *Sink) MaxEpoch(_ context.Context, lane connector.LaneID) (uint64, error) {
	if err := s.p.there(s.name); err != nil {
		return 0, err
	}
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	return s.t.fence[lane], nil
}

// OpenWriter implements connector.Sink.
func (s *Sink) OpenWriter(_ context.Context, a connector.Attempt) (connector.Writer, error) {
	w := &writer{s: s, epoch: a.ID.Epoch, lane: a.ID.Lane, ids: map[string]connector.BucketID{}, open: map[connector.BucketID]*openFile{}}
	return w, s.op("fence", func() error {
		s.t.mu.Lock()
		defer s.t.mu.Unlock()
		if s.t.fence[a.ID.Lane] >= a.ID.Epoch {
			return connector.ErrFenced
		}
		s.t.fence[a.ID.Lane] = a.ID.Epoch
		return nil
	})
}

// Publish implements connector.Committer.
func (s *Sink) Publish(_ context.Context, as []connector.Artifact) []error {
	s.p.hang(s.name, "publish")
	errs := make([]error, len(as))
	for i, a := range as {
		errs[i] = s.op("publish", func() error {
			s.t.mu.Lock()
			defer s.t.mu.Unlock()
			id := a.Header.ID
			if s.t.published[id] != nil {
				return nil
			}
			f := s.t.staged[id]
			if f == nil {
				return errors.New("nothing is staged under this id")
			}
			delete(s.t.staged, id)
			s.t.published[id] = f
			if slices.Contains(s.t.announced, f.header.TablePartition) {
				s.t.after++
			}
			return nil
		})
	}
	return errs
}

// Resolve implements connector.Committer.
func (s *Sink) Resolve(_ context.Context, as []connector.Artifact) ([]connector.Outcome, error) {
	out := make([]connector.Outcome, len(as))
	err := s.op("resolve", func() error {
		s.t.mu.Lock()
		defer s.t.mu.Unlock()
		for i, a := range as {
			switch {
			case s.p.unknown:
				out[i] = connector.Unknown
			case s.t.published[a.Header.ID] != nil:
				out[i] = connector.Published
			case s.t.staged[a.Header.ID] != nil:
				out[i] = connector.Sealed
			default:
				out[i] = connector.Absent
			}
		}
		return nil
	})
	return out, err
}

// Discard implements connector.Committer.
func (s *Sink) Discard(_ context.Context, as []connector.Artifact) error {
	return s.op("discard", func() error {
		s.t.mu.Lock()
		defer s.t.mu.Unlock()
		for _, a := range as {
			delete(s.t.staged, a.Header.ID)
		}
		return nil
	})
}

type openFile struct {
	partition string
	rows      []string
}

type writer struct {
	s     *Sink
	epoch uint64
	lane  connector.LaneID
	ids   map[string]connector.BucketID
	names []string
	open  map[connector.BucketID]*openFile
	held  int
}

func (w *writer) Buckets(b *batch.Batch, sel batch.Sel, out []connector.BucketID) ([]connector.BucketID, error) {
	col := -1
	for i, f := range b.Schema.Fields {
		if f.Name == w.s.o.PartitionBy {
			col = i
		}
	}
	for _, row := range sel {
		name := ""
		if col >= 0 {
			name = w.s.o.PartitionBy + "=" + b.Cols[col].Text(int(row))
		}
		id, ok := w.ids[name]
		if !ok {
			id = connector.BucketID(len(w.names))
			w.ids[name] = id
			w.names = append(w.names, name)
		}
		out = append(out, id)
	}
	return out, nil
}

// Check implements connector.RowChecker.
func (w *writer) Check(b *batch.Batch, sel batch.Sel, bad []batch.ValueError) []batch.ValueError {
	if w.s.o.Refuse == nil {
		return bad
	}
	for _, row := range sel {
		if w.s.o.Refuse(text(b, int(row))) {
			bad = append(bad, batch.ValueError{Row: row, Code: batch.CodeSinkRefused, Message: "refused"})
		}
	}
	return bad
}

func text(b *batch.Batch, row int) string {
	cells := make([]string, len(b.Cols))
	for c := range b.Cols {
		if b.Cols[c].IsNull(row) {
			cells[c] = "NULL"
		} else {
			cells[c] = b.Cols[c].Text(row)
		}
	}
	return strings.Join(cells, "|")
}

func (w *writer) Write(b *batch.Batch, sel batch.Sel, id connector.BucketID) error {
	if w.s.o.MaxRows > 0 && w.held+len(sel) > w.s.o.MaxRows {
		return connector.ErrFull
	}
	f := w.open[id]
	if f == nil {
		f = &openFile{partition: w.names[id]}
		w.open[id] = f
	}
	for _, row := range sel {
		for c := range b.Cols {
			if b.Cols[c].DeepErr(int(row)) != nil {
				return fmt.Errorf("BUG: row %d has an error in column %d", row, c)
			}
		}
		f.rows = append(f.rows, text(b, int(row)))
	}
	w.held += len(sel)
	return nil
}

func (w *writer) Open() []connector.Bucket {
	var out []connector.Bucket
	for id, f := range w.open {
		out = append(out, connector.Bucket{ID: id, TablePartition: f.partition, Rows: int64(len(f.rows)), Bytes: int64(10 * len(f.rows))})
	}
	return out
}

// Aside implements connector.AsideWriter: rows of table partition "".
func (w *writer) Aside() connector.BucketID {
	id, ok := w.ids[""]
	if !ok {
		id = connector.BucketID(len(w.names))
		w.ids[""] = id
		w.names = append(w.names, "")
	}
	return id
}

// TablePartition implements connector.PartitionNamer.
func (w *writer) TablePartition(id connector.BucketID) string { return w.names[id] }

func (w *writer) HeldBytes() int64 { return int64(10 * w.held) }

func (w *writer) Seal(_ context.Context, req []connector.SealRequest) ([]connector.Artifact, error) {
	var out []connector.Artifact
	for _, r := range req {
		f := w.open[r.Bucket]
		if f == nil || int64(len(f.rows)) != r.Header.Rows {
			return nil, fmt.Errorf("BUG: header of %d rows for bucket %d", r.Header.Rows, r.Bucket)
		}
		err := w.s.op("seal", func() error {
			w.s.t.mu.Lock()
			defer w.s.t.mu.Unlock()
			if w.s.t.fence[w.lane] != w.epoch {
				return connector.ErrFenced
			}
			w.s.t.staged[r.Header.ID] = &file{header: r.Header, rows: f.rows}
			return nil
		})
		if err != nil {
			return nil, err
		}
		delete(w.open, r.Bucket)
		w.held -= len(f.rows)
		out = append(out, connector.Artifact{Header: r.Header, Bytes: int64(10 * len(f.rows)),
			Location: w.s.name + "/" + r.Header.TablePartition + "/" + r.Header.ID.String()})
	}
	return out, nil
}

func (w *writer) Close() error { return nil }
