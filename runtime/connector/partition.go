package connector

import "context"

// PartitionValue is one column of a table partition.
type PartitionValue struct {
	Column, Value string
	// Null: Value is the table's name for NULL.
	Null bool
}

// PartitionFacts are what readers are told of a table partition that is complete.
type PartitionFacts struct {
	// Database is "" where the table's system has none.
	Database, Table string
	TablePartition  string
	Values          []PartitionValue
	// Location is where its files lie.
	Location     string
	Files, Bytes int64
	// Rows is -1 when some file does not tell.
	Rows int64
}

// ValueMap are the values by column; nil stands for NULL.
func (p *PartitionFacts) ValueMap() map[string]*string {
	out := make(map[string]*string, len(p.Values))
	for i := range p.Values {
		v := &p.Values[i]
		out[v.Column] = nil
		if !v.Null {
			out[v.Column] = &v.Value
		}
	}
	return out
}

// PartitionDescriber is a PartitionCommitter that can tell what a table partition
// holds. A sink whose CommitPolicy names a readiness topic is one.
type PartitionDescriber interface {
	// DescribePartition looks at the partition's files, whoever wrote them. known
	// gives the rows of files by Artifact.Location, and may be nil; the other files
	// are asked themselves.
	DescribePartition(ctx context.Context, tablePartition string, known func(path string) (rows int64, ok bool)) (PartitionFacts, error)
}
