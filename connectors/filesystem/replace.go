package filesystem

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// ReplaceMode implements connector.ReplacingConnector.
func (c *Connector) ReplaceMode(t *connector.Table) (connector.ReplaceMode, string) {
	if name := scheme(t.Options.String(keyPath)); name != "" {
		return connector.ReplaceNever, "a directory on " + name + ":// cannot be replaced at once; tables of 'connector' = 'hive' have versions and can"
	}
	if t.Options.String(keyLate) == lateSide {
		return connector.ReplaceNever, "not_yet: a table whose late rows go to a table of their own"
	}
	return connector.ReplaceOnRequest, ""
}

// PartitionOf implements connector.Replacer.
func (s *Sink) PartitionOf(b *batch.Batch, row int) (string, error) {
	cols := make([]*batch.Vec, len(s.partCols))
	for i, c := range s.partCols {
		cols[i] = &b.Cols[c]
	}
	return string(appendPartition(nil, s.partNames, cols, row, s.opts.defaultName)), nil
}

// replacement is where one is carried out: dir is the partition's directory, next
// the one beside it that is filled and then exchanged with it.
type replacement struct {
	connector.Replacement
	dir, next string
	parts     []payload
}

func (s *Sink) replacement(r connector.Replacement) (replacement, error) {
	x := replacement{Replacement: r, dir: s.dir}
	if r.TablePartition != "" {
		x.dir = s.path(r.TablePartition)
	}
	if (r.TablePartition == "") != (len(s.partNames) == 0) {
		return x, fmt.Errorf("%q is no partition of the table", r.TablePartition)
	}
	x.next = s.fs.Join(s.fs.Dir(x.dir), fmt.Sprintf("%s%s-%d", s.nextPrefix(x.dir), s.owner.Job, r.Version))
	for _, a := range r.Parts {
		p, err := decodePayload(a.Payload)
		if err != nil {
			return x, err
		}
		if s.fs.Dir(s.path(p.final)) != x.dir {
			return x, fmt.Errorf("part %s is not of partition %q", a.Header.ID, r.TablePartition)
		}
		x.parts = append(x.parts, p)
	}
	return x, nil
}

// nextPrefix begins the names of directories that are to take a directory's place:
// of its own, however long its name is.
func (s *Sink) nextPrefix(dir string) string {
	return fmt.Sprintf(".replacing-%016x-", xxhash.Sum64String(s.fs.Base(dir)))
}

// Replace implements connector.Replacer: the parts are put into a new directory,
// which is then exchanged with the partition's, in one operation of the system.
func (s *Sink) Replace(ctx context.Context, rs []connector.Replacement) []error {
	errs := make([]error, len(rs))
	// Invariant 9: a process whose table was taken over replaces nothing.
	stopped := s.owned()
	for i, r := range rs {
		if stopped == nil {
			stopped = ctx.Err()
		}
		if stopped != nil {
			errs[i] = fmt.Errorf("replacing %q: not tried: %w", r.TablePartition, stopped)
			continue
		}
		x, err := s.replacement(r)
		if err == nil {
			err = s.replace(x)
		}
		if err != nil {
			errs[i], stopped = fmt.Errorf("replacing %q: %w", r.TablePartition, err), err
		}
	}
	return errs
}

func (s *Sink) replace(x replacement) error {
	parent := s.fs.Dir(x.dir)
	done, err := s.hasContent(x)
	if err != nil {
		return err
	}
	if !done {
		if err := s.fill(x); err != nil {
			return err
		}
		if err := s.swap(x); err != nil {
			return err
		}
		s.forget()
	}
	if err := s.fs.SyncDir(parent); err != nil {
		return fmt.Errorf("syncing %s: %w", parent, err)
	}
	return s.sweepReplaced(x)
}

// hasContent reports a partition whose content is of the version, or a newer one
// of the job.
func (s *Sink) hasContent(x replacement) (bool, error) {
	have, err := s.content(x.dir)
	if errors.Is(err, vfs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return have.Job == s.owner.Job.String() && have.Content >= x.Version, nil
}

// fill makes the new directory: all parts and the record, durable. What a try
// before has put there stays.
func (s *Sink) fill(x replacement) error {
	parent := s.fs.Dir(x.dir)
	if err := s.durableDir(parent); err != nil {
		return fmt.Errorf("making %s: %w", parent, err)
	}
	if err := s.fs.Mkdir(x.next); err != nil && !errors.Is(err, vfs.ErrExist) {
		return fmt.Errorf("making %s: %w", x.next, err)
	}
	// Before anything is moved there: a crash must not take the directory.
	if err := s.fs.SyncDir(parent); err != nil {
		return fmt.Errorf("syncing %s: %w", parent, err)
	}
	for i, p := range x.parts {
		if err := s.putPart(x.next, x.Parts[i].Header.ID, p); err != nil {
			return err
		}
	}
	b, err := contentRecord{Version: contentVersion, Job: s.owner.Job.String(), Content: x.Version}.encode()
	if err != nil {
		return err
	}
	if err := s.writeWhole(s.fs.Join(x.next, contentFile), b); err != nil {
		return fmt.Errorf("writing content record: %w", err)
	}
	if err := s.fs.SyncDir(x.next); err != nil {
		return fmt.Errorf("syncing %s: %w", x.next, err)
	}
	return nil
}

// putPart moves a sealed part into a new directory, if a try before has not.
func (s *Sink) putPart(dir string, id connector.ArtifactID, p payload) error {
	to := s.fs.Join(dir, s.fs.Base(s.path(p.final)))
	err := s.isPublished(to, p)
	if !errors.Is(err, vfs.ErrNotExist) {
		return err
	}
	for _, src := range s.sealedNames(p) {
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
		if err := s.fs.RenameNoReplace(src, to); err != nil {
			return fmt.Errorf("moving %s: %w", src, err)
		}
		return nil
	}
	return fmt.Errorf("part %s is neither sealed nor placed: %w", id, vfs.ErrNotExist)
}

func (s *Sink) sealedNames(p payload) []string {
	return []string{s.path(p.staged), s.path(fencedForm(p.staged))}
}

// swap puts the new directory in place of the partition's. Of an unpartitioned
// table that is the table's own, whose staging directory goes along.
func (s *Sink) swap(x replacement) error {
	if err := s.owned(); err != nil {
		return err
	}
	if x.TablePartition == "" {
		if err := s.fs.Exchange(x.next, x.dir); err != nil {
			return fmt.Errorf("exchanging %s: %w", x.dir, err)
		}
		return s.bringStaging(x.next)
	}
	for range 2 {
		err := s.fs.RenameNoReplace(x.next, x.dir)
		if err == nil {
			return nil
		}
		if !errors.Is(err, vfs.ErrExist) {
			return fmt.Errorf("placing %s: %w", x.dir, err)
		}
		err = s.fs.Exchange(x.next, x.dir)
		if err == nil {
			return nil
		}
		// Somebody may drop old partitions while the job runs.
		if !errors.Is(err, vfs.ErrNotExist) {
			return fmt.Errorf("exchanging %s: %w", x.dir, err)
		}
	}
	return fmt.Errorf("placing %s: it comes and goes", x.dir)
}

// bringStaging moves the staging directory out of what stood in the table's place.
func (s *Sink) bringStaging(old string) error {
	// The exchange first: else a crash could bring the table back without it.
	if err := s.fs.SyncDir(s.fs.Dir(s.dir)); err != nil {
		return fmt.Errorf("syncing %s: %w", s.fs.Dir(s.dir), err)
	}
	err := s.fs.RenameNoReplace(s.fs.Join(old, stagingDir), s.fs.Join(s.dir, stagingDir))
	if err != nil && !errors.Is(err, vfs.ErrNotExist) {
		return fmt.Errorf("moving %s of %s: %w", stagingDir, old, err)
	}
	for _, dir := range []string{s.dir, old} {
		if err := s.fs.SyncDir(dir); err != nil {
			return fmt.Errorf("syncing %s: %w", dir, err)
		}
	}
	return nil
}

// finishReplace completes the replacing of an unpartitioned table that a crash cut
// short between the exchange and the move of the staging directory.
func (s *Sink) finishReplace() error {
	if len(s.partNames) > 0 || s.linkless {
		return nil
	}
	if ok, err := vfs.Exists(s.fs, s.fs.Join(s.dir, stagingDir)); err != nil || ok {
		return err
	}
	names, err := s.replacedNames(s.dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		ok, err := vfs.Exists(s.fs, s.fs.Join(n, stagingDir))
		if err != nil {
			return err
		}
		if ok {
			return s.bringStaging(n)
		}
	}
	return nil
}

// replacedNames are the directories beside dir that were to take its place, or had
// it.
func (s *Sink) replacedNames(dir string) ([]string, error) {
	parent := s.fs.Dir(dir)
	names, err := s.fs.List(parent)
	if errors.Is(err, vfs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", parent, err)
	}
	var out []string
	for _, n := range names {
		if strings.HasPrefix(n, s.nextPrefix(dir)) {
			out = append(out, s.fs.Join(parent, n))
		}
	}
	return out, nil
}

// sweepReplaced removes what a finished replacement leaves: what stood there
// before, and what tries of versions up to its own left. A newer one's may hold its
// parts. It never removes a staging directory: that would be the table's own.
func (s *Sink) sweepReplaced(x replacement) error {
	names, err := s.replacedNames(x.dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		version, mine := strings.CutPrefix(s.fs.Base(n), s.nextPrefix(x.dir)+s.owner.Job.String()+"-")
		if v, err := strconv.ParseUint(version, 10, 64); mine && (err != nil || v > x.Version) {
			continue
		}
		if ok, err := vfs.Exists(s.fs, s.fs.Join(n, stagingDir)); err != nil || ok {
			return errors.Join(err, errStagingAside(n, ok))
		}
		if err := s.fs.RemoveAll(n); err != nil {
			return fmt.Errorf("removing %s: %w", n, err)
		}
	}
	return nil
}

func errStagingAside(dir string, aside bool) error {
	if !aside {
		return nil
	}
	return fmt.Errorf("%s holds the table's %s; start the job again", dir, stagingDir)
}

// ResolveReplace implements connector.Replacer. Content that is called published is
// made durable before: the exchange may have been seen by nobody but us.
func (s *Sink) ResolveReplace(ctx context.Context, rs []connector.Replacement) ([]connector.Outcome, error) {
	out := make([]connector.Outcome, len(rs))
	for i, r := range rs {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		x, err := s.replacement(r)
		if err == nil {
			out[i], err = s.resolveReplace(x)
		}
		if err != nil {
			return out, fmt.Errorf("resolving the replacement of %q: %w", r.TablePartition, err)
		}
	}
	return out, nil
}

func (s *Sink) resolveReplace(x replacement) (connector.Outcome, error) {
	done, err := s.hasContent(x)
	if err != nil {
		return connector.Unknown, err
	}
	if done {
		if err := s.fs.SyncDir(s.fs.Dir(x.dir)); err != nil {
			return connector.Unknown, err
		}
		if err := s.sweepReplaced(x); err != nil {
			return connector.Unknown, err
		}
		return connector.Published, nil
	}
	for _, p := range x.parts {
		found := false
		for _, name := range append(s.sealedNames(p), s.fs.Join(x.next, s.fs.Base(s.path(p.final)))) {
			err := s.isPublished(name, p)
			if found = err == nil; found {
				break
			}
			if !errors.Is(err, vfs.ErrNotExist) {
				return connector.Unknown, err
			}
		}
		if found {
			continue
		}
		// It may have been replaced meanwhile.
		if done, err := s.hasContent(x); err != nil || done {
			return connector.Published, err
		}
		return connector.Absent, nil
	}
	return connector.Sealed, nil
}

// probeExchange finds out early whether directories can be exchanged here: a job
// that overwrites would else fail at its end.
func (s *Sink) probeExchange(id connector.ArtifactID) error {
	dir := s.fs.Join(s.dir, stagingDir)
	a, b := s.fs.Join(dir, "probe-a-"+laneName(id)), s.fs.Join(dir, "probe-b-"+laneName(id))
	for _, d := range []string{a, b} {
		if err := s.fs.Mkdir(d); err != nil && !errors.Is(err, vfs.ErrExist) {
			return fmt.Errorf("making %s: %w", d, err)
		}
	}
	err := s.fs.Exchange(a, b)
	if errors.Is(err, vfs.ErrNotSupported) {
		err = fmt.Errorf("the filesystem of %s cannot exchange two directories in one step, so a partition of it cannot be replaced at once (not_yet): %w", s.prefix+s.dir, err)
	}
	return errors.Join(err, s.fs.RemoveAll(a), s.fs.RemoveAll(b))
}
