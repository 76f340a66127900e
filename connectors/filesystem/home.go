package filesystem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// StandbyScheme is a Scheme whose tables can have a second home.
type StandbyScheme interface {
	Scheme
	// Standby gives the options of the table at its second home; ok is false when
	// it has none.
	Standby(v connector.Values) (s connector.StandbyPlace, ok bool)
}

var (
	_ connector.StandbyConnector = (*Connector)(nil)
	_ connector.HomeSink         = (*Sink)(nil)
	_ connector.PartitionNamer   = (*Writer)(nil)
)

// Second is a table's second home, if its scheme and its options name one.
func (c *Connector) Second(v connector.Values) (connector.StandbyPlace, bool) {
	s, ok := c.schemes[scheme(v.String(keyPath))].(StandbyScheme)
	if !ok {
		return connector.StandbyPlace{}, false
	}
	return s.Standby(v)
}

// Standby implements connector.StandbyConnector.
func (c *Connector) Standby(t *connector.Table) (*connector.Standby, error) {
	p, ok := c.Second(t.Options)
	if !ok {
		return nil, nil
	}
	if len(t.PartitionKeys) == 0 {
		return nil, &connector.OptionError{Key: p.Option,
			Message: "a table with a standby must be PARTITIONED BY something: what moves are partitions, and rows must end that can still move"}
	}
	there := *t
	there.Options = p.Options
	return &connector.Standby{Table: &there, Main: t.Options.String(keyPath), Standby: p.Options.String(keyPath), Auto: p.Auto, After: p.After}, nil
}

// probeFile is the file that Probe writes and removes.
const probeFile = "probe"

// Probe implements connector.HomeSink: a small file is written and removed.
func (s *Sink) Probe(ctx context.Context) error {
	name := s.fs.Join(s.dir, stagingDir, probeFile)
	if p, ok := s.fs.(interface {
		Probe(ctx context.Context, name string) error
	}); ok {
		return p.Probe(ctx, name)
	}
	if err := vfs.WriteFileAtomic(s.fs, name, []byte("probe")); err != nil {
		return fmt.Errorf("probing %s: %w", s.prefix+s.dir, err)
	}
	if err := s.fs.Remove(name); err != nil {
		return fmt.Errorf("probing %s: %w", s.prefix+s.dir, err)
	}
	return nil
}

// Retract implements connector.HomeSink: the files go into a directory of .staging.
// The staged names come first and last: a rename that is under way then finds
// nothing, or has come before the second look at the final name.
func (s *Sink) Retract(ctx context.Context, as []connector.Artifact) error {
	dir := s.fs.Join(s.dir, stagingDir, s.owner.Job.String(), voidDir)
	if err := s.durableDir(dir); err != nil {
		return fmt.Errorf("making %s: %w", dir, err)
	}
	for _, a := range as {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, err := decodePayload(a.Payload)
		if err == nil {
			err = s.retract(p, dir)
		}
		if err != nil {
			return fmt.Errorf("hiding %s: %w", a.Header.ID, err)
		}
	}
	return s.fs.SyncDir(dir)
}

// Purge implements connector.HomeSink.
func (s *Sink) Purge(ctx context.Context, as []connector.Artifact) error {
	dir := s.fs.Join(s.dir, stagingDir, s.owner.Job.String(), voidDir)
	names, err := s.fs.List(dir)
	if errors.Is(err, vfs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing %s: %w", dir, err)
	}
	kept := make(map[string]bool, len(names))
	for _, n := range names {
		kept[n] = true
	}
	for _, a := range as {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, err := decodePayload(a.Payload)
		if err != nil {
			return fmt.Errorf("removing what is void of %s: %w", a.Header.ID, err)
		}
		name := s.fs.Base(s.path(p.final))
		if !kept[name] {
			continue
		}
		if err := s.fs.Remove(s.fs.Join(dir, name)); err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return fmt.Errorf("removing what is void of %s: %w", a.Header.ID, err)
		}
	}
	return nil
}

func (s *Sink) retract(p payload, dir string) error {
	staged, fenced, final := s.path(p.staged), s.path(fencedForm(p.staged)), s.path(p.final)
	to := s.fs.Join(dir, s.fs.Base(final))
	for _, name := range []string{staged, fenced, final, staged, fenced, final} {
		_, err := s.fs.Stat(name)
		if errors.Is(err, vfs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = s.fs.Rename(name, to)
		}
		if errors.Is(err, vfs.ErrNotExist) {
			continue // it has just gone from here to one of the others
		}
		if err == nil {
			err = s.fs.SyncDir(s.fs.Dir(name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TablePartition implements connector.PartitionNamer.
func (w *Writer) TablePartition(id connector.BucketID) string { return w.names[id] }

// CopyFrom makes an artefact that is published at the other home of the table published
// here, under the same name.
func (s *Sink) CopyFrom(ctx context.Context, from *Sink, a connector.Artifact) error {
	// Invariant 9: a process whose table was taken over publishes nothing.
	err := s.owned()
	var p payload
	if err == nil {
		p, err = decodePayload(a.Payload)
	}
	if err == nil {
		err = s.copyFrom(ctx, from, p)
	}
	if err != nil {
		return fmt.Errorf("copying %s to %s: %w", a.Location, s.prefix+s.dir, err)
	}
	return nil
}

// copyFrom copies under a name that no reader looks at, and renames what is synced.
func (s *Sink) copyFrom(ctx context.Context, from *Sink, p payload) error {
	if err := from.isPublished(from.path(p.final), p); err != nil {
		return err
	}
	src, err := from.fs.Open(from.path(p.final))
	if err != nil {
		return err
	}
	defer src.Close()
	dir := s.fs.Join(s.dir, stagingDir, s.owner.Job.String(), takenDir)
	if err := s.durableDir(dir); err != nil {
		return err
	}
	final := s.path(p.final)
	name := s.fs.Join(dir, s.fs.Base(final))
	// What an earlier try left, under this name or one that begins with it.
	names, err := s.fs.List(dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		if !strings.HasPrefix(n, s.fs.Base(final)) {
			continue
		}
		if err := s.fs.Remove(s.fs.Join(dir, n)); err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return err
		}
	}
	f, err := s.fs.CreateNew(name)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, src)
	if err == nil && n != p.bytes {
		err = fmt.Errorf("%d bytes were read instead of %d", n, p.bytes)
	}
	if err == nil {
		err = syncFile(ctx, f)
	}
	name = f.Name() // on some systems a file gets it only now
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := s.durableDir(s.fs.Dir(final)); err != nil {
		return err
	}
	err = s.fs.RenameNoReplace(name, final)
	if errors.Is(err, vfs.ErrExist) {
		err = s.isPublished(final, p)
	}
	if err == nil {
		err = s.fs.SyncDir(s.fs.Dir(final))
	}
	return err
}
