package hive

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace/connectors/filesystem"
)

// What is done with rows that come for a partition which was announced.
const (
	lateAppend  = "append"
	lateRewrite = "rewrite"
	lateSide    = "side-table"
)

// wantsMerge reports a partition whose files are to be written again as fewer.
func (s *Sink) wantsMerge(p *announcement) bool {
	late := s.opts.late == lateRewrite && p.there != nil
	if !s.opts.merge && !late || p.files.Files < 2 {
		return false
	}
	return p.files.Bytes/p.files.Files < s.opts.mergeBytes/2
}

// merge writes the files of a partition again, as a version that its entry is then
// pointed to: readers see the one or the other. The files stay for the retention;
// that they are replaced is in the version's record before anything is removed.
// Files that others wrote are left as they are.
func (s *Sink) merge(ctx context.Context, p *announcement) error {
	versions, err := s.Versions(ctx, p.name)
	if err != nil {
		return err
	}
	// A number that no try before has used: what it left is not touched.
	n := 1
	for _, v := range versions {
		var k int
		if _, err := fmt.Sscanf(v.Name, "c%d-", &k); err == nil {
			n = max(n, k+1)
		}
	}
	v := filesystem.Version{TablePartition: p.name, Name: fmt.Sprintf("c%d-%s-%d", n, s.owner.Job, s.owner.JobEpoch)}
	record := filesystem.VersionRecord{Job: s.owner.Job.String()}
	dir := p.name
	if p.version.Name != "" {
		dir = p.version.Dir()
		before, err := s.VersionRecord(p.version)
		if err != nil {
			return err
		}
		record.Content, record.Replaced = before.Content, before.Replaced
	}
	names, err := s.Files(dir)
	if err != nil {
		return err
	}
	record.Replaced = append(slices.Clone(record.Replaced), names...)
	slices.Sort(record.Replaced)
	record.Replaced = slices.Compact(record.Replaced)
	err = s.MakeVersion(ctx, v, record, nil)
	if err == nil {
		err = s.Merge(ctx, v, dir, names, s.opts.mergeBytes)
	}
	if err != nil {
		// Nobody reads it.
		err = errors.Join(err, s.RemoveVersion(v))
		if errors.Is(err, filesystem.ErrNotMerged) {
			return nil
		}
		return fmt.Errorf("merging the files of partition %s: %w", p.name, err)
	}
	p.version = v
	p.files, err = s.Inventory(ctx, v.Dir(), s.known)
	s.garbage.add(p.name, s.now().Add(s.opts.retention))
	return err
}
