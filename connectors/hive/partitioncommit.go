package hive

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/connectors/hive/metastore"
	"github.com/millrace/millrace/runtime/connector"
)

// Properties of a partition: the owner's tag, and Hive's statistics.
const (
	paramJob      = "millrace.job"
	paramJobName  = "millrace.job.name"
	paramEpoch    = "millrace.epoch"
	paramFiles    = "numFiles"
	paramBytes    = "totalSize"
	paramRows     = "numRows"
	paramAccurate = "COLUMN_STATS_ACCURATE"
)

// announcement is a table partition on its way into the metastore.
type announcement struct {
	name   string // "dt=2024-05-01/hr=08", as in the path
	values []string
	// version is the content that the entry is to point to; none: the partition's
	// own directory. content is the new value of paramVersion, "": as it is.
	version filesystem.Version
	content string
	files   filesystem.Inventory
	there   *metastore.Partition
	err     error
}

// CommitPartition implements connector.PartitionCommitter.
func (s *Sink) CommitPartition(ctx context.Context, tablePartition string) error {
	return s.CommitPartitions(ctx, []string{tablePartition})[0]
}

// CommitPartitions implements connector.PartitionBatchCommitter. The order for
// each: its files are published by now, the metastore's entry, the success file, the
// command. The topic that is told of it belongs to the engine.
func (s *Sink) CommitPartitions(ctx context.Context, tablePartitions []string) []error {
	s.announcing.Lock()
	defer s.announcing.Unlock()
	parts := make([]*announcement, len(tablePartitions))
	for i, tp := range tablePartitions {
		parts[i] = &announcement{name: tp}
		parts[i].values, parts[i].err = s.values(tp)
	}
	// Invariant 9: a process whose table was taken over announces nothing.
	err := s.Owned()
	if err == nil && s.opts.policies.Metastore {
		err = s.register(ctx, parts)
	}
	errs := make([]error, len(parts))
	for i, p := range parts {
		if p.err == nil {
			p.err = err
		}
		if p.err == nil && s.opts.policies.Success {
			p.err = s.succeed(p)
		}
		if p.err == nil && s.opts.policies.Command {
			p.err = s.command(ctx, p)
		}
		errs[i] = p.err
	}
	if err == nil && s.opts.policies.Metastore {
		s.collect(ctx)
	}
	return errs
}

// succeed writes the success file, into the partition's own directory, too, when its
// entry points to a version.
func (s *Sink) succeed(p *announcement) error {
	if p.version.Name != "" {
		if err := s.WriteSuccess(p.version.Dir()); err != nil {
			return err
		}
	}
	return s.WriteSuccess(p.name)
}

// command runs the command of policy custom.
func (s *Sink) command(ctx context.Context, p *announcement) error {
	if !s.opts.policies.Metastore {
		// Else the statistics for the metastore are those.
		var err error
		if p.files, err = s.Inventory(ctx, p.name, s.known); err != nil {
			return err
		}
	}
	facts := s.facts(p)
	return s.RunCommand(ctx, &facts)
}

// DescribePartition implements connector.PartitionDescriber: what the metastore
// points to, or lies in the partition's own directory.
func (s *Sink) DescribePartition(ctx context.Context, tablePartition string, known func(path string) (rows int64, ok bool)) (connector.PartitionFacts, error) {
	s.announcing.Lock()
	defer s.announcing.Unlock()
	p := &announcement{name: tablePartition}
	var err error
	if p.values, err = s.values(tablePartition); err != nil {
		return connector.PartitionFacts{}, err
	}
	dir := p.name
	if s.opts.policies.Metastore {
		if err := s.look(ctx, []*announcement{p}); err != nil {
			return connector.PartitionFacts{}, err
		}
		if p.there != nil {
			if v, ok := s.version(p.there.Storage.Location); ok {
				p.version, dir = v, v.Dir()
			}
		}
	}
	p.files, err = s.Inventory(ctx, dir, func(path string) (int64, bool) {
		if n, ok := s.known(path); ok || known == nil {
			return n, ok
		}
		return known(path)
	})
	return s.facts(p), err
}

// facts are what is told of a partition whose content is known.
func (s *Sink) facts(p *announcement) connector.PartitionFacts {
	f := connector.PartitionFacts{Database: s.opts.database, Table: s.opts.table, TablePartition: p.name, Location: s.partitionLocation(p),
		Files: p.files.Files, Bytes: p.files.Bytes, Rows: p.files.Rows}
	for i, v := range p.values {
		f.Values = append(f.Values, connector.PartitionValue{Column: s.schema.keys[i].Name, Value: v, Null: v == defaultPartition})
	}
	return f
}

// values are the partition's values as the metastore keeps them: text, and the
// default name for NULL.
func (s *Sink) values(tablePartition string) ([]string, error) {
	split, err := filesystem.SplitPartition(tablePartition)
	if err != nil {
		return nil, err
	}
	if len(split) != len(s.schema.keys) {
		return nil, fmt.Errorf("table partition %q does not have the %d partition columns of the table", tablePartition, len(s.schema.keys))
	}
	out := make([]string, len(split))
	for i, v := range split {
		if v.Column != s.schema.keys[i].Name {
			return nil, fmt.Errorf("table partition %q has the column %s in place of %s", tablePartition, v.Column, s.schema.keys[i].Name)
		}
		out[i] = v.Value
	}
	return out, nil
}

// register brings the metastore's entries up to what lies in the directories.
// An error of one partition is in it; what is returned concerns all.
func (s *Sink) register(ctx context.Context, parts []*announcement) error {
	table, err := s.current(ctx)
	if err != nil {
		return err
	}
	if err := s.look(ctx, parts); err != nil {
		return err
	}
	merged := false
	for _, p := range parts {
		if p.err == nil {
			p.err = s.content(ctx, p)
		}
		if p.err == nil && s.wantsMerge(p) {
			p.err, merged = s.merge(ctx, p), true
		}
	}
	if merged {
		// That took a while: the table may have been taken over.
		if err := s.Owned(); err != nil {
			return err
		}
	}
	if err := s.add(ctx, table, parts); err != nil {
		return err
	}
	// Those that others added between the two calls must be looked at, too.
	if err := s.look(ctx, parts); err != nil {
		return err
	}
	return s.alter(ctx, parts)
}

// content finds what a partition holds: the files in its own directory, or in the
// version that it points to, into which rows that were appended are moved.
func (s *Sink) content(ctx context.Context, p *announcement) (err error) {
	dir := p.name
	if p.there != nil {
		if err := s.ours(p); err != nil {
			return err
		}
		var ok bool
		if p.version, ok = s.version(p.there.Storage.Location); ok {
			if _, err := s.TakeIntoVersion(ctx, p.version); err != nil {
				return err
			}
			dir = p.version.Dir()
		}
	}
	p.files, err = s.Inventory(ctx, dir, s.known)
	return err
}

// current reads the table again: it may have been altered underneath.
func (s *Sink) current(ctx context.Context) (*metastore.Table, error) {
	t, err := s.client.Table(ctx, s.opts.database, s.opts.table)
	if errors.Is(err, metastore.ErrNoSuchObject) {
		return nil, &MismatchError{Database: s.opts.database, Table: s.opts.table, Differences: []string{"it was dropped while this job writes it"},
			Hint: "create it again at " + s.location + ": its files are there"}
	}
	if err != nil {
		return nil, fmt.Errorf("looking up table %s.%s: %w", s.opts.database, s.opts.table, err)
	}
	e := &MismatchError{Database: t.Database, Table: t.Name, Differences: writable(t)}
	if loc := tableLocation(t); loc != s.location {
		e.Differences = append(e.Differences, fmt.Sprintf("it was moved to %s while this job writes to %s", t.Storage.Location, s.location))
	}
	d := compare(t, s.schema)
	e.Differences = append(e.Differences, d.faults...)
	for _, col := range d.add {
		e.Differences = append(e.Differences, fmt.Sprintf("column %s (%s) was dropped there", col.Name, col.Type))
	}
	for _, col := range d.widen {
		e.Differences = append(e.Differences, fmt.Sprintf("column %s was made narrower than the %s here", col.Name, col.Type))
	}
	if len(e.Differences) > 0 {
		return nil, e
	}
	return t, nil
}

// look asks for those that are not known to be there.
func (s *Sink) look(ctx context.Context, parts []*announcement) error {
	var ask []string
	byValues := map[string]*announcement{}
	for _, p := range parts {
		if p.err == nil && p.there == nil {
			ask = append(ask, p.name)
			byValues[key(p.values)] = p
		}
	}
	if len(ask) == 0 {
		return nil
	}
	there, err := s.client.Partitions(ctx, s.opts.database, s.opts.table, ask)
	if err != nil {
		return fmt.Errorf("looking up partitions of table %s.%s: %w", s.opts.database, s.opts.table, err)
	}
	for _, x := range there {
		if p := byValues[key(x.Values)]; p != nil {
			p.there = x
		}
	}
	return nil
}

func key(values []string) string { return strings.Join(values, "\x00") }

// add adds those that are not there.
func (s *Sink) add(ctx context.Context, table *metastore.Table, parts []*announcement) error {
	var missing []*metastore.Partition
	byValues := map[string]*announcement{}
	for _, p := range parts {
		if p.err != nil || p.there != nil {
			continue
		}
		x := &metastore.Partition{Values: p.values, Database: table.Database, Table: table.Name, Storage: table.Storage.Clone(), Parameters: map[string]string{}}
		x.Storage.Location = s.partitionLocation(p)
		s.describe(x.Parameters, p)
		missing = append(missing, x)
		byValues[key(p.values)] = p
	}
	if len(missing) == 0 {
		return nil
	}
	return s.inOne(missing, byValues, "adding", func(list []*metastore.Partition) error {
		added, err := s.client.AddPartitions(ctx, table.Database, table.Name, list)
		for _, x := range added {
			if p := byValues[key(x.Values)]; p != nil {
				p.there = x
			}
		}
		return err
	})
}

// inOne makes a call with all partitions. When the metastore refuses it, each is
// tried alone: one with a name that the metastore does not take must not hold up
// the others. An error that is returned concerns all.
func (s *Sink) inOne(list []*metastore.Partition, byValues map[string]*announcement, doing string, call func([]*metastore.Partition) error) error {
	err := call(list)
	var fault *metastore.Fault
	if err != nil && !errors.As(err, &fault) {
		return fmt.Errorf("%s %d partitions of table %s.%s: %w", doing, len(list), s.opts.database, s.opts.table, err)
	}
	if err == nil {
		return nil
	}
	for _, x := range list {
		if len(list) > 1 {
			err = call([]*metastore.Partition{x})
		}
		if err == nil {
			continue
		}
		p := byValues[key(x.Values)]
		p.err = fmt.Errorf("%s partition %s of table %s.%s: %w", doing, p.name, s.opts.database, s.opts.table, err)
		if !errors.As(err, &fault) {
			return p.err
		}
	}
	return nil
}

// partitionLocation is where a partition's entry is to point.
func (s *Sink) partitionLocation(p *announcement) string {
	if p.version.Name != "" {
		return s.location + "/" + p.version.Dir()
	}
	return s.location + "/" + p.name
}

// describe sets a partition's tag, content and statistics among its properties and
// reports whether that changed anything.
func (s *Sink) describe(m map[string]string, p *announcement) (changed bool) {
	set := func(k, v string) {
		if m[k] != v {
			m[k], changed = v, true
		}
	}
	if p.content != "" {
		set(paramVersion, p.content)
	}
	set(paramJob, s.owner.Job.String())
	set(paramJobName, s.owner.JobName)
	set(paramEpoch, strconv.FormatUint(s.owner.JobEpoch, 10))
	set(paramFiles, strconv.FormatInt(p.files.Files, 10))
	set(paramBytes, strconv.FormatInt(p.files.Bytes, 10))
	if p.files.Rows >= 0 {
		set(paramRows, strconv.FormatInt(p.files.Rows, 10))
	} else if _, ok := m[paramRows]; ok {
		delete(m, paramRows)
		changed = true
	}
	// Column statistics that were right before are not any more.
	if _, ok := m[paramAccurate]; ok && changed {
		delete(m, paramAccurate)
	}
	return changed
}

// alter compares those that are there with ours and writes what differs.
func (s *Sink) alter(ctx context.Context, parts []*announcement) error {
	var changed []*metastore.Partition
	byValues := map[string]*announcement{}
	for _, p := range parts {
		if p.err != nil {
			continue
		}
		if p.there == nil {
			p.err = fmt.Errorf("partition %s of table %s.%s was added and is gone again", p.name, s.opts.database, s.opts.table)
			continue
		}
		if p.err = s.ours(p); p.err != nil {
			continue
		}
		x := p.there.Clone()
		x.Parameters = parametersOf(x.Parameters)
		changes := s.describe(x.Parameters, p)
		if normal(x.Storage.Location) != s.partitionLocation(p) {
			x.Storage.Location, changes = s.partitionLocation(p), true
		}
		if changes {
			changed = append(changed, x)
			byValues[key(p.values)] = p
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return s.inOne(changed, byValues, "altering", func(list []*metastore.Partition) error {
		return s.client.AlterPartitions(ctx, s.opts.database, s.opts.table, list)
	})
}

// ours checks that a partition of the metastore is the one that we write: it lies
// in its own directory, or in a version of it.
func (s *Sink) ours(p *announcement) error {
	loc := normal(p.there.Storage.Location)
	v, ok := s.version(loc)
	if own := s.location + "/" + p.name; loc != own && !(ok && v.TablePartition == p.name) {
		return fmt.Errorf("partition %s of table %s.%s lies at %s in the metastore, and its files are written to %s: another job owns it, or it was moved by hand; drop it from the metastore, without its data, to have it registered here",
			p.name, s.opts.database, s.opts.table, p.there.Storage.Location, own)
	}
	if p.there.Parameters[paramJob] != s.owner.Job.String() {
		// Untagged, or of a job that this one has taken the table over from:
		// the directory's owner record has said so.
		return nil
	}
	if epoch, err := strconv.ParseUint(p.there.Parameters[paramEpoch], 10, 64); err == nil && epoch > s.owner.JobEpoch {
		return fmt.Errorf("%w: partition %s of table %s.%s was announced by epoch %d of this job, this is epoch %d",
			connector.ErrFenced, p.name, s.opts.database, s.opts.table, epoch, s.owner.JobEpoch)
	}
	return nil
}
