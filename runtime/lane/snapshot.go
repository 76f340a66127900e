package lane

import (
	"time"

	"github.com/millrace/millrace/runtime/ledger"
)

// Status describes the lane now.
func (l *Lane) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Status{Name: l.cfg.Name, ID: l.cfg.Fact.ID, State: l.state, Topic: l.cfg.Fact.Topic, Source: l.cfg.Fact.Source}
	if l.err != nil {
		s.Error = l.err.Error()
	}
	if l.state == BackingOff || l.state == Quarantined {
		s.Retry = l.retryAt
	}
	s.Epoch, _ = l.cfg.Book.LaneEpoch(l.cfg.Fact.ID)
	if !l.running() {
		return s
	}
	for _, o := range l.att.outputs {
		s.Outputs = append(s.Outputs, o.status())
	}
	if len(l.att.drives) > 0 {
		s.Partitions = l.att.drives[0].partitions(l)
	}
	return s
}

func (o *output) status() OutputStatus {
	s := OutputStatus{Table: o.cfg.Table.Name, Exchange: o.exch != nil, Detached: o.detached.Load(), Files: int(o.openFiles.Load())}
	if b := o.blockedSince.Load(); b != 0 {
		s.Blocked = time.Duration(o.lane.millis()-b+1) * time.Millisecond
	}
	if at := o.nextFile.Load(); at != 0 {
		s.NextFile = o.lane.start.Add(time.Duration(at) * time.Millisecond)
	}
	if o.sink != nil {
		o.mu.Lock()
		s.OpenRows = o.tracker.OpenRows()
		o.mu.Unlock()
	}
	return s
}

// partitions is where the reader stands; mu of the lane is held, which keeps
// the drive from being closed.
func (d *drive) partitions(l *Lane) []PartitionStatus {
	out := make([]PartitionStatus, len(l.cfg.Partitions))
	outputs := d.mine()
	for p := range out {
		out[p] = PartitionStatus{Partition: l.cfg.Partitions[p].ID, Next: -1, End: d.logEnds[p].Load()}
		for _, o := range outputs {
			o.mu.Lock()
			at := o.tracker.Next(int32(p))
			o.mu.Unlock()
			if out[p].Next < 0 || at.Offset < out[p].Next {
				out[p].Next, out[p].Watermark = at.Offset, at.Watermark
			}
		}
		out[p].End = max(out[p].End, out[p].Next)
	}
	return out
}

// Rows are the live equations of the lane's outputs; nil while no attempt
// runs or it still recovers: the ledger then says everything.
func (l *Lane) Rows() []ledger.Row {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.running() {
		return nil
	}
	var rows []ledger.Row
	for _, o := range l.att.outputs {
		o.mu.Lock()
		for p, part := range l.cfg.Partitions {
			r := ledger.Row{Table: o.cfg.Table, Topic: part.TopicID, TopicName: l.cfg.Fact.Topic, Partition: part.ID,
				Resume: o.tracker.Cursor(int32(p)).Offset}
			r.Counts, r.Open = o.tracker.Live(int32(p))
			if o.exch != nil {
				r.Resume, r.Open = o.unfolded(&r.Counts, ledger.CursorKey{Output: o.cfg.Table.ID, Topic: part.TopicID, Partition: part.ID})
			}
			rows = append(rows, r)
		}
		o.mu.Unlock()
	}
	return rows
}

// unfolded takes what was handed over and is in no completed checkpoint out of
// the folded rows: it is open.
func (o *output) unfolded(c *ledger.Counts, k ledger.CursorKey) (resume, open int64) {
	durable := int64(0)
	if d, ok := o.lane.cfg.Book.Cursor(k); ok {
		durable, resume = d.Counts.Folded, d.Offset
	}
	open = max(c.Folded-durable, 0)
	c.Folded -= open
	return resume, open
}

// Progress is how far an output is, for the table's committer.
type Progress struct {
	Output ledger.CursorKey
	// Next is the first offset not processed, Watermark the partition's there,
	// batch.MaxWatermark when Ended.
	Next, Watermark int64
	// Ended: the input has ended and everything is committed.
	Ended bool
	// AtEnd is since when the partition has had nothing to read, zero: it has.
	AtEnd time.Time
}

// Progress gives the positions of a table's output in this lane, and adds the
// table partitions with uncommitted rows; ok is false while no attempt runs.
func (l *Lane) Progress(table string, open func(tablePartition string)) (out []Progress, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.running() {
		return nil, false
	}
	for _, o := range l.att.outputs {
		if o.cfg.Table.Name != table || o.sink == nil {
			continue
		}
		o.mu.Lock()
		o.tracker.TablePartitions(open)
		for p, part := range l.cfg.Partitions {
			at := o.tracker.Next(int32(p))
			out = append(out, Progress{Output: ledger.CursorKey{Output: o.cfg.Table.ID, Topic: part.TopicID, Partition: part.ID},
				Next: at.Offset, Watermark: at.Watermark, Ended: o.ended, AtEnd: o.atEnd[p]})
		}
		o.mu.Unlock()
	}
	return out, true
}
