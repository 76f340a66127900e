package hive

import (
	"context"

	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/connectors/hive/metastore"
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
