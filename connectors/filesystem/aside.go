package filesystem

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
)

// Late rows aside: the rows of partitions that are closed go to a second directory,
// without partitions, whose rows are visible when they are committed. Its files are
// artefacts of the first table, with table partition "", so that one intent of the
// ledger names both where one record gives rows to both.

// Values of option `sink.late-data`.
const (
	lateAppend = "append"
	lateSide   = "side-table"
)

func lateOptions() []connector.Option {
	return []connector.Option{
		{Key: keyLate, Type: connector.OptEnum, Enum: []string{lateAppend, lateSide}, Default: lateAppend,
			Doc: "What becomes of rows that come for a partition which was announced: one more file, and the partition is announced again (`append`), or they go to a directory of their own and the partition stays as it is (`side-table`). Not Flink's."},
		{Key: keyLatePath, Type: connector.OptString,
			Doc: "The directory for late rows (`side-table`), a table with the same columns, format and options of the file system and no partitions: declare it as one to read it. It must not lie in the table's directory, nor that in it. Not Flink's."},
	}
}

// validateLate checks the options of late rows.
func (c *Connector) validateLate(v connector.Values) error {
	if v.String(keyLate) != lateSide {
		if v.Has(keyLatePath) {
			return &connector.OptionError{Key: keyLatePath, Message: "'" + keyLatePath + "' has no effect unless '" + keyLate + "' is '" + lateSide + "'"}
		}
		return nil
	}
	if !v.Has(keyLatePath) {
		return &connector.OptionError{Key: keyLatePath, Missing: true, Message: "'" + keyLate + "' = '" + lateSide + "' needs option '" + keyLatePath + "', a directory for late rows",
			Hint: "'" + keyLatePath + "' = '" + strings.TrimRight(v.String(keyPath), "/") + "_late'"}
	}
	if err := c.checkPath(v.String(keyLatePath)); err != nil {
		return &connector.OptionError{Key: keyLatePath, OnValue: true, Message: err.Error()}
	}
	if a, b := scheme(v.String(keyPath)), scheme(v.String(keyLatePath)); a != b {
		return &connector.OptionError{Key: keyLatePath, OnValue: true, Message: "late rows lie on the file system of the table that they are late for"}
	}
	if p, ok := c.Second(v); ok {
		return &connector.OptionError{Key: p.Option, Message: "not_yet: a standby for a table whose late rows go to a directory of their own: it has no partitions, and what moves are partitions"}
	}
	return nil
}

// Apart refuses a table and a table of late rows of which one lies in the other: it
// would read, and fence, the other's files. key is the option that says where.
func Apart(key, main, side string) error {
	if a, b := strings.TrimRight(main, "/")+"/", strings.TrimRight(side, "/")+"/"; strings.HasPrefix(a, b) || strings.HasPrefix(b, a) {
		return &connector.OptionError{Key: key, OnValue: true,
			Message: fmt.Sprintf("the table of late rows lies at %s, and the one that they are late for at %s: neither may lie in the other", side, main)}
	}
	return nil
}

// ByTable cuts artefacts of a table with partitions into stretches of one table; true:
// of its late rows.
func ByTable(as []connector.Artifact) iter.Seq2[bool, []connector.Artifact] {
	late := func(a *connector.Artifact) bool { return a.Header.TablePartition == "" }
	return func(yield func(bool, []connector.Artifact) bool) {
		for len(as) > 0 {
			n := 1
			for n < len(as) && late(&as[n]) == late(&as[0]) {
				n++
			}
			if !yield(late(&as[0]), as[:n]) {
				return
			}
			as = as[n:]
		}
	}
}

// asideSink is a table and the table of its late rows.
type asideSink struct {
	*Sink
	side *Sink
}

// withAside opens the table of late rows beside a table.
func (c *Connector) withAside(ctx context.Context, s *Sink) (connector.Sink, error) {
	t := s.table
	if len(t.PartitionKeys) == 0 {
		return nil, &connector.OptionError{Key: keyLate, OnValue: true, Message: "rows are late for partitions, and the table has none"}
	}
	at, err := c.place(ctx, t.Options.String(keyLatePath), t.Options)
	if err != nil {
		return nil, fmt.Errorf("the table of late rows: %w", err)
	}
	if err := errors.Join(Apart(keyLatePath, s.prefix+s.dir, at.prefix+at.dir), at.release()); err != nil {
		return nil, err
	}
	side := *t
	side.PartitionKeys = nil
	set := map[string]string{keyPath: t.Options.String(keyLatePath), keyLate: "", keyLatePath: ""}
	for k := range t.Options.Family("sink.partition-commit.") {
		set["sink.partition-commit."+k] = ""
	}
	side.Options = t.Options.With(set)
	x, err := c.OpenSink(ctx, &side, s.owner)
	if err != nil {
		return nil, fmt.Errorf("the table of late rows: %w", err)
	}
	return &asideSink{Sink: s, side: x.(*Sink)}, nil
}

// CommitPolicy implements connector.PartitionCommitter.
func (s *asideSink) CommitPolicy() connector.CommitPolicy {
	p := s.Sink.CommitPolicy()
	p.Aside = true
	return p
}

// MaxEpoch implements connector.Sink.
func (s *asideSink) MaxEpoch(ctx context.Context, lane connector.LaneID) (uint64, error) {
	n, err := s.Sink.MaxEpoch(ctx, lane)
	if err != nil {
		return 0, err
	}
	m, err := s.side.MaxEpoch(ctx, lane)
	return max(n, m), err
}

// OpenWriter implements connector.Sink.
func (s *asideSink) OpenWriter(ctx context.Context, a connector.Attempt) (connector.Writer, error) {
	main, err := s.Sink.OpenWriter(ctx, a)
	if err != nil {
		return nil, err
	}
	// Invariant 9: what an earlier attempt has in the table of late rows is fenced, too,
	// whether or not this one will have late rows.
	side, err := s.side.OpenWriter(ctx, a)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the table of late rows: %w", err), main.Close())
	}
	return NewAsideWriter(main, side, a.MemoryBytes), nil
}

func (s *asideSink) of(late bool) *Sink {
	if late {
		return s.side
	}
	return s.Sink
}

// Publish implements connector.Committer.
func (s *asideSink) Publish(ctx context.Context, as []connector.Artifact) []error {
	errs := make([]error, 0, len(as))
	for late, part := range ByTable(as) {
		errs = append(errs, s.of(late).Publish(ctx, part)...)
	}
	return errs
}

// Resolve implements connector.Committer.
func (s *asideSink) Resolve(ctx context.Context, as []connector.Artifact) ([]connector.Outcome, error) {
	out := make([]connector.Outcome, 0, len(as))
	for late, part := range ByTable(as) {
		o, err := s.of(late).Resolve(ctx, part)
		if err != nil {
			return make([]connector.Outcome, len(as)), err
		}
		out = append(out, o...)
	}
	return out, nil
}

// Discard implements connector.Committer.
func (s *asideSink) Discard(ctx context.Context, as []connector.Artifact) error {
	for late, part := range ByTable(as) {
		if err := s.of(late).Discard(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// Settled implements connector.Settler.
func (s *asideSink) Settled(ctx context.Context, id connector.ArtifactID) error {
	return errors.Join(s.Sink.Settled(ctx, id), s.side.Settled(ctx, id))
}

// Hurry implements connector.Hurrier.
func (s *asideSink) Hurry() {
	s.Sink.Hurry()
	s.side.Hurry()
}

// Close implements connector.Sink.
func (s *asideSink) Close() error { return errors.Join(s.Sink.Close(), s.side.Close()) }
