package hive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/connectors/hive/metastore"
	"github.com/millrace/millrace/runtime/connector"
)

// paramVersion is the property that says which content a partition, or a table
// without partitions, has: "<job>:<version>".
const paramVersion = "millrace.version"

var (
	_ connector.ReplacingConnector = (*Connector)(nil)
	_ connector.Replacer           = (*Sink)(nil)
)

// ReplaceMode implements connector.ReplacingConnector.
func (c *Connector) ReplaceMode(t *connector.Table) (connector.ReplaceMode, string) {
	opts, err := c.tableOptions(t)
	if err == nil && len(t.PartitionKeys) > 0 && !opts.policies.Metastore {
		return connector.ReplaceNever, "only the metastore can replace the content of a partition at once: '" + keyPolicy + "' needs 'metastore'"
	}
	if err == nil && opts.late == lateSide {
		return connector.ReplaceNever, "not_yet: a table whose late rows go to a table of their own"
	}
	if _, ok := c.files.Second(t.Options); ok {
		return connector.ReplaceNever, "not_yet: a table with a standby: its parts are pointed to when the input has ended, and a switch before that would leave them at both clusters"
	}
	return connector.ReplaceOnRequest, ""
}

// openWriter is OpenWriter of this table alone: parts of a replacement are sealed as
// any other file.
func (s *Sink) openWriter(ctx context.Context, a connector.Attempt) (connector.Writer, error) {
	a.Replace = false
	return s.Sink.OpenWriter(ctx, a)
}

// Replace implements connector.Replacer: the parts go into a directory that nobody
// reads yet, a version, and then the metastore's location is pointed there: one
// row of its database, so that a reader plans with the old files or the new ones.
func (s *Sink) Replace(ctx context.Context, rs []connector.Replacement) []error {
	s.announcing.Lock()
	defer s.announcing.Unlock()
	errs := make([]error, len(rs))
	// Invariant 9: a process whose table was taken over replaces nothing.
	stopped := s.Owned()
	for i, r := range rs {
		if stopped == nil {
			stopped = ctx.Err()
		}
		if stopped != nil {
			errs[i] = fmt.Errorf("replacing %q: not tried: %w", r.TablePartition, stopped)
			continue
		}
		if err := s.replace(ctx, r); err != nil {
			errs[i], stopped = fmt.Errorf("replacing %q: %w", r.TablePartition, err), err
		}
	}
	return errs
}

func (s *Sink) replace(ctx context.Context, r connector.Replacement) error {
	at, err := s.entry(ctx, r.TablePartition)
	if err != nil {
		return err
	}
	if at.has(s.owner.Job, r.Version) {
		if v, ok := s.version(at.location()); ok && r.TablePartition == "" {
			s.whole = v
		}
		return nil
	}
	v := s.versionOf(r)
	replaced, err := s.replacedBy(at, r.TablePartition)
	if err != nil {
		return err
	}
	record := filesystem.VersionRecord{Job: s.owner.Job.String(), Content: r.Version, Replaced: replaced}
	if err := s.MakeVersion(ctx, v, record, r.Parts); err != nil {
		return err
	}
	for i := range r.Parts {
		s.knowAt(v, &r.Parts[i])
	}
	// A process that was slow up to here may have been replaced meanwhile.
	if err := s.Owned(); err != nil {
		return err
	}
	if err := s.point(ctx, at, v, contentOf(s.owner.Job, r.Version)); err != nil {
		return err
	}
	s.garbage.add(r.TablePartition, s.now().Add(s.opts.retention))
	s.collect(ctx)
	return nil
}

// versionOf is the directory of a replacement: of the job's own, whoever had the
// table before.
func (s *Sink) versionOf(r connector.Replacement) filesystem.Version {
	return filesystem.Version{TablePartition: r.TablePartition, Name: fmt.Sprintf("v%d-%s", r.Version, s.owner.Job)}
}

func contentOf(job connector.UUID, version uint64) string {
	return job.String() + ":" + strconv.FormatUint(version, 10)
}

// entry is what the metastore says of a table partition, or of a table without
// partitions.
type entry struct {
	table     *metastore.Table
	partition *metastore.Partition // nil: not registered, or the table has none
	name      string
	values    []string
}

// entry asks the metastore, after checking that the table is still as it was.
func (s *Sink) entry(ctx context.Context, tablePartition string) (*entry, error) {
	e := &entry{name: tablePartition}
	if (tablePartition == "") != (len(s.schema.keys) == 0) {
		return nil, fmt.Errorf("%q is no partition of table %s.%s", tablePartition, s.opts.database, s.opts.table)
	}
	var err error
	if e.table, err = s.current(ctx); err != nil || tablePartition == "" {
		return e, err
	}
	p := &announcement{name: tablePartition}
	if p.values, err = s.values(tablePartition); err != nil {
		return nil, err
	}
	e.values = p.values
	if err := s.look(ctx, []*announcement{p}); err != nil {
		return nil, err
	}
	if e.partition = p.there; e.partition != nil {
		err = s.ours(p)
	}
	return e, err
}

func (e *entry) parameters() map[string]string {
	switch {
	case e.partition != nil:
		return e.partition.Parameters
	case len(e.values) == 0:
		return e.table.Parameters
	}
	return nil
}

func (e *entry) location() string {
	switch {
	case e.partition != nil:
		return e.partition.Storage.Location
	case len(e.values) == 0:
		return e.table.Storage.Location
	}
	return ""
}

// has reports content of the job that is of the version, or of a newer one.
func (e *entry) has(job connector.UUID, version uint64) bool {
	n, ok := strings.CutPrefix(e.parameters()[paramVersion], job.String()+":")
	if !ok {
		return false
	}
	have, err := strconv.ParseUint(n, 10, 64)
	return err == nil && have >= version
}

// version is the version that an entry points to; !ok: the partition's own
// directory.
func (s *Sink) version(location string) (filesystem.Version, bool) {
	rel, ok := strings.CutPrefix(normal(location), s.location+"/")
	if !ok {
		return filesystem.Version{}, false
	}
	return filesystem.ParseVersion(rel)
}

// replacedBy are the files of the partition's own directory that a content which
// is made now takes the place of: all that are there, and those of which the
// content before says so, though they may be gone: who asks for one of them must
// learn that it was published.
func (s *Sink) replacedBy(at *entry, tablePartition string) ([]string, error) {
	names, err := s.Files(tablePartition)
	if err != nil {
		return nil, err
	}
	if v, ok := s.version(at.location()); ok {
		r, err := s.VersionRecord(v)
		if err != nil {
			return nil, err
		}
		names = append(names, r.Replaced...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// point makes the metastore's entry one of a version, with its statistics.
func (s *Sink) point(ctx context.Context, at *entry, v filesystem.Version, content string) error {
	files, err := s.Inventory(ctx, v.Dir(), s.known)
	if err != nil {
		return err
	}
	p := &announcement{name: at.name, values: at.values, files: files, version: v, content: content}
	if at.name == "" {
		t := at.table.Clone()
		t.Parameters = parametersOf(t.Parameters)
		t.Storage.Location = s.partitionLocation(p)
		s.describe(t.Parameters, p)
		err := s.client.AlterTable(ctx, t, false)
		if err == nil {
			s.whole = v
		}
		return wrap(err, "pointing table %s.%s to %s", s.opts.database, s.opts.table, v.Dir())
	}
	if at.partition == nil {
		if err := s.add(ctx, at.table, []*announcement{p}); err != nil {
			return err
		}
		// One that was added meanwhile is not what we have made.
		if err := s.look(ctx, []*announcement{p}); err != nil {
			return err
		}
	} else {
		p.there = at.partition
	}
	if p.err == nil {
		if err := s.alter(ctx, []*announcement{p}); err != nil {
			return err
		}
	}
	return p.err
}

// ResolveReplace implements connector.Replacer.
func (s *Sink) ResolveReplace(ctx context.Context, rs []connector.Replacement) ([]connector.Outcome, error) {
	out := make([]connector.Outcome, len(rs))
	for i, r := range rs {
		var err error
		if out[i], err = s.resolveReplace(ctx, r); err != nil {
			return out, fmt.Errorf("resolving the replacement of %q: %w", r.TablePartition, err)
		}
	}
	return out, nil
}

func (s *Sink) resolveReplace(ctx context.Context, r connector.Replacement) (connector.Outcome, error) {
	for look := range 2 {
		at, err := s.entry(ctx, r.TablePartition)
		if err != nil {
			return connector.Unknown, err
		}
		if at.has(s.owner.Job, r.Version) {
			if v, ok := s.version(at.location()); ok {
				s.pointed(v)
				if err := s.SyncVersion(v); err != nil {
					return connector.Unknown, err
				}
			}
			return connector.Published, nil
		}
		// Parts that are gone may have been published, and removed since.
		if out, err := s.VersionOutcome(s.versionOf(r), r.Parts); err != nil || out == connector.Sealed || look == 1 {
			return out, err
		}
	}
	return connector.Absent, nil
}

// pointed notes the version that a table without partitions points to: an answer
// of the metastore may have been lost.
func (s *Sink) pointed(v filesystem.Version) {
	if v.TablePartition == "" {
		s.announcing.Lock()
		s.whole = v
		s.announcing.Unlock()
	}
}

var errVisible = errors.New("it is published")

// discard removes an artefact of this table; of parts that a replacement which was
// overtaken has left, too.
func (s *Sink) discard(ctx context.Context, a connector.Artifact) error {
	in, published, err := s.InVersions(ctx, a)
	if err != nil {
		return err
	}
	if published {
		return errVisible
	}
	for _, v := range in {
		at, err := s.entry(ctx, a.Header.TablePartition)
		if err != nil {
			return err
		}
		if cur, ok := s.version(at.location()); ok && cur == v {
			return errVisible
		}
		if err := s.RemoveFromVersion(v, a); err != nil {
			return err
		}
	}
	return s.Sink.Discard(ctx, []connector.Artifact{a})
}

// moved reports an artefact whose file lies in a version by now, or was replaced
// by one: it is published.
func (s *Sink) moved(ctx context.Context, a connector.Artifact) (bool, error) {
	_, published, err := s.InVersions(ctx, a)
	return published, err
}

// knowAt remembers the rows of a part under the name that it has in a version.
func (s *Sink) knowAt(v filesystem.Version, a *connector.Artifact) {
	i := strings.LastIndexByte(a.Location, '/')
	dir := a.Location[:i]
	root := strings.TrimSuffix(dir, a.Header.TablePartition)
	moved := *a
	moved.Location = strings.TrimSuffix(root, "/") + "/" + v.Dir() + a.Location[i:]
	s.know(&moved)
}

// parametersOf is a copy of properties, never nil.
func parametersOf(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}
