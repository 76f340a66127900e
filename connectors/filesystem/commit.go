package filesystem

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// Publish implements connector.Committer: one rename without replacing an
// artefact, in order; then the directories are synced.
func (s *Sink) Publish(ctx context.Context, as []connector.Artifact) []error {
	errs := make([]error, len(as))
	dirs := map[string][]int{}
	var order []string
	// Invariant 9: a process whose table was taken over publishes nothing.
	stopped := s.owned()
	for i, a := range as {
		if stopped == nil {
			stopped = ctx.Err()
		}
		if stopped != nil {
			// In order: what follows a failure is not published before it.
			errs[i] = fmt.Errorf("publishing %s: not tried: %w", a.Header.ID, stopped)
			continue
		}
		p, err := decodePayload(a.Payload)
		if err == nil {
			err = s.publish(a, p)
		}
		if err != nil {
			errs[i], stopped = fmt.Errorf("publishing %s: %w", a.Header.ID, err), err
			continue
		}
		dir := s.fs.Dir(s.path(p.final))
		if dirs[dir] == nil {
			order = append(order, dir)
		}
		dirs[dir] = append(dirs[dir], i)
	}
	for _, dir := range order {
		if err := s.fs.SyncDir(dir); err != nil {
			for _, i := range dirs[dir] {
				errs[i] = fmt.Errorf("publishing %s: syncing %s: %w", as[i].Header.ID, dir, err)
			}
		}
	}
	return errs
}

func (s *Sink) publish(a connector.Artifact, p payload) error {
	final := s.path(p.final)
	if err := s.durableDir(s.fs.Dir(final)); err != nil {
		return fmt.Errorf("making %s: %w", s.fs.Dir(final), err)
	}
	sources := []string{s.path(p.staged)}
	if s.fencedHere(a.Header.ID) {
		sources = append(sources, s.path(fencedForm(p.staged)))
	}
	for _, src := range sources {
		info, err := s.fs.Stat(src)
		if errors.Is(err, vfs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if info.Size() != p.bytes {
			return fmt.Errorf("sealed file %s has %d bytes instead of %d", src, info.Size(), p.bytes)
		}
		err = s.fs.RenameNoReplace(src, final)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, vfs.ErrExist):
			// A rename that was cut short by a crash left both names.
			return s.isPublished(final, p)
		case !errors.Is(err, vfs.ErrNotExist):
			return err
		}
		// The source went, or the partition's directory: somebody may drop old
		// partitions while the job runs.
		s.forget()
	}
	err := s.isPublished(final, p)
	if errors.Is(err, vfs.ErrNotExist) {
		if ok, ferr := vfs.Exists(s.fs, s.path(fencedForm(p.staged))); ferr == nil && ok {
			return fmt.Errorf("%w: epoch %d of the lane was cut off", connector.ErrFenced, a.Header.ID.Epoch)
		}
		return fmt.Errorf("neither staged nor published: %w", err)
	}
	return err
}

// isPublished checks the final name: nil when the artefact is there, whole.
func (s *Sink) isPublished(final string, p payload) error {
	info, err := s.fs.Stat(final)
	if err != nil {
		return err
	}
	if info.IsDir() || info.Size() != p.bytes {
		return fmt.Errorf("%s has %d bytes instead of %d: it is not the artefact of that name", final, info.Size(), p.bytes)
	}
	return nil
}

// Resolve implements connector.Committer. A published artefact is made durable
// before it is called so: the rename may have been seen by nobody but us.
func (s *Sink) Resolve(ctx context.Context, as []connector.Artifact) ([]connector.Outcome, error) {
	out := make([]connector.Outcome, len(as))
	for i, a := range as {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if len(s.partNames) > 0 && a.Header.TablePartition == "" {
			return out, fmt.Errorf("%s is of a table of late rows that the job does not name any more; start it once more with '%s' = '%s'", a.Location, keyLate, lateSide)
		}
		p, err := decodePayload(a.Payload)
		if err == nil {
			out[i], err = s.resolve(p)
		}
		if err != nil {
			return out, fmt.Errorf("resolving %s: %w", a.Header.ID, err)
		}
	}
	return out, nil
}

func (s *Sink) resolve(p payload) (connector.Outcome, error) {
	final := s.path(p.final)
	// The final name first and last: between two looks at the staging names a
	// rename may happen, and after a crash both names may be there.
	for look := range 2 {
		err := s.isPublished(final, p)
		if err == nil {
			if err := s.durableDir(s.fs.Dir(final)); err != nil {
				return connector.Unknown, err
			}
			if err := s.fs.SyncDir(s.fs.Dir(final)); err != nil {
				return connector.Unknown, err
			}
			return connector.Published, nil
		}
		if !errors.Is(err, vfs.ErrNotExist) {
			return connector.Unknown, err
		}
		if look == 1 {
			break
		}
		for _, name := range []string{s.path(p.staged), s.path(fencedForm(p.staged)), s.path(p.staged)} {
			info, err := s.fs.Stat(name)
			if errors.Is(err, vfs.ErrNotExist) {
				continue
			}
			if err != nil {
				return connector.Unknown, err
			}
			if info.Size() != p.bytes {
				return connector.Unknown, fmt.Errorf("sealed file %s has %d bytes instead of %d", name, info.Size(), p.bytes)
			}
			return connector.Sealed, nil
		}
	}
	return connector.Absent, nil
}

// Discard implements connector.Committer.
func (s *Sink) Discard(ctx context.Context, as []connector.Artifact) error {
	for _, a := range as {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, err := decodePayload(a.Payload)
		if err == nil {
			err = s.discard(p)
		}
		if err != nil {
			return fmt.Errorf("discarding %s: %w", a.Header.ID, err)
		}
	}
	return nil
}

var errPublished = errors.New("it is published")

func (s *Sink) discard(p payload) error {
	final := s.path(p.final)
	refuse := func() error {
		_, err := s.fs.Stat(final)
		switch {
		case err == nil:
			return errPublished
		case errors.Is(err, vfs.ErrNotExist):
			return nil
		}
		return err
	}
	if err := refuse(); err != nil {
		return err
	}
	names := s.sealedNames(p)
	// A replacement that was cut short may have moved it.
	aside, err := s.replacedNames(s.fs.Dir(final))
	if err != nil {
		return err
	}
	for _, dir := range aside {
		names = append(names, s.fs.Join(dir, s.fs.Base(final)))
	}
	for _, name := range names {
		err := s.fs.Remove(name)
		if errors.Is(err, vfs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		// Discarded stays discarded: a crash must not bring the name back.
		if err := s.fs.SyncDir(s.fs.Dir(name)); err != nil {
			return err
		}
	}
	// A publish that ran meanwhile has won.
	return refuse()
}
