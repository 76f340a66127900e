package lanetest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/millrace/millrace/runtime/connector"
)

// table is a table of the world: staged and published artefacts.
type table struct {
	mu        sync.Mutex
	fence     map[connector.LaneID]uint64 // highest epoch opened
	staged    map[connector.ArtifactID]*file
	published map[connector.ArtifactID]*file
	kept      map[connector.ArtifactID]bool // retracted and not purged
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
		t = &table{fence: map[connector.LaneID]uint64{}, staged: map[connector.ArtifactID]*file{}, published: map[connector.ArtifactID]*file{}, kept: map[connector.ArtifactID]bool{}}
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

// Kept is the number of artefacts that were retracted, and are not purged.
func (w *World) Kept(name string) int {
	t := w.table(name)
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.kept)
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
			if s.t.staged[a.Header.ID] != nil || s.t.published[a.Header.ID] != nil {
				s.t.kept[a.Header.ID] = true
			}
			delete(s.t.staged, a.Header.ID)
			delete(s.t.published, a.Header.ID)
		}
		return nil
	})
}

// Purge implements connector.HomeSink.
func (s *Sink) Purge(_ context.Context, as []connector.Artifact) error {
	return s.op("purge", func() error {
		s.t.mu.Lock()
		defer s.t.mu.Unlock()
		for _, a := range as {
			delete(s.t.kept, a.Header.ID)
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
