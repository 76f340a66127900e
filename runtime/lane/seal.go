package lane

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
)

// Sealing is groups on their way from open to committed.
type Sealing struct {
	groups   []*group
	Requests []connector.SealRequest
}

// Seal takes groups out of the open ones and makes the headers for the writer,
// one a bucket, in order.
func (t *Tracker) Seal(groups []*group, schemaHash uint64) *Sealing {
	s := &Sealing{groups: groups}
	for _, g := range groups {
		g.sealed = true
		for _, b := range g.buckets {
			delete(t.buckets, b.id)
			t.seq++
			h := connector.Header{ID: t.id, TablePartition: b.tablePartition, Rows: b.rows, RowHash: b.hash, SchemaHash: schemaHash}
			h.ID.Sequence = t.seq
			if b.minEvent <= b.maxEvent {
				h.MinEventTime, h.MaxEventTime = b.minEvent, b.maxEvent
			}
			for part := range t.parts {
				if set := b.input(part); !set.Empty() {
					src := t.parts[part].source
					h.Inputs = append(h.Inputs, connector.Input{Topic: src.TopicID, Partition: src.ID, Offsets: set})
				}
			}
			s.Requests = append(s.Requests, connector.SealRequest{Bucket: b.id, Header: h})
		}
	}
	return s
}

// Intents makes the intents of sealed artefacts, one a group.
func (t *Tracker) Intents(s *Sealing, sealed []connector.Artifact, nowMillis int64) ([]*ledger.Intent, error) {
	if len(sealed) != len(s.Requests) {
		return nil, fmt.Errorf("the writer sealed %d artefacts of %d", len(sealed), len(s.Requests))
	}
	var out []*ledger.Intent
	for _, g := range s.groups {
		in := &ledger.Intent{Writer: t.writer(), SealedMillis: nowMillis, Artifacts: sealed[:len(g.buckets):len(g.buckets)]}
		sealed = sealed[len(g.buckets):]
		for part := range t.parts {
			if x := g.input(int32(part), t.parts[part].source); !x.Offsets.Empty() {
				in.Inputs = append(in.Inputs, x)
			}
		}
		in.Minutes = g.minutes.list()
		out = append(out, in)
	}
	return out, nil
}

func (t *Tracker) writer() ledger.Writer { return ledger.Writer{Lane: t.id.Lane, Epoch: t.id.Epoch} }

// Done says that groups are about to be committed; Advance then moves the
// cursors over them.
func (t *Tracker) Done(s *Sealing) {
	t.groups = slices.DeleteFunc(t.groups, func(g *group) bool { return slices.Contains(s.groups, g) })
}

// Resume is where the output would go on after a crash: the least begin of the
// groups that are not committed, the start of the stretch being processed, or
// the first offset not processed.
func (t *Tracker) Resume(part int32) int64 {
	p := &t.parts[part]
	at := p.next.Offset
	for _, g := range t.groups {
		if b := g.begin[part]; b >= 0 && b < at {
			at = b
		}
	}
	return at
}

// Behind reports whether any cursor can move.
func (t *Tracker) Behind() bool {
	for i := range t.parts {
		if t.Resume(int32(i)) > t.parts[i].cursor.Offset {
			return true
		}
	}
	return false
}

// Advance moves the cursors as far as they go and gives the facts that make it
// durable: in one ledger batch, with the outcomes of the groups that were Done.
// Invariant 1: a cursor passes an offset only when everything below it is
// disposed of, and carries all counts of what lies below.
func (t *Tracker) Advance() []ledger.Fact {
	var facts []ledger.Fact
	for i := range t.parts {
		facts = append(facts, t.advance(int32(i))...)
	}
	return facts
}

func (t *Tracker) advance(part int32) []ledger.Fact {
	p := &t.parts[part]
	to := t.Resume(part)
	if to <= p.cursor.Offset {
		return nil
	}
	k := 0
	for k < len(p.segs) && p.segs[k].start.Offset < to {
		k++
	}
	passed := p.segs[:k]
	at := p.next
	if k < len(p.segs) {
		at = p.segs[k].start
	}
	c := p.cursor
	c.Counts = c.Counts.Clone()
	c.Epoch, c.Lane = t.id.Epoch, t.id.Lane
	c.Offset, c.LeaderEpoch, c.Watermark = at.Offset, at.LeaderEpoch, at.Watermark
	sum := minutes{}
	for s := range passed {
		c.Counts.Add(&passed[s].counts)
		sum.addAll(passed[s].minutes)
	}
	p.segs = append(p.segs[:0:0], p.segs[k:]...)
	if len(p.segs) == 0 {
		p.segs = []segment{{start: p.next, minutes: minutes{}}}
	}
	p.cursor = c
	t.forget(part)
	facts := []ledger.Fact{&c}
	proto := ledger.Hour{Output: c.Output, Topic: c.Topic, Partition: c.Partition, Lane: c.Lane, Epoch: c.Epoch}
	for _, h := range sum.hours(proto, func(k ledger.MinuteKind, hour int64) *ledger.Hour { return t.hour(part, k, hour) }) {
		facts = append(facts, h)
	}
	return facts
}

// forget drops from the skip set what lies below the cursor.
func (t *Tracker) forget(part int32) {
	p := &t.parts[part]
	p.committed = p.committed.From(p.cursor.Offset)
	p.inputs = slices.DeleteFunc(p.inputs, func(in *ledger.Input) bool { return in.Offsets.End() <= p.cursor.Offset })
	i := sort.Search(len(p.dead), func(i int) bool { return p.dead[i].Offset >= p.cursor.Offset })
	p.dead = p.dead[i:]
}

// Live is the equation of a partition now: what is below next, and committed
// artefacts above it that are yet to be read past.
func (t *Tracker) Live(part int32) (c ledger.Counts, open int64) {
	p := &t.parts[part]
	c = p.cursor.Counts.Clone()
	for i := range p.segs {
		c.Add(&p.segs[i].counts)
	}
	for _, in := range p.inputs {
		above := in.Counts(p.next.Offset, math.MaxInt64)
		c.Add(&above)
	}
	var written, late, expanded int64
	for _, g := range t.groups {
		written += g.written[part]
		late += g.late[part]
		expanded += g.expanded[part]
	}
	// While a batch is being written some of its rows are in groups and not yet
	// counted; the equation holds at every moment all the same.
	// A row that lies aside is late once its file is committed, not before: after a
	// crash it would be read again.
	written, late = min(written, c.Written), min(late, c.Late)
	c.Written -= written
	c.Late -= late
	open = written + late
	c.Expanded -= min(expanded, c.Expanded)
	return c, open
}
