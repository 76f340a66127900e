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
	return connector.CommitPolicy{Trigger: s.opts.trigger, Delay: s.opts.delay, Time: s.opts.time,
		OneByOne: s.opts.command != nil, Readiness: s.opts.readiness}
}

// CommitPartition writes the success file and runs the command, as the table's
// policies have it. A partition that got late rows is announced again: by a new file
// of the same name, and by another run of the command. The topic that is told of it
// belongs to the engine.
func (s *Sink) CommitPartition(ctx context.Context, tablePartition string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !s.opts.policies.Any() {
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
	if s.opts.policies.Success {
		if err := s.WriteSuccess(tablePartition); err != nil {
			return err
		}
	}
	if s.opts.command == nil {
		return nil
	}
	p, err := s.DescribePartition(ctx, tablePartition, nil)
	if err != nil {
		return err
	}
	return s.RunCommand(ctx, &p)
}

// RunCommand runs the command of policy custom for a partition, if the table has one.
func (s *Sink) RunCommand(ctx context.Context, p *connector.PartitionFacts) error {
	if s.opts.command == nil {
		return nil
	}
	// Invariant 9: a process whose table was taken over announces nothing.
	if err := s.owned(); err != nil {
		return err
	}
	return s.opts.command.run(ctx, s.owner.JobName, s.commandLock(), p)
}

// DescribePartition implements connector.PartitionDescriber.
func (s *Sink) DescribePartition(ctx context.Context, tablePartition string, known func(path string) (rows int64, ok bool)) (connector.PartitionFacts, error) {
	p := connector.PartitionFacts{Table: s.table.Name, TablePartition: tablePartition, Location: s.prefix + s.dir}
	if tablePartition != "" {
		p.Location = s.prefix + s.path(tablePartition)
	}
	var err error
	if p.Values, err = s.partitionValues(tablePartition); err != nil {
		return p, err
	}
	if known == nil {
		known = func(string) (int64, bool) { return 0, false }
	}
	have, err := s.Inventory(ctx, tablePartition, known)
	p.Files, p.Bytes, p.Rows = have.Files, have.Bytes, have.Rows
	return p, err
}

// partitionValues are the values in a table partition's name.
func (s *Sink) partitionValues(tablePartition string) ([]connector.PartitionValue, error) {
	vals, err := parsePartition(tablePartition, s.opts.defaultName)
	if err != nil {
		return nil, err
	}
	out := make([]connector.PartitionValue, len(vals))
	for i, v := range vals {
		out[i] = connector.PartitionValue{Column: v.name, Value: v.value, Null: v.null}
	}
	return out, nil
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
