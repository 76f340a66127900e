package hive

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/connectors/filesystem"
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
	return filesystem.Apart(keyLateTable, s.location, s.side.location)
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
	return filesystem.NewAsideWriter(main, side, a.MemoryBytes), nil
}

// of is the table that a stretch of artefacts belongs to.
func (s *Sink) of(late bool) *Sink {
	if late && s.side != nil {
		return s.side
	}
	return s
}

// Publish implements connector.Committer.
func (s *Sink) Publish(ctx context.Context, as []connector.Artifact) []error {
	errs := make([]error, 0, len(as))
	for late, part := range filesystem.ByTable(as) {
		errs = append(errs, s.of(late).publish(ctx, part)...)
	}
	return errs
}

// Resolve implements connector.Committer.
func (s *Sink) Resolve(ctx context.Context, as []connector.Artifact) ([]connector.Outcome, error) {
	out := make([]connector.Outcome, 0, len(as))
	for late, part := range filesystem.ByTable(as) {
		o, err := s.of(late).resolve(ctx, part)
		if err != nil {
			return make([]connector.Outcome, len(as)), err
		}
		out = append(out, o...)
	}
	return out, nil
}

// Discard implements connector.Committer.
func (s *Sink) Discard(ctx context.Context, as []connector.Artifact) error {
	for late, part := range filesystem.ByTable(as) {
		for _, a := range part {
			if err := s.of(late).discard(ctx, a); err != nil {
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
