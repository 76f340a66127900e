package lane

import (
	"cmp"
	"math"
	"slices"

	"github.com/millrace/millrace/runtime/connector"
)

// DueInput is what decides which groups are to be sealed now.
type DueInput struct {
	// Now in milliseconds, monotonic.
	Now  int64
	Roll connector.RollPolicy
	// Bytes is the size of an open bucket as it would be stored.
	Bytes func(connector.BucketID) int64
	// Replaying: the head of the attempt before is not reached. Files are not
	// sealed by age before it is: they hold what they held then, and kills
	// that come faster than replays would cut them into crumbs.
	Replaying bool
	// ReadBytes is the input read by this attempt; ReplayMax bounds what
	// lies between the resume position and it ('lane.replay.max-bytes').
	ReadBytes, ReplayMax int64
	// Closing are table partitions whose files are wanted now.
	Closing func(tablePartition string) bool
	// All: everything (the end of the input, a stop).
	All bool
}

// Due gives the open groups that are to be sealed now, oldest first.
func (t *Tracker) Due(in DueInput) []*group {
	var due []*group
	for _, g := range t.groups {
		if !g.sealed && t.due(g, &in) {
			due = append(due, g)
		}
	}
	slices.SortStableFunc(due, func(a, b *group) int { return cmp.Compare(a.bytes, b.bytes) })
	return due
}

func (t *Tracker) due(g *group, in *DueInput) bool {
	if in.All {
		return true
	}
	if in.Roll.Age > 0 && !in.Replaying && in.Now-g.openedAt >= in.Roll.Age.Milliseconds() {
		return true
	}
	if in.ReplayMax > 0 && in.ReadBytes-g.bytes > in.ReplayMax {
		return true
	}
	for _, b := range g.buckets {
		if in.Roll.Bytes > 0 && in.Bytes(b.id) >= in.Roll.Bytes {
			return true
		}
		if in.Closing != nil && in.Closing(b.tablePartition) {
			return true
		}
	}
	return false
}

// Oldest is the open group that began first, leaving out those that skip
// names; nil: none.
func (t *Tracker) Oldest(skip func(*group) bool) *group {
	var old *group
	for _, g := range t.groups {
		if !g.sealed && (skip == nil || !skip(g)) && (old == nil || g.bytes < old.bytes) {
			old = g
		}
	}
	return old
}

// OldestOpened is when the oldest open group was opened; ok is false when none
// is open.
func (t *Tracker) OldestOpened() (ms int64, ok bool) {
	for _, g := range t.groups {
		if !g.sealed && (!ok || g.openedAt < ms) {
			ms, ok = g.openedAt, true
		}
	}
	return ms, ok
}

// OpenFiles is the number of open buckets.
func (t *Tracker) OpenFiles() int { return len(t.buckets) }

// TablePartitions adds the table partitions that have uncommitted rows.
func (t *Tracker) TablePartitions(add func(string)) {
	for _, g := range t.groups {
		for _, b := range g.buckets {
			add(b.tablePartition)
		}
	}
}

// Carry makes open groups that lie below the heads of the attempt before as
// old as they were then: their age counts on.
func (t *Tracker) Carry(id connector.BucketID, openedAt int64) {
	g := t.buckets[id].group
	if !g.carry {
		g.carry = true
		g.openedAt = min(g.openedAt, openedAt)
	}
}

// Rebase moves every count of input bytes: the output goes on with a reader
// that counts from elsewhere.
func (t *Tracker) Rebase(by int64) {
	for i := range t.parts {
		p := &t.parts[i]
		p.next.Bytes += by
		for s := range p.segs {
			p.segs[s].start.Bytes += by
		}
	}
	for _, g := range t.groups {
		if g.bytes != math.MaxInt64 { // it has rows
			g.bytes += by
		}
	}
}
