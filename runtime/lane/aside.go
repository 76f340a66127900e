package lane

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/operator"
)

// divert gives the rows of a part that are late for their table partition the bucket
// aside. A source row of which nothing is left for its own partition is late.
//
// What is pinned: the bounds of a partition that closes are durable before anybody acts
// upon them, and a closed partition takes no more. What was decided before they were
// known is in no intent yet, or holds the partition open until it is committed. So a
// row that is read again after a crash is in the skip set, by the intent that names it,
// or decided anew, while nobody has seen it.
func (o *output) divert(p *operator.Rows, sel batch.Sel) {
	s, r := o.sink, &o.rows
	last, k := connector.BucketID(-1), 0
	var c *ledger.Close
	for n, row := range sel {
		if id := s.ids[n]; id != last {
			last, c = id, o.closeOf(id)
		}
		if c == nil {
			continue
		}
		src := p.Source(row)
		if src < r.in.batch.Runs[k].FirstRow {
			k = 0
		}
		k = r.runOf(src, k)
		run := &r.in.batch.Runs[k]
		from := &o.lane.cfg.Partitions[run.Partition]
		if !c.Late(from.TopicID, from.ID, r.in.batch.Offset(run, int(src))) {
			continue
		}
		s.ids[n] = s.aside.Aside()
		if o.count[src]--; o.count[src] == 0 {
			r.fate[src] = late
		}
	}
}

// closeOf is the close of a bucket's table partition as it stood when the batch met it
// first; nil: it has not begun.
func (o *output) closeOf(id connector.BucketID) *ledger.Close {
	s := o.sink
	c, ok := s.closes[id]
	if !ok {
		c = o.lane.cfg.Book.Close(ledger.CloseKey{Table: o.cfg.Table.ID, TablePartition: s.aside.TablePartition(id)})
		s.closes[id] = c
	}
	return c
}

// isLate reports whether a committed artefact aside holds an offset and its rows were
// late.
func (t *Tracker) isLate(part int32, offset int64) bool {
	for _, in := range t.parts[part].inputs {
		if !in.Offsets.Contains(offset) {
			continue
		}
		c := in.Counts(offset, offset+1)
		return c.Late > 0 && c.Written == 0
	}
	return false
}
