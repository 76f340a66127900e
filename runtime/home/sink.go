package home

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
)

// Config is a table with its homes.
type Config struct {
	Book  *ledger.Book
	Table *ledger.Table
	// Open opens the table at a home.
	Open func(ctx context.Context, home uint8) (connector.Sink, error)
}

// Sink is a table with two homes.
type Sink struct {
	cfg Config

	mu    sync.Mutex
	open  [connector.Homes]connector.HomeSink
	roll  connector.RollPolicy
	rule  connector.CommitPolicy
	ended bool
}

var (
	_ connector.Sink               = (*Sink)(nil)
	_ connector.PartitionCommitter = (*Sink)(nil)
	_ connector.Settler            = (*Sink)(nil)
	_ connector.Hurrier            = (*Sink)(nil)
)

var errClosed = errors.New("the table is closed")

// Open makes the sink and connects to the active home.
func Open(ctx context.Context, c Config) (*Sink, error) {
	s := &Sink{cfg: c}
	_, err := s.Active(ctx)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Active is the sink at the active home.
func (s *Sink) Active(ctx context.Context) (connector.HomeSink, error) {
	home, _ := s.cfg.Book.ActiveHome(s.cfg.Table.ID)
	return s.At(ctx, home)
}

// At is the sink at a home.
func (s *Sink) At(ctx context.Context, home uint8) (connector.HomeSink, error) {
	s.mu.Lock()
	have, ended := s.open[home], s.ended
	s.mu.Unlock()
	if have != nil {
		return have, nil
	}
	if ended {
		return nil, errClosed
	}
	opened, err := s.cfg.Open(ctx, home)
	if err != nil {
		return nil, fmt.Errorf("%s home: %w", connector.HomeName(home), err)
	}
	x, ok := opened.(connector.HomeSink)
	if !ok {
		return nil, errors.Join(fmt.Errorf("BUG: a %T cannot be a home", opened), opened.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.open[home] != nil {
		// Somebody else was faster.
		err := x.Close()
		if s.ended {
			return nil, errors.Join(errClosed, err)
		}
		return s.open[home], err
	}
	s.open[home], s.roll = x, x.Roll()
	if pc, ok := x.(connector.PartitionCommitter); ok {
		s.rule = pc.CommitPolicy()
	}
	return x, nil
}

// Leave lets a home go; calls under way end soon.
func (s *Sink) Leave(home uint8) error {
	s.mu.Lock()
	x := s.open[home]
	s.open[home] = nil
	s.mu.Unlock()
	if x == nil {
		return nil
	}
	x.Hurry()
	return x.Close()
}

// HurryHome makes calls at a home end soon; it must be left then.
func (s *Sink) HurryHome(home uint8) {
	s.mu.Lock()
	x := s.open[home]
	s.mu.Unlock()
	if x != nil {
		x.Hurry()
	}
}

// opened are the homes that are connected to.
func (s *Sink) opened() []connector.HomeSink {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []connector.HomeSink
	for _, x := range s.open {
		if x != nil {
			out = append(out, x)
		}
	}
	return out
}

// Roll implements connector.Sink.
func (s *Sink) Roll() connector.RollPolicy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.roll
}

// CommitPolicy implements connector.PartitionCommitter.
func (s *Sink) CommitPolicy() connector.CommitPolicy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rule
}

// CommitPartition implements connector.PartitionCommitter.
func (s *Sink) CommitPartition(ctx context.Context, tablePartition string) error {
	x, err := s.announcer(ctx, tablePartition)
	if err != nil {
		return err
	}
	if x.late != nil {
		if err := x.sink.(connector.HomeCatalog).Take(ctx, x.from, x.late); err != nil {
			return fmt.Errorf("taking the rows that came late for partition %s to its home: %w", tablePartition, err)
		}
	}
	return x.sink.(connector.PartitionCommitter).CommitPartition(ctx, tablePartition)
}

// DescribePartition implements connector.PartitionDescriber.
func (s *Sink) DescribePartition(ctx context.Context, tablePartition string, known func(string) (int64, bool)) (connector.PartitionFacts, error) {
	x, err := s.announcer(ctx, tablePartition)
	if err != nil {
		return connector.PartitionFacts{}, err
	}
	d, ok := x.sink.(connector.PartitionDescriber)
	if !ok {
		return connector.PartitionFacts{}, fmt.Errorf("BUG: a %T does not describe its partitions", x.sink)
	}
	return d.DescribePartition(ctx, tablePartition, known)
}

// MaxEpoch implements connector.Sink: of the homes that are connected to. The
// ledger has every epoch that began at the others.
func (s *Sink) MaxEpoch(ctx context.Context, lane connector.LaneID) (uint64, error) {
	highest := uint64(0)
	for _, x := range s.opened() {
		e, err := x.MaxEpoch(ctx, lane)
		if err != nil {
			return 0, err
		}
		highest = max(highest, e)
	}
	return highest, nil
}

// Publish implements connector.Committer.
func (s *Sink) Publish(ctx context.Context, as []connector.Artifact) []error {
	errs := make([]error, 0, len(as))
	for part := range byHome(as) {
		x, err := s.At(ctx, part[0].Home)
		if err == nil {
			errs = append(errs, x.Publish(ctx, part)...)
			continue
		}
		for range part {
			errs = append(errs, err)
		}
	}
	return errs
}

// Resolve implements connector.Committer.
func (s *Sink) Resolve(ctx context.Context, as []connector.Artifact) ([]connector.Outcome, error) {
	out := make([]connector.Outcome, 0, len(as))
	for part := range byHome(as) {
		x, err := s.At(ctx, part[0].Home)
		if err != nil {
			return make([]connector.Outcome, len(as)), err
		}
		o, err := x.Resolve(ctx, part)
		if err != nil {
			return make([]connector.Outcome, len(as)), err
		}
		out = append(out, o...)
	}
	return out, nil
}

// Discard implements connector.Committer.
func (s *Sink) Discard(ctx context.Context, as []connector.Artifact) error {
	for part := range byHome(as) {
		x, err := s.At(ctx, part[0].Home)
		if err == nil {
			err = x.Discard(ctx, part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// byHome cuts artefacts into stretches of one home.
func byHome(as []connector.Artifact) func(yield func([]connector.Artifact) bool) {
	return func(yield func([]connector.Artifact) bool) {
		for len(as) > 0 {
			n := 1
			for n < len(as) && as[n].Home == as[0].Home {
				n++
			}
			if !yield(as[:n]) {
				return
			}
			as = as[n:]
		}
	}
}

// Clear takes what is void of a table partition at a home out of readers' sight;
// "": of every partition that nobody has cleared yet.
func (s *Sink) Clear(ctx context.Context, home uint8, tablePartition string) error {
	void := s.cfg.Book.VoidArtifacts(s.cfg.Table.ID, home, func(f *ledger.Moved) bool {
		return !f.Retracted && (tablePartition == "" || f.TablePartition == tablePartition)
	})
	if len(void) == 0 {
		return nil
	}
	x, err := s.At(ctx, home)
	if err != nil {
		return err
	}
	return x.Retract(ctx, void)
}

// Purge removes what is void at a home, and out of sight, of table partitions whose
// rows are all at their new home for good.
func (s *Sink) Purge(ctx context.Context, home uint8, done func(tablePartition string) bool) error {
	void := s.cfg.Book.VoidArtifacts(s.cfg.Table.ID, home, func(f *ledger.Moved) bool { return f.Retracted && done(f.TablePartition) })
	if len(void) == 0 {
		return nil
	}
	x, err := s.At(ctx, home)
	if err != nil {
		return err
	}
	return x.Purge(ctx, void)
}

// Settled implements connector.Settler.
func (s *Sink) Settled(ctx context.Context, id connector.ArtifactID) error {
	var errs []error
	for _, x := range s.opened() {
		if y, ok := x.(connector.Settler); ok {
			errs = append(errs, y.Settled(ctx, id))
		}
	}
	return errors.Join(errs...)
}

// Hurry implements connector.Hurrier.
func (s *Sink) Hurry() {
	for _, x := range s.opened() {
		x.Hurry()
	}
}

// Close implements connector.Sink.
func (s *Sink) Close() error {
	s.mu.Lock()
	open := s.open
	s.open, s.ended = [connector.Homes]connector.HomeSink{}, true
	s.mu.Unlock()
	var errs []error
	for _, x := range open {
		if x != nil {
			errs = append(errs, x.Close())
		}
	}
	return errors.Join(errs...)
}
