package hive

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// Late rows aside: the rows of partitions that are closed go to a second table of the
// metastore, without partitions, whose rows are visible when they are committed. Its
// files are artefacts of the first table, with table partition "", so that one intent
// of the ledger names both where one record gives rows to both.

// openSide opens the table of late rows.
func (s *Sink) openSide(ctx context.Context, c *Connector, t *connector.Table) error {
	side := *t
	side.PartitionKeys = nil
	set := map[string]string{keyTable: t.Options.String(keyLateTable), keyPath: t.Options.String(keyLatePath),
		keyLate: "", keyLateTable: "", keyLatePath: "", keyMerge: "", keyMergeBytes: ""}
	for k := range t.Options.Family("sink.partition-commit.") {
		set["sink.partition-commit."+k] = ""
	}
	side.Options = t.Options.With(set)
	x, err := c.OpenSink(ctx, &side, s.owner)
	if err != nil {
		return wrap(err, "the table of late rows")
	}
	s.side = x.(*Sink)
	if a, b := s.location+"/", s.side.location+"/"; strings.HasPrefix(a, b) || strings.HasPrefix(b, a) {
		// One would read, and fence, the files of the other.
		return &connector.OptionError{Key: keyLateTable, OnValue: true,
			Message: fmt.Sprintf("the table of late rows lies at %s, and the one that they are late for at %s: neither may lie in the other", s.side.location, s.location)}
	}
	return nil
}

// CommitPolicy implements connector.PartitionCommitter.
func (s *Sink) CommitPolicy() connector.CommitPolicy {
	p := s.Sink.CommitPolicy()
	p.Aside = s.side != nil
	return p
}

// MaxEpoch implements connector.Sink.
func (s *Sink) MaxEpoch(ctx context.Context, lane connector.LaneID) (uint64, error) {
	n, err := s.Sink.MaxEpoch(ctx, lane)
	if err != nil || s.side == nil {
		return n, err
	}
	m, err := s.side.MaxEpoch(ctx, lane)
	return max(n, m), err
}

// OpenWriter implements connector.Sink.
func (s *Sink) OpenWriter(ctx context.Context, a connector.Attempt) (connector.Writer, error) {
	main, err := s.openWriter(ctx, a)
	if err != nil || s.side == nil || a.Replace {
		return main, err
	}
	// Invariant 9: what an earlier attempt has in the table of late rows is fenced, too,
	// whether or not this one will have late rows.
	side, err := s.side.openWriter(ctx, a)
	if err != nil {
		return nil, errors.Join(err, main.Close())
	}
	return &asideWriter{Writer: main, side: side, budget: a.MemoryBytes}, nil
}

// byTable cuts artefacts into stretches of one table.
func (s *Sink) byTable(as []connector.Artifact) func(yield func(*Sink, []connector.Artifact) bool) {
	late := func(a *connector.Artifact) bool { return s.side != nil && a.Header.TablePartition == "" }
	return func(yield func(*Sink, []connector.Artifact) bool) {
		for len(as) > 0 {
			n := 1
			for n < len(as) && late(&as[n]) == late(&as[0]) {
				n++
			}
			at := s
			if late(&as[0]) {
				at = s.side
			}
			if !yield(at, as[:n]) {
				return
			}
			as = as[n:]
		}
	}
}

// Publish implements connector.Committer.
func (s *Sink) Publish(ctx context.Context, as []connector.Artifact) []error {
	errs := make([]error, 0, len(as))
	for at, part := range s.byTable(as) {
		errs = append(errs, at.publish(ctx, part)...)
	}
	return errs
}

// Resolve implements connector.Committer.
func (s *Sink) Resolve(ctx context.Context, as []connector.Artifact) ([]connector.Outcome, error) {
	out := make([]connector.Outcome, 0, len(as))
	for i := range as {
		if s.side == nil && len(s.schema.keys) > 0 && as[i].Header.TablePartition == "" {
			return make([]connector.Outcome, len(as)), fmt.Errorf("%s is of a table of late rows that the job does not name any more; start it once more with '%s' = '%s'", as[i].Location, keyLate, lateSide)
		}
	}
	for at, part := range s.byTable(as) {
		o, err := at.resolve(ctx, part)
		if err != nil {
			return make([]connector.Outcome, len(as)), err
		}
		out = append(out, o...)
	}
	return out, nil
}

// Discard implements connector.Committer.
func (s *Sink) Discard(ctx context.Context, as []connector.Artifact) error {
	for at, part := range s.byTable(as) {
		for _, a := range part {
			if err := at.discard(ctx, a); err != nil {
				return fmt.Errorf("discarding %s: %w", a.Header.ID, err)
			}
		}
	}
	return nil
}

// Settled implements connector.Settler.
func (s *Sink) Settled(ctx context.Context, id connector.ArtifactID) error {
	err := s.Sink.Settled(ctx, id)
	if s.side != nil {
		err = errors.Join(err, s.side.Settled(ctx, id))
	}
	return err
}

// Hurry implements connector.Hurrier.
func (s *Sink) Hurry() {
	s.Sink.Hurry()
	if s.side != nil {
		s.side.Hurry()
	}
}

// asideBucket is the id of the bucket of late rows: no partition of the table has it.
const asideBucket connector.BucketID = math.MaxInt32

// asideWriter is a writer of a table and of the table of its late rows.
type asideWriter struct {
	connector.Writer // of the table
	side             connector.Writer
	inner            connector.BucketID // side's own for all its rows
	known            bool
	budget           int64
}

var (
	_ connector.AsideWriter = (*asideWriter)(nil)
	_ connector.RowChecker  = (*asideWriter)(nil)
)

// Aside implements connector.AsideWriter.
func (w *asideWriter) Aside() connector.BucketID { return asideBucket }

// TablePartition implements connector.PartitionNamer.
func (w *asideWriter) TablePartition(id connector.BucketID) string {
	if id == asideBucket {
		return ""
	}
	return w.Writer.(connector.PartitionNamer).TablePartition(id)
}

// Check implements connector.RowChecker. What a partition's name can hold its column
// can, too.
func (w *asideWriter) Check(b *batch.Batch, sel batch.Sel, bad []batch.ValueError) []batch.ValueError {
	return w.Writer.(connector.RowChecker).Check(b, sel, bad)
}

// Write implements connector.Writer.
func (w *asideWriter) Write(b *batch.Batch, sel batch.Sel, bucket connector.BucketID) error {
	// Each of the two keeps to the budget; so do both together.
	if main, side := w.Writer.HeldBytes(), w.side.HeldBytes(); w.budget > 0 && main > 0 && side > 0 && main+side > w.budget {
		return connector.ErrFull
	}
	if bucket != asideBucket {
		return w.Writer.Write(b, sel, bucket)
	}
	if !w.known {
		one := batch.Sel{0}
		if len(sel) > 0 {
			one[0] = sel[0]
		}
		ids, err := w.side.Buckets(b, one, nil)
		if err != nil {
			return err
		}
		w.inner, w.known = ids[0], true
	}
	return w.side.Write(b, sel, w.inner)
}

// Open implements connector.Writer.
func (w *asideWriter) Open() []connector.Bucket {
	out := w.Writer.Open()
	for _, b := range w.side.Open() {
		b.ID = asideBucket
		out = append(out, b)
	}
	return out
}

// HeldBytes implements connector.Writer.
func (w *asideWriter) HeldBytes() int64 { return w.Writer.HeldBytes() + w.side.HeldBytes() }

// Seal implements connector.Writer.
func (w *asideWriter) Seal(ctx context.Context, req []connector.SealRequest) ([]connector.Artifact, error) {
	out := make([]connector.Artifact, len(req))
	var main, side []connector.SealRequest
	var mainAt, sideAt []int
	for i, r := range req {
		if r.Bucket == asideBucket {
			r.Bucket = w.inner
			side, sideAt = append(side, r), append(sideAt, i)
		} else {
			main, mainAt = append(main, r), append(mainAt, i)
		}
	}
	seal := func(x connector.Writer, req []connector.SealRequest, at []int) error {
		if len(req) == 0 {
			return nil
		}
		sealed, err := x.Seal(ctx, req)
		for i := range sealed {
			out[at[i]] = sealed[i]
		}
		return err
	}
	if err := seal(w.Writer, main, mainAt); err != nil {
		return nil, err
	}
	if err := seal(w.side, side, sideAt); err != nil {
		return nil, wrap(err, "the table of late rows")
	}
	return out, nil
}

// Close implements connector.Writer.
func (w *asideWriter) Close() error { return errors.Join(w.Writer.Close(), w.side.Close()) }
