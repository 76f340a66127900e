package hive

import (
	"context"
	"fmt"
	"strconv"

	"github.com/millrace/millrace/connectors/filesystem"
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
