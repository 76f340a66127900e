package hive

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/connectors/hive/metastore"
	"github.com/millrace/millrace/runtime/connector"
)

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
			Hint: "create it again at " + s.registered + ": its files are there"}
	}
	if err != nil {
		return nil, fmt.Errorf("looking up table %s.%s: %w", s.opts.database, s.opts.table, err)
	}
	e := &MismatchError{Database: t.Database, Table: t.Name, Differences: writable(t)}
	if loc := tableLocation(t); loc != s.registered {
		e.Differences = append(e.Differences, fmt.Sprintf("it was moved to %s while this job writes to %s", t.Storage.Location, s.registered))
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
// in its own directory, or in a version of it, at one of the table's homes.
func (s *Sink) ours(p *announcement) error {
	loc := normal(p.there.Storage.Location)
	v, ok := s.version(loc)
	if own := s.location + "/" + p.name; loc != own && !(ok && v.TablePartition == p.name) && !s.atOther(loc, p.name) {
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
