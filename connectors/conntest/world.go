package conntest

import (
	"context"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/offsets"
	"github.com/millrace/millrace/runtime/types"
)

// World is a table in some system, empty when made.
type World interface {
	// Open opens a sink of the table whose columns are [Columns], partitioned
	// by the last of them where the connector knows partitions.
	Open(ctx context.Context, o connector.Owner) (connector.Sink, error)
	// Visible gives the ids of all rows that a reader sees now, in any order,
	// a row that is there twice twice.
	Visible(t testing.TB) []int64
}

// FaultWorld is a World whose operations can be counted, made to fail and cut
// off.
type FaultWorld interface {
	World
	// Operations is the number of operations so far.
	Operations() int
	// FailAt makes the operation of that number fail once; negative: none.
	FailAt(op int)
	// CrashAt cuts the power before the operation of that number: it and all
	// later ones fail.
	CrashAt(op int)
	// AfterCrash is the world as the next process finds it; the choice of
	// what unsynced data survives is made from the seed.
	AfterCrash(seed uint64) FaultWorld
}

// SharedWorld is a World whose table many jobs may write at the same time, as a
// topic: it has no owner, and only runs of one job fence each other.
type SharedWorld interface {
	World
	Shared()
}

// Columns are the columns of the suite's table: an id that tells rows apart, a
// text, and a table partition.
func Columns() []connector.Column {
	return []connector.Column{
		{Field: types.Field{Name: "id", Type: types.NewBigInt()}},
		{Field: types.Field{Name: "name", Type: types.NewString()}},
		{Field: types.Field{Name: "dt", Type: types.NewString()}},
	}
}

// partitions are the values of dt that the suite's rows have in turn.
var partitions = [...]string{"2024-05-01", "2024-05-02"}

// Rows makes a batch of n rows with ids from first on.
func Rows(first int64, n int) *batch.Batch {
	b := new(batch.Batch)
	s := &batch.Schema{}
	for _, c := range Columns() {
		s.Fields = append(s.Fields, c.Field)
	}
	b.Reset(s)
	for i := range b.Cols {
		b.Cols[i].Reset(s.Fields[i].Type, n)
	}
	text := func(c int, s string) {
		v := &b.Cols[c]
		v.Data = append(v.Data, s...)
		v.Offsets = append(v.Offsets, int32(len(v.Data)))
	}
	for i := range n {
		b.Cols[0].I64[i] = first + int64(i)
		text(1, "row")
		text(2, partitions[i%len(partitions)])
	}
	b.Len = n
	b.Runs = []batch.Run{{Rows: int32(n), BaseOffset: first, EndOffset: first + int64(n)}}
	return b
}

// UUID is a fixed UUID for a test.
func UUID(n byte) connector.UUID { return connector.UUID{0: n, 15: n} }

// OwnerOf is an owner of the suite's table.
func OwnerOf(job byte, epoch uint64) connector.Owner {
	return connector.Owner{Job: UUID(job), DataDirectory: UUID(200), JobEpoch: epoch, JobName: "suite"}
}

// lane is the lane that the suite writes as.
var lane = connector.LaneID{Topic: UUID(7), Set: 1}

func attempt(job byte, epoch uint64) connector.Attempt {
	return connector.Attempt{ID: connector.ArtifactID{Job: UUID(job), Table: UUID(9), Lane: lane, Epoch: epoch}, MemoryBytes: 16 << 20}
}

// sealAll writes rows and seals every bucket.
func sealAll(ctx context.Context, w connector.Writer, a connector.Attempt, seq *uint64, first int64, n int) ([]connector.Artifact, error) {
	if err := writeRows(w, first, n); err != nil {
		return nil, err
	}
	var reqs []connector.SealRequest
	for _, b := range w.Open() {
		id := a.ID
		id.Sequence = *seq
		*seq++
		reqs = append(reqs, connector.SealRequest{Bucket: b.ID, Header: connector.Header{ID: id, TablePartition: b.TablePartition, Rows: b.Rows,
			Inputs: []connector.Input{{Topic: lane.Topic, Offsets: offsets.Of(first, first+int64(n))}}}})
	}
	return w.Seal(ctx, reqs)
}

func writeRows(w connector.Writer, first int64, n int) error {
	b := Rows(first, n)
	ids, err := w.Buckets(b, nil, nil)
	if err != nil {
		return err
	}
	sels := map[connector.BucketID]batch.Sel{}
	var order []connector.BucketID
	for i, id := range ids {
		if sels[id] == nil {
			order = append(order, id)
		}
		sels[id] = append(sels[id], int32(i))
	}
	for _, id := range order {
		if err := w.Write(b, sels[id], id); err != nil {
			return err
		}
	}
	return nil
}
