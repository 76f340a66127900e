package lane

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/offsets"
)

// positions gives, by output and partition, where the lane goes on.
func (l *Lane) positions(ctx context.Context, a *attempt, skipLost bool) ([][]ledger.Cursor, error) {
	out := make([][]ledger.Cursor, len(a.outputs))
	var lost LostError
	for i, o := range a.outputs {
		cs, err := l.saved(ctx, o)
		if err != nil {
			return nil, err
		}
		if err := l.check(ctx, o, cs, skipLost, &lost); err != nil {
			return nil, err
		}
		out[i] = make([]ledger.Cursor, len(cs))
		for p := range cs {
			c := cs[p].Cursor
			c.Lane, c.Epoch = l.cfg.Fact.ID, a.epoch
			out[i][p] = c
		}
		for _, line := range startLines(o.cfg.Table.Name, l.cfg.Fact.Topic, cs) {
			l.notice("%s", line)
		}
	}
	if len(lost.Mismatches) > 0 {
		return nil, &lost
	}
	return out, nil
}

// savedCursor is a position and where it comes from.
type savedCursor struct {
	ledger.Cursor
	from  string
	fresh bool // by the table's own start option: it needs no check
	young bool // a partition that came later: from its first record on
}

// saved finds the positions of an output: the restored checkpoint's, the
// ledger's, or the start.
func (l *Lane) saved(ctx context.Context, o *output) ([]savedCursor, error) {
	out := make([]savedCursor, len(l.cfg.Partitions))
	var restored []ledger.Cursor
	if x := o.cfg.Exchange; x != nil {
		var err error
		if restored, err = x.Restored(ctx, l.cfg.Fact.ID); err != nil {
			return nil, fmt.Errorf("reading the checkpoint of %s: %w", o.cfg.Table.Name, err)
		}
	}
	var missing []int
	for p, part := range l.cfg.Partitions {
		at := slices.IndexFunc(restored, func(c ledger.Cursor) bool { return c.Topic == part.TopicID && c.Partition == part.ID })
		if at >= 0 {
			out[p] = savedCursor{Cursor: restored[at], from: "checkpoint"}
			continue
		}
		if c, ok := l.cfg.Book.Cursor(ledger.CursorKey{Output: o.cfg.Table.ID, Topic: part.TopicID, Partition: part.ID}); ok {
			out[p] = savedCursor{Cursor: *c, from: "ledger"}
			continue
		}
		missing = append(missing, p)
	}
	return out, l.starts(ctx, o, out, missing)
}

// starts resolves the start of partitions without a position. One that is new
// in a topic that the output has read before is read from its first record, and so is
// a topic that is new in a table of several.
func (l *Lane) starts(ctx context.Context, o *output, out []savedCursor, missing []int) error {
	if len(missing) == 0 {
		return nil
	}
	topic := l.cfg.Partitions[0].TopicID
	known := l.hasRead(o, topic)
	parts := make([]connector.Partition, len(missing))
	for i, p := range missing {
		parts[i] = l.cfg.Partitions[p]
	}
	at := make([]connector.Position, len(missing))
	from := "first record of a new partition"
	if !known {
		from = "start of the table"
		var err error
		if at, err = l.cfg.Source.Start(ctx, parts); err != nil {
			return fmt.Errorf("finding the start of topic %s: %w", l.cfg.Fact.Topic, err)
		}
	}
	reasons := slices.Repeat([]string{from}, len(missing))
	if e, ok := l.cfg.Source.(connector.StartExplainer); ok && !known {
		reasons = e.ExplainStart(parts)
	}
	for i, p := range missing {
		out[p] = savedCursor{from: reasons[i], fresh: !known, young: known, Cursor: ledger.Cursor{
			Output: o.cfg.Table.ID, Topic: topic, Partition: parts[i].ID,
			Offset: at[i].Offset, LeaderEpoch: at[i].LeaderEpoch, Watermark: batch.NoWatermark}}
	}
	return nil
}

// hasRead reports whether an output has read a topic before, or, of a topic that came
// later, others of the same table: an output that is new itself begins where the start
// option says.
func (l *Lane) hasRead(o *output, topic connector.UUID) bool {
	if l.cfg.Young {
		return true
	}
	topics := []connector.UUID{topic}
	if l.cfg.Fact.Later {
		for _, f := range l.cfg.Book.Lanes() {
			if f.Source == l.cfg.Fact.Source {
				topics = append(topics, f.ID.Topic)
			}
		}
	}
	return slices.ContainsFunc(l.cfg.Book.Cursors(o.cfg.Table.ID), func(c *ledger.Cursor) bool { return slices.Contains(topics, c.Topic) })
}

// check asks the source whether positions still belong to the log. What is
// gone stops the lane, or is counted as lost when the user has said so.
func (l *Lane) check(ctx context.Context, o *output, cs []savedCursor, skipLost bool, lost *LostError) error {
	var at []connector.Position
	var index []int
	for p := range cs {
		if !cs[p].fresh {
			at = append(at, connector.Position{Partition: l.cfg.Partitions[p], LeaderEpoch: cs[p].LeaderEpoch, Offset: cs[p].Offset})
			index = append(index, p)
		}
	}
	if len(at) == 0 {
		return nil
	}
	errs, err := l.cfg.Source.Check(ctx, at)
	if err != nil {
		return fmt.Errorf("checking positions in topic %s: %w", l.cfg.Fact.Topic, err)
	}
	for i, e := range errs {
		if e == nil {
			continue
		}
		var m *connector.MismatchError
		if !errors.As(e, &m) {
			return fmt.Errorf("checking positions in topic %s: %w", l.cfg.Fact.Topic, e)
		}
		c := &cs[index[i]]
		switch {
		case c.young && !m.Recreated:
			c.Offset = m.Earliest
		case skipLost:
			l.skip(o, c, m)
		default:
			lost.add(m)
		}
	}
	return nil
}

func (e *LostError) add(m *connector.MismatchError) {
	for _, x := range e.Mismatches {
		if x.Position == m.Position {
			return // another output of the lane has said so
		}
	}
	e.Mismatches = append(e.Mismatches, m)
}

// skip goes on behind what is gone.
func (l *Lane) skip(o *output, c *savedCursor, m *connector.MismatchError) {
	from, to := c.Offset, m.Earliest
	if from > m.Latest {
		to = m.Latest // the log ends below the position: nothing was lost to us
	}
	if to > from {
		c.Counts = c.Counts.Clone()
		c.Counts.Lost += to - from
		c.LostRanges = offsets.Set{}.Union(c.LostRanges)
		c.LostRanges.Add(from, to)
	}
	c.Offset, c.from = to, "behind lost records"
	l.notice("table %s: topic %s partition %d: offsets %d to %d are lost", o.cfg.Table.Name, l.cfg.Fact.Topic,
		c.Partition, from, max(from, to)-1)
}
