package filesystem

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// OpenWriter implements connector.Sink: it fences all lower epochs of the lane
// and makes the attempt's own directory.
func (s *Sink) OpenWriter(ctx context.Context, a connector.Attempt) (connector.Writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if a.ID.Job != s.owner.Job {
		return nil, fmt.Errorf("job %s opens a writer of a table claimed by job %s", a.ID.Job, s.owner.Job)
	}
	if err := s.owned(); err != nil {
		return nil, err
	}
	lane := s.laneDir(a.ID)
	if err := s.durableDir(lane); err != nil {
		return nil, fmt.Errorf("making %s: %w", lane, err)
	}
	if err := s.fence(lane, a.ID.Epoch); err != nil {
		return nil, err
	}
	if a.Replace {
		if err := s.probeExchange(a.ID); err != nil {
			return nil, err
		}
	}
	return newWriter(s, a), nil
}

// fence creates the epoch's directory first and looks at the others then, so
// that of two attempts which start at once the lower one sees the higher one.
func (s *Sink) fence(lane string, epoch uint64) error {
	own := s.fs.Join(lane, epochName(epoch))
	err := s.fs.Mkdir(own)
	if errors.Is(err, vfs.ErrExist) {
		return fmt.Errorf("%w: epoch %d of %s was used before", connector.ErrFenced, epoch, lane)
	}
	if err != nil {
		return fmt.Errorf("making %s: %w", own, err)
	}
	names, err := s.fs.List(lane)
	if err != nil {
		return fmt.Errorf("listing %s: %w", lane, err)
	}
	// Both forms of one epoch cannot be seen by a reader of names alone, but a
	// higher one in either form ends this attempt.
	for _, n := range names {
		if e, _, ok := parseEpoch(n); ok && e > epoch {
			// Our directory holds nothing yet; its name must not be left to
			// look alive.
			if err := s.fs.Rename(own, own+fencedSuffix); err != nil && !errors.Is(err, vfs.ErrNotExist) {
				return fmt.Errorf("fencing %s: %w", own, err)
			}
			return fmt.Errorf("%w: epoch %d of %s has started", connector.ErrFenced, e, lane)
		}
	}
	for _, n := range names {
		e, fenced, ok := parseEpoch(n)
		if !ok || fenced || e >= epoch {
			continue
		}
		old := s.fs.Join(lane, n)
		if err := s.fs.Rename(old, old+fencedSuffix); err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return fmt.Errorf("fencing %s: %w", old, err)
		}
	}
	// Invariant 9: what is fenced stays fenced after a crash of the machine.
	if err := s.fs.SyncDir(lane); err != nil {
		return fmt.Errorf("syncing %s: %w", lane, err)
	}
	s.mu.Lock()
	s.fenced[lane] = max(s.fenced[lane], epoch)
	s.mu.Unlock()
	return nil
}

// fencedHere reports whether this sink cut off an artefact's attempt, so that
// its sealed files are this sink's to publish.
func (s *Sink) fencedHere(id connector.ArtifactID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return id.Epoch < s.fenced[s.laneDir(id)]
}

// Settled implements connector.Settler: nobody will ask any more for what
// attempts of lower epochs left behind, so it goes.
func (s *Sink) Settled(ctx context.Context, id connector.ArtifactID) error {
	dir := s.laneDir(id)
	s.mu.Lock()
	done := s.swept[dir] >= id.Epoch
	s.mu.Unlock()
	if done {
		return nil
	}
	if err := s.sweep(ctx, dir, id.Epoch); err != nil {
		return fmt.Errorf("removing what earlier attempts left: %w", err)
	}
	s.mu.Lock()
	s.swept[dir] = max(s.swept[dir], id.Epoch)
	s.mu.Unlock()
	return nil
}

// sweep removes fenced attempts below an epoch.
func (s *Sink) sweep(ctx context.Context, dir string, below uint64) error {
	names, err := s.fs.List(dir)
	if errors.Is(err, vfs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing %s: %w", dir, err)
	}
	highest := uint64(0)
	for _, n := range names {
		if e, _, ok := parseEpoch(n); ok {
			highest = max(highest, e)
		}
	}
	for _, n := range names {
		e, fenced, ok := parseEpoch(n)
		// The highest epoch stays, fenced or not: MaxEpoch must not go back.
		if !ok || !fenced || e == highest || e >= below {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.sweepAttempt(s.fs.Join(dir, n)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Sink) sweepAttempt(dir string) error {
	files, err := s.fs.List(dir)
	if err != nil {
		return fmt.Errorf("listing %s: %w", dir, err)
	}
	for _, f := range files {
		name := s.fs.Join(dir, f)
		if err := s.fs.Remove(name); err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return fmt.Errorf("removing %s: %w", name, err)
		}
	}
	if err := s.fs.Remove(dir); err != nil && !errors.Is(err, vfs.ErrNotExist) {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	return nil
}
