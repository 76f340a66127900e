package node

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
)

// resumeFunc is the durable resume position of a table in a source partition,
// 0 for none.
type resumeFunc func(s ledger.Scope, k deadKey) int64

// deadIndex is the durable dead letters above the resume positions: below them
// nobody asks. So it is bounded by what a lane may have to read again, however
// many letters a topic holds (Invariant 8).
type deadIndex struct {
	resume resumeFunc // nil: everything is kept
	parts  map[deadKey]*deadPart
	size   int // records in all parts
	limit  int // size at which the next pruning is worth its while
}

// deadPart is the records of one table and source partition.
type deadPart struct {
	scope   ledger.Scope
	floor   int64 // below it records are forgotten
	records map[int64]*lane.DeadRecord
}

// pruneLeast is the number of records from which pruning begins.
const pruneLeast = 4096

func newDeadIndex(resume resumeFunc) deadIndex {
	return deadIndex{resume: resume, parts: map[deadKey]*deadPart{}, limit: pruneLeast}
}

// add merges an entry; rows are copied.
func (x *deadIndex) add(s ledger.Scope, k deadKey, offset int64, rows []int32, reason batch.Code, column string) {
	p := x.parts[k]
	if p == nil {
		p = &deadPart{scope: s, records: map[int64]*lane.DeadRecord{}}
		if x.resume != nil {
			p.floor = x.resume(s, k)
		}
		x.parts[k] = p
	}
	if offset < p.floor {
		return
	}
	r := p.records[offset]
	if r == nil {
		r = &lane.DeadRecord{Partition: k.partition, Offset: offset}
		p.records[offset] = r
		x.size++
	}
	if rows == nil {
		r.Whole = true
		r.Rows = []lane.DeadRow{{Reason: reason, Column: column}}
		return
	}
	if r.Whole {
		return
	}
	for _, i := range rows {
		at, found := slices.BinarySearchFunc(r.Rows, i, func(x lane.DeadRow, i int32) int { return int(x.Index - i) })
		if !found {
			r.Rows = slices.Insert(r.Rows, at, lane.DeadRow{Index: i, Reason: reason, Column: column})
		}
	}
}

// prune forgets what lies below the resume positions, when enough has been
// added since the last time.
func (x *deadIndex) prune() {
	if x.resume == nil || x.size < x.limit {
		return
	}
	for k, p := range x.parts {
		floor := x.resume(p.scope, k)
		if floor <= p.floor {
			continue
		}
		p.floor = floor
		for offset := range p.records {
			if offset < floor {
				delete(p.records, offset)
				x.size--
			}
		}
	}
	x.limit = 2*x.size + pruneLeast
}

// forgotten reports whether records at or above an offset may be missing.
func (x *deadIndex) forgotten(k deadKey, first int64) bool {
	p := x.parts[k]
	return p != nil && first < p.floor
}

// list is copies of the records at or above an offset, in no order.
func (x *deadIndex) list(k deadKey, first int64) []lane.DeadRecord {
	p := x.parts[k]
	if p == nil {
		return nil
	}
	var out []lane.DeadRecord
	for offset, r := range p.records {
		if offset >= first {
			c := *r
			c.Rows = slices.Clone(r.Rows)
			out = append(out, c)
		}
	}
	return out
}
