package topiclog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/storage/manifest"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/wal"
)

const maxCursorMetadata = 4096

// CommitCursors durably stores positions of a group, by the same group commit as
// records. Cursors of one shard are stored all or none. A negative offset
// removes a cursor.
func (s *Store) CommitCursors(ctx context.Context, group string, cursors []Cursor) error {
	if err := s.checkCursors(group, cursors); err != nil {
		return err
	}
	lock := &s.groupLocks[groupStripe(group)]
	lock.RLock()
	defer lock.RUnlock()
	return s.commitCursors(ctx, group, cursors)
}

// checkCursors applies the bounds for positions.
func (s *Store) checkCursors(group string, cursors []Cursor) error {
	if group == "" || len(group) > 1<<10 {
		return fmt.Errorf("committing cursors: the group's name must have 1 to 1024 bytes")
	}
	for _, c := range cursors {
		if len(c.Metadata) > maxCursorMetadata {
			return fmt.Errorf("committing cursors of group %s: metadata of %d bytes, at most %d", group, len(c.Metadata), maxCursorMetadata)
		}
	}
	return nil
}

// groupStripes is how many locks all groups share.
const groupStripes = 64

func groupStripe(group string) int {
	return int(record.Checksum([]byte(group)) % groupStripes)
}

// lockGroups keeps positions of the groups from being committed by others until
// the function returned is called.
func (s *Store) lockGroups(groups []string) (unlock func()) {
	var stripes []int
	for _, g := range groups {
		stripes = append(stripes, groupStripe(g))
	}
	slices.Sort(stripes)
	stripes = slices.Compact(stripes)
	for _, i := range stripes {
		s.groupLocks[i].Lock()
	}
	return func() {
		for _, i := range stripes {
			s.groupLocks[i].Unlock()
		}
	}
}

// commitCursors is CommitCursors with the group's lock held.
func (s *Store) commitCursors(ctx context.Context, group string, cursors []Cursor) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := timeOf(s.nowMs())
	byShard := map[*shard][]Cursor{}
	parts := map[*shard][]*partition{}
	for _, c := range cursors {
		p, err := s.partition(c.Partition)
		if err != nil {
			return fmt.Errorf("committing cursors of group %s: %w", group, err)
		}
		c.CommitTime = now
		byShard[p.shard] = append(byShard[p.shard], c)
		parts[p.shard] = append(parts[p.shard], p)
	}
	errs := make(chan error, len(byShard))
	for sh, cs := range byShard {
		var e enc
		e.u(uint64(len(cs)))
		for i := range cs {
			encodeCursor(&e, group, &cs[i])
		}
		r := &request{part: parts[sh][0], kind: wal.KindCursor, batches: e.b, group: group, cursors: cs, cursorParts: parts[sh],
			done: func(_ AppendResult, err error) { errs <- err }}
		if err := sh.enqueue(r); err != nil {
			errs <- err
		}
	}
	var first error
	for range byShard {
		if err := <-errs; err != nil && first == nil {
			first = fmt.Errorf("committing cursors of group %s: %w", group, err)
		}
	}
	return first
}

// part0 is part with the lock it needs while the store runs.
func (s *Store) part0(id PartitionID) *partition {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.part(id)
}

// publishCursors makes committed cursors visible; the writer calls it with the
// shard's mutex held.
func (s *Store) publishCursors(sh *shard, r *request) {
	s.cursorMu.Lock()
	defer s.cursorMu.Unlock()
	for i, c := range r.cursors {
		if r.cursorParts[i].dead.Load() {
			continue // deleted meanwhile, and its cursors with it
		}
		s.applyCursorLocked(r.group, c)
		sh.freshCursors[cursorKey{r.group, c.Partition}] = struct{}{}
	}
}

func (s *Store) applyCursor(group string, c Cursor) {
	s.cursorMu.Lock()
	defer s.cursorMu.Unlock()
	s.applyCursorLocked(group, c)
}

func (s *Store) applyCursorLocked(group string, c Cursor) {
	m := s.cursors[group]
	if c.Offset < 0 {
		delete(m, c.Partition)
		if len(m) == 0 {
			delete(s.cursors, group)
		}
		return
	}
	if m == nil {
		m = map[PartitionID]Cursor{}
		s.cursors[group] = m
	}
	m[c.Partition] = c
}

// cursorEdits are the edits for what only the journal has, and the function that
// forgets those that did not change meanwhile, once the edits are durable.
func (s *Store) cursorEdits(sh *shard) (edits []manifest.Edit, settle func()) {
	s.cursorMu.Lock()
	defer s.cursorMu.Unlock()
	current := func(k cursorKey) Cursor {
		if c, ok := s.cursors[k.group][k.part]; ok {
			return c
		}
		return Cursor{Partition: k.part, Offset: -1}
	}
	written := make(map[cursorKey]Cursor, len(sh.freshCursors))
	for k := range sh.freshCursors {
		c := current(k)
		written[k] = c
		edits = append(edits, cursorEdit(k.group, &c))
	}
	return edits, func() {
		s.cursorMu.Lock()
		defer s.cursorMu.Unlock()
		for k, c := range written {
			if current(k) == c {
				delete(sh.freshCursors, k)
			}
		}
	}
}

// Cursors returns the positions of a group in the order of the partition ids.
func (s *Store) Cursors(group string) []Cursor {
	s.cursorMu.Lock()
	defer s.cursorMu.Unlock()
	m := s.cursors[group]
	out := make([]Cursor, 0, len(m))
	for _, id := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[id])
	}
	return out
}

// Groups lists the groups that have cursors or subscriptions.
func (s *Store) Groups() []string {
	names := map[string]bool{}
	s.cursorMu.Lock()
	for g := range s.cursors {
		names[g] = true
	}
	s.cursorMu.Unlock()
	s.mu.RLock()
	for k := range s.subs {
		names[k.group] = true
	}
	s.mu.RUnlock()
	return slices.Sorted(maps.Keys(names))
}

// DeleteGroup forgets a group's cursors and subscriptions.
func (s *Store) DeleteGroup(ctx context.Context, group string) error {
	cs := s.Cursors(group)
	for i := range cs {
		cs[i].Offset = -1
	}
	if len(cs) > 0 {
		if err := s.CommitCursors(ctx, group, cs); err != nil {
			return err
		}
	}
	for _, sub := range s.Subscriptions() {
		if sub.Group == group {
			if err := s.Unsubscribe(ctx, group, sub.Topic); err != nil {
				return err
			}
		}
	}
	return nil
}

// Subscribe durably says that a group reads a topic.
func (s *Store) Subscribe(ctx context.Context, sub Subscription) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if sub.Group == "" {
		return fmt.Errorf("subscribing: the group has no name")
	}
	s.mu.Lock()
	t := s.topicsByID[sub.Topic]
	same := s.subs[subKey{sub.Group, sub.Topic}] == sub
	closing := t != nil && (t.closing || t.deleting)
	if t != nil && !same && !closing {
		t.joining++ // from here on the topic counts as read
	}
	s.mu.Unlock()
	switch {
	case t == nil:
		return fmt.Errorf("subscribing group %s: %w: %s", sub.Group, ErrTopicNotFound, sub.Topic)
	case same:
		return nil
	case closing:
		return fmt.Errorf("subscribing group %s: %w: %s", sub.Group, ErrTopicClosing, t.name)
	}
	err := s.meta.commit(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.subs[subKey{sub.Group, sub.Topic}] = sub
	}, subscriptionEdit(sub))
	s.mu.Lock()
	t.joining--
	s.mu.Unlock()
	if err != nil {
		return errors.Join(fmt.Errorf("subscribing group %s to topic %s: %w", sub.Group, t.name, err), s.finishClosing(ctx, sub.Topic))
	}
	return nil
}

// Unsubscribe durably ends a subscription. If it was the last of a topic that is
// closing, the topic is deleted.
func (s *Store) Unsubscribe(ctx context.Context, group string, id UUID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	key := subKey{group, id}
	s.mu.RLock()
	_, ok := s.subs[key]
	s.mu.RUnlock()
	if !ok {
		return nil
	}
	err := s.meta.commit(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.subs, key)
	}, unsubscribedEdit(group, id))
	if err != nil {
		return fmt.Errorf("unsubscribing group %s: %w", group, err)
	}
	return s.finishClosing(ctx, id)
}

// finishClosing deletes a topic that is closing if nobody reads it any more.
func (s *Store) finishClosing(ctx context.Context, id UUID) error {
	s.mu.RLock()
	t := s.topicsByID[id]
	due := t != nil && t.closing && len(s.subscribers(t)) == 0
	s.mu.RUnlock()
	if !due {
		return nil
	}
	err := s.DeleteTopic(ctx, t.name, true)
	if errors.Is(err, ErrTopicNotFound) || errors.Is(err, errBusy) {
		return nil // somebody else does it at this moment
	}
	return err
}

// Subscriptions lists all subscriptions by group and topic id.
func (s *Store) Subscriptions() []Subscription {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.sortedSubscriptions()
}

func (s *Store) sortedSubscriptions() []Subscription {
	return slices.SortedFunc(maps.Values(s.subs), func(a, b Subscription) int {
		if c := strings.Compare(a.Group, b.Group); c != 0 {
			return c
		}
		return strings.Compare(string(a.Topic[:]), string(b.Topic[:]))
	})
}

// SetHolds makes the holds of a name exactly these. A name's first hold of a
// partition is durable when the call returns; later ones, which may only free
// more, are made durable before retention deletes anything by them.
func (s *Store) SetHolds(ctx context.Context, name string, holds []Hold) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if name == "" {
		return fmt.Errorf("setting holds: the name is empty")
	}
	want := map[holdKey]Hold{}
	for _, h := range holds {
		h.Name = name
		if s.part0(h.Partition) == nil {
			return fmt.Errorf("setting holds of %s: %w: %d", name, ErrPartitionNotFound, h.Partition)
		}
		want[holdKey{name, h.Partition}] = h
	}
	urgent := false
	s.mu.Lock()
	for k, h := range want {
		old, ok := s.holds[k]
		urgent = urgent || !ok || h.Offset < old.Offset
	}
	for k := range s.holds {
		if _, ok := want[k]; k.name == name && !ok {
			urgent = true
		}
	}
	if !urgent {
		for k, h := range want {
			if s.part(h.Partition) != nil {
				s.holds[k] = h
			}
		}
		s.retention.holdsChanged = true
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	edits := []manifest.Edit{holdReleasedEdit(name)}
	for _, k := range slices.SortedFunc(maps.Keys(want), func(a, b holdKey) int { return int(int64(a.part) - int64(b.part)) }) {
		edits = append(edits, holdEdit(want[k]))
	}
	return s.meta.commit(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dropHold(name)
		for k, h := range want {
			if s.part(h.Partition) != nil {
				s.holds[k] = h
			}
		}
	}, edits...)
}

// ReleaseHold durably ends all holds of a name.
func (s *Store) ReleaseHold(ctx context.Context, name string) error {
	return s.SetHolds(ctx, name, nil)
}

// applyHold and dropHold need Store.mu for writing, or a store that is opening.
func (s *Store) applyHold(h Hold) { s.holds[holdKey{h.Name, h.Partition}] = h }

func (s *Store) dropHold(name string) {
	for k := range s.holds {
		if k.name == name {
			delete(s.holds, k)
		}
	}
}

// Holds lists all holds by name and partition.
func (s *Store) Holds() []Hold {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.sortedHolds()
}

func (s *Store) sortedHolds() []Hold {
	return slices.SortedFunc(maps.Values(s.holds), func(a, b Hold) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return int(int64(a.Partition) - int64(b.Partition))
	})
}

// holdEdits are the holds that moved since they were last durable.
func (s *Store) holdEdits() []manifest.Edit {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.retention.holdsChanged {
		return nil
	}
	s.retention.holdsChanged = false
	var edits []manifest.Edit
	for _, h := range s.sortedHolds() {
		edits = append(edits, holdEdit(h))
	}
	return edits
}

// lowestHolds is the lowest held offset of each partition; Store.mu is held.
func (s *Store) lowestHolds() map[PartitionID]int64 {
	low := make(map[PartitionID]int64, len(s.holds))
	for k, h := range s.holds {
		if old, ok := low[k.part]; !ok || h.Offset < old {
			low[k.part] = h.Offset
		}
	}
	return low
}
