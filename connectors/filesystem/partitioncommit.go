package filesystem

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/runtime/connector"
)

// CommitPolicy implements connector.PartitionCommitter.
func (s *Sink) CommitPolicy() connector.CommitPolicy {
	if len(s.partNames) == 0 {
		return connector.CommitPolicy{}
	}
	return connector.CommitPolicy{Trigger: s.opts.trigger, Delay: s.opts.delay, Time: s.opts.time}
}

// CommitPartition writes the success file. It is idempotent: a partition that
// got late rows is announced again by a new file of the same name.
func (s *Sink) CommitPartition(ctx context.Context, tablePartition string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.opts.policy == "" {
		return nil
	}
	if tablePartition != "" {
		vals, err := parsePartition(tablePartition, s.opts.defaultName)
		if err != nil {
			return err
		}
		if len(vals) != len(s.partNames) {
			return fmt.Errorf("table partition %q does not have the %d partition columns of the table", tablePartition, len(s.partNames))
		}
	}
	return s.WriteSuccess(tablePartition)
}

// WriteSuccess writes the success file into a directory of the table, over an
// older one; dir is relative to the table.
func (s *Sink) WriteSuccess(dir string) error {
	at := s.dir
	if dir != "" {
		at = s.path(dir)
	}
	if err := s.durableDir(at); err != nil {
		return fmt.Errorf("making %s: %w", at, err)
	}
	f, err := s.fs.Create(s.fs.Join(at, s.opts.success))
	if err != nil {
		return fmt.Errorf("announcing %s: %w", dir, err)
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = s.fs.SyncDir(at)
	}
	if err != nil {
		return fmt.Errorf("announcing %s: %w", dir, err)
	}
	return nil
}
