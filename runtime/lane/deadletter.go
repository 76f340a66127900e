package lane

import (
	"cmp"
	"context"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// DeadLetters is where rows go that no table can hold; given from above.
// Methods may be called from any goroutine.
type DeadLetters interface {
	// Write appends entries durably. nil is the acknowledgement: only then
	// may an intent name their offsets or a resume position pass them. After
	// an error the outcome is unknown; the lane starts a new attempt and asks
	// Durable. Entries alias the lane's memory until Write returns.
	Write(ctx context.Context, entries []DeadEntry) error

	// Durable lists what is durable for a table at or above the given
	// position of each source partition: the entries of one record merged,
	// ascending by offset within a partition. Entries that a lane still has
	// in flight in Write need not be in it.
	Durable(ctx context.Context, table connector.UUID, topic connector.UUID, from map[int32]int64) ([]DeadRecord, error)
}

// DeadEntry says that rows of one record are dead for one table.
type DeadEntry struct {
	Job        connector.UUID
	Generation uint32
	// Table is the output's table id; TableName is for people.
	Table     connector.UUID
	TableName string
	// The record.
	TopicID   connector.UUID
	Topic     string
	Partition int32
	Offset    int64
	// Rows are the indexes of the dead rows among the record's decoded rows;
	// nil: the record as a whole (malformed), counted as one row.
	Rows []int32
	// Reason, Column and Message as in batch.ValueError, of the first row.
	Reason  batch.Code
	Column  string
	Message string
	// Attempts counts failed replays; 0 for a first failure.
	Attempts int32
	// Raw is the record as stored; zero when the source cannot give it.
	Raw connector.RawRecord
}

// DeadRecord is the merged durable entries of one record for one table.
type DeadRecord struct {
	Partition int32
	Offset    int64
	// Rows are the dead rows, ascending, with the reason of each; Whole means
	// the record as a whole, then Rows has one element with Index 0.
	Whole bool
	Rows  []DeadRow
}

// DeadRow is one dead row.
type DeadRow struct {
	Index  int32
	Reason batch.Code
	Column string
}

// MergeDead makes the answer of DeadLetters.Durable from entries in the order
// they were written: those of one record merged, of a row named twice the last.
func MergeDead(entries []DeadEntry, table, topic connector.UUID, from map[int32]int64) []DeadRecord {
	type key struct {
		partition int32
		offset    int64
	}
	index := map[key]int{}
	var out []DeadRecord
	for i := range entries {
		e := &entries[i]
		first, wanted := from[e.Partition]
		if e.Table != table || e.TopicID != topic || !wanted || e.Offset < first {
			continue
		}
		k := key{e.Partition, e.Offset}
		at, ok := index[k]
		if !ok {
			at = len(out)
			index[k] = at
			out = append(out, DeadRecord{Partition: e.Partition, Offset: e.Offset})
		}
		out[at].merge(e)
	}
	slices.SortFunc(out, func(a, b DeadRecord) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	return out
}

func (d *DeadRecord) merge(e *DeadEntry) {
	rows := e.Rows
	if rows == nil {
		d.Whole, rows = true, []int32{0}
	}
	for _, r := range rows {
		row := DeadRow{Index: r, Reason: e.Reason, Column: e.Column}
		i, ok := slices.BinarySearchFunc(d.Rows, r, func(x DeadRow, r int32) int { return cmp.Compare(x.Index, r) })
		if ok {
			d.Rows[i] = row
		} else {
			d.Rows = slices.Insert(d.Rows, i, row)
		}
	}
}
