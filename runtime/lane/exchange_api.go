package lane

import (
	"context"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
)

// Exchange is the entrance of a keyed stage, as lanes see it. The keyed stage
// implements it; the lane calls it. There is one for each exchange node of a
// job whose input is a lane.
//
// A lane takes no part in barriers. Each [Inlet] remembers, under one lock, the
// position behind the last hand-over; a barrier takes that lock, reads the
// position and enters the channels between two hand-overs. So a lane that is
// blocked, backing off or quarantined answers every barrier with its last
// hand-over position, and the watermarks it last handed over hold.
type Exchange interface {
	// Restored gives the hand-over positions of the lane's source partitions
	// in the checkpoint that the stage was restored from: everything below is
	// folded. Partitions without one start where the ledger says. It is called
	// before each Attach.
	Restored(ctx context.Context, lane connector.LaneID) ([]ledger.Cursor, error)

	// Attach opens the entrance for one attempt of a lane. Lower epochs of the
	// lane are cut off: their HandOver fails with connector.ErrFenced.
	Attach(ctx context.Context, a Attachment) (Inlet, error)
}

// Attachment says who hands over.
type Attachment struct {
	Lane  connector.LaneID
	Epoch uint64
	// Topic is the topic's name, for ordering and for people.
	Topic string
	// Partitions are the lane's source partitions; batch.Run.Partition is an
	// index into them. Those listed count as active from now on and hold the
	// stage's watermark back until they hand over one, or are idle.
	Partitions []connector.Partition
	// Start are the positions that the lane goes on from, one a partition:
	// what a barrier answers before the first hand-over.
	Start []ledger.Cursor
}

// Inlet is one attempt's entrance. It belongs to one goroutine at a time.
type Inlet interface {
	// HandOver gives the selected rows to the stage, all or nothing, and with
	// them the positions behind them. It waits for room in the channels (the
	// lane does not hold its run token then); when ctx ends it first, nothing
	// was taken. The batch is the stage's from then on: the lane never touches
	// its memory again. A hand-over may have no rows (positions and watermarks
	// alone move).
	//
	// Every row has no error in a key, in the row time in use or in an
	// aggregate argument, and is not late: the lane has decided that.
	HandOver(ctx context.Context, h *Handover) error

	// Idle says that a partition has nothing to read and no longer holds the
	// watermark. It travels in the channels like a row.
	Idle(ctx context.Context, partition int32) error

	// Rejoin marks an idle partition active again and gives the bound up to
	// which the stage has fired, in milliseconds (batch.NoWatermark: nothing
	// yet). Until it returns the lane hands over nothing of the partition; a
	// row all of whose windows end at or before the bound is late, reason
	// batch.CodeLateIdle.
	Rejoin(ctx context.Context, partition int32) (firedBound int64, err error)

	// Close ends the attempt (stop, back-off, quarantine). Positions and
	// watermarks stay as they are.
	Close() error
}

// Handover is what goes over in one piece.
type Handover struct {
	// Batch are the rows: the exchange node's input columns, with Runs,
	// OffsetDelta and RowIndex, so that (topic, partition, offset, row index)
	// orders them. Watermark is nil, except where a row may be late for some of
	// its windows: then it is what decides that, by row.
	Batch *batch.Batch
	// Sel are the rows that go over; nil: all.
	Sel batch.Sel
	// Moved are the new positions of the partitions that moved.
	Moved []Moved
}

// Moved is one partition's position behind a hand-over.
type Moved struct {
	// Partition is an index into Attachment.Partitions.
	Partition int32
	// Watermark is the partition's own, in milliseconds, after the last
	// record; batch.MaxWatermark when the partition has ended.
	Watermark int64
	// Cursor is what goes into the checkpoint, and into the ledger when the
	// checkpoint is complete (ledger.Ledger.Append): position and counts of
	// everything below it. Counts.Folded already counts the rows handed over.
	Cursor ledger.Cursor
}
