package ledger

import (
	"cmp"
	"slices"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/offsets"
)

// homes is what a book knows of tables with a standby. A table partition's home is
// where its last artefact lies, or where it was moved since: what comes late for one
// that is announced goes to the active home, and the partition goes on there.
type homes struct {
	switches map[connector.UUID][]*Switch // by number
	moved    map[connector.UUID][]*Moved  // in order
	void     map[connector.ArtifactID]*Moved
	settled  map[CloseKey]uint8
}

func newHomes() homes {
	return homes{switches: map[connector.UUID][]*Switch{}, moved: map[connector.UUID][]*Moved{},
		void: map[connector.ArtifactID]*Moved{}, settled: map[CloseKey]uint8{}}
}

// settle gives the table partitions of an intent their home.
func (h *homes) settle(in *Intent) {
	for i := range in.Artifacts {
		a := &in.Artifacts[i]
		h.settled[CloseKey{a.Header.ID.Table, a.Header.TablePartition}] = a.Home
	}
}

func (h *homes) add(f *Switch) {
	list := h.switches[f.Table]
	at, found := slices.BinarySearchFunc(list, f, func(x, f *Switch) int { return cmp.Compare(x.Number, f.Number) })
	if found {
		list[at] = f
		return
	}
	h.switches[f.Table] = slices.Insert(list, at, f)
}

func (h *homes) move(s Scope, f *Moved) {
	list := h.moved[f.Table]
	at := slices.IndexFunc(list, func(x *Moved) bool { return x.Number == f.Number && x.TablePartition == f.TablePartition })
	if at >= 0 {
		for _, id := range list[at].IDs {
			delete(h.void, id)
		}
	}
	for i := range f.IDs {
		f.IDs[i].Job, f.IDs[i].Generation = s.Job, s.Generation
		h.void[f.IDs[i]] = f
	}
	if at >= 0 {
		list[at] = f // what became of it
		return
	}
	// After compaction the word of what became of a move may stand behind a later move.
	later := func(x *Moved) bool { return x.Number > f.Number }
	if at = slices.IndexFunc(list, later); at < 0 {
		at = len(list)
	}
	if !slices.ContainsFunc(list[at:], func(x *Moved) bool { return x.TablePartition == f.TablePartition }) {
		h.settled[CloseKey{f.Table, f.TablePartition}] = f.To
	}
	h.moved[f.Table] = slices.Insert(list, at, f)
}

// last is the number of a table's last switch, 0 for none, and its home.
func (h *homes) last(table connector.UUID) (number uint32, home uint8) {
	list := h.switches[table]
	if len(list) == 0 {
		return 0, connector.MainHome
	}
	f := list[len(list)-1]
	return f.Number, f.To
}

// ActiveHome is the home where a table's new partitions begin, with the number of
// the switch that made it so, 0 for none.
func (b *Book) ActiveHome(table connector.UUID) (home uint8, number uint32) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	number, home = b.homes.last(table)
	return home, number
}

// Switches are a table's switches, by number.
func (b *Book) Switches(table connector.UUID) []*Switch {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Clone(b.homes.switches[table])
}

// HomeOf is the home of a table partition: its own while it is not announced; what
// comes later goes to the active one.
func (b *Book) HomeOf(k CloseKey) uint8 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	_, active := b.homes.last(k.Table)
	own, ok := b.homes.settled[k]
	if c := b.closes[k]; !ok || c != nil && c.Step == Announced {
		return active
	}
	return own
}

// Settled are the table partitions that have a home, by name.
func (b *Book) Settled(table connector.UUID) map[string]uint8 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	out := map[string]uint8{}
	for k, home := range b.homes.settled {
		if k.Table == table {
			out[k.TablePartition] = home
		}
	}
	return out
}

// SourceKey names a source partition.
type SourceKey struct {
	Topic     connector.UUID
	Partition int32
}

// Move is what is to be done for a table partition that was moved.
type Move struct {
	TablePartition string
	To             uint8
	// Need are the offsets whose rows are to be written anew.
	Need map[SourceKey]offsets.Set
	// Void and Live are the rows that are void, and those written anew, with the
	// sums of their hashes; Comparable: the hashes are of the same columns.
	VoidRows, LiveRows int64
	VoidHash, LiveHash uint64
	Comparable         bool
}

// Done reports whether all rows of the partition are written anew.
func (m *Move) Done() bool { return m.Complete() && m.VoidRows == m.LiveRows }

// Complete reports whether all offsets have been processed.
func (m *Move) Complete() bool {
	for _, s := range m.Need {
		if !s.Empty() {
			return false
		}
	}
	return true
}

// Moves are the table partitions that were moved, by name, as far as artefacts of
// accepted source partitions go (nil: all).
func (b *Book) Moves(table connector.UUID, of func(SourceKey) bool) []Move {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.moves(table, of)
}

func (b *Book) moves(table connector.UUID, of func(SourceKey) bool) []Move {
	if len(b.homes.moved[table]) == 0 {
		return nil
	}
	type sets struct{ void, live map[SourceKey][]offsets.Set }
	byPart := map[string]*Move{}
	collected := map[string]*sets{}
	schema := map[string]uint64{}
	for _, f := range b.homes.moved[table] {
		byPart[f.TablePartition] = &Move{TablePartition: f.TablePartition, To: f.To, Need: map[SourceKey]offsets.Set{}, Comparable: true}
		collected[f.TablePartition] = &sets{map[SourceKey][]offsets.Set{}, map[SourceKey][]offsets.Set{}}
	}
	for _, e := range b.byTable[table] {
		for i := range e.Artifacts {
			a := &e.Artifacts[i]
			m := byPart[a.Header.TablePartition]
			gone := b.homes.void[a.Header.ID] != nil
			// An artefact that was void, and is void again, has its rows in the
			// first one's offsets.
			if m == nil || e.Rewrite == gone || e.Result != Committed || of != nil && !ofAny(a, of) {
				continue
			}
			s, into := collected[m.TablePartition], map[SourceKey][]offsets.Set(nil)
			if e.Rewrite {
				into = s.live
				m.LiveRows += a.Header.Rows
				m.LiveHash += a.Header.RowHash
			} else {
				into = s.void
				m.VoidRows += a.Header.Rows
				m.VoidHash += a.Header.RowHash
			}
			for _, in := range a.Header.Inputs {
				k := SourceKey{in.Topic, in.Partition}
				into[k] = append(into[k], in.Offsets)
			}
			if known, ok := schema[m.TablePartition]; ok && known != a.Header.SchemaHash {
				m.Comparable = false
			}
			schema[m.TablePartition] = a.Header.SchemaHash
		}
	}
	out := make([]Move, 0, len(byPart))
	for tp, m := range byPart {
		for k, list := range collected[tp].void {
			if of == nil || of(k) {
				m.Need[k] = offsets.UnionOf(list...).Subtract(offsets.UnionOf(collected[tp].live[k]...))
			}
		}
		out = append(out, *m)
	}
	slices.SortFunc(out, func(x, y Move) int { return cmp.Compare(x.TablePartition, y.TablePartition) })
	return out
}

func ofAny(a *connector.Artifact, of func(SourceKey) bool) bool {
	return slices.ContainsFunc(a.Header.Inputs, func(in connector.Input) bool { return of(SourceKey{in.Topic, in.Partition}) })
}

// VoidArtifacts are the artefacts of a table at a home that are void: of one table
// partition, or of those that readers may still see.
func (b *Book) VoidArtifacts(table connector.UUID, home uint8, want func(*Moved) bool) []connector.Artifact {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var out []connector.Artifact
	for _, e := range sorted(b.byTable[table], nil) {
		for i := range e.Artifacts {
			a := &e.Artifacts[i]
			if f := b.homes.void[a.Header.ID]; f != nil && a.Home == home && want(f) {
				out = append(out, *a)
			}
		}
	}
	return out
}

// LiveArtifacts are the committed artefacts of a table partition that are not void.
func (b *Book) LiveArtifacts(k CloseKey) []connector.Artifact {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var out []connector.Artifact
	for _, e := range sorted(b.byTable[k.Table], func(e *Entry) bool { return e.Result == Committed }) {
		for i := range e.Artifacts {
			if a := &e.Artifacts[i]; a.Header.TablePartition == k.TablePartition && b.homes.void[a.Header.ID] == nil {
				out = append(out, *a)
			}
		}
	}
	return out
}

// Moved are the records of a table's moves, in order.
func (b *Book) Moved(table connector.UUID) []*Moved {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Clone(b.homes.moved[table])
}

// IsVoid reports an artefact that was given up with its home.
func (b *Book) IsVoid(id connector.ArtifactID) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.homes.void[id] != nil
}

// moving is the decoded rows of an intent that are void and not yet written anew.
// mu is held.
func (e *Entry) moving(in *Input, need map[string]offsets.Set) int64 {
	var sets []offsets.Set
	for i := range e.Artifacts {
		a := &e.Artifacts[i]
		s, ok := need[a.Header.TablePartition]
		if !ok || s.Empty() {
			continue
		}
		for _, x := range a.Header.Inputs {
			if x.Topic == in.Topic && x.Partition == in.Partition {
				sets = append(sets, x.Offsets.Intersect(s))
			}
		}
	}
	all := offsets.UnionOf(sets...)
	n := all.Count()
	for o := range in.Odd.All() {
		if all.Contains(o.Offset) {
			n += o.Written - 1
		}
	}
	return n
}

// Moving are the decoded rows of an output, by source partition, that were written
// at a home that is given up and are not yet written anew: they are open again.
func (b *Book) Moving(table connector.UUID) map[SourceKey]int64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.movingRows(table)
}

func (b *Book) movingRows(table connector.UUID) map[SourceKey]int64 {
	need := map[SourceKey]map[string]offsets.Set{}
	for _, m := range b.moves(table, nil) {
		for k, s := range m.Need {
			if s.Empty() {
				continue
			}
			if need[k] == nil {
				need[k] = map[string]offsets.Set{}
			}
			need[k][m.TablePartition] = s
		}
	}
	if len(need) == 0 {
		return nil
	}
	out := map[SourceKey]int64{}
	for _, e := range b.byTable[table] {
		if e.Result != Committed || e.Rewrite {
			continue
		}
		for i := range e.Inputs {
			in := &e.Inputs[i]
			if k := (SourceKey{in.Topic, in.Partition}); need[k] != nil {
				out[k] += e.moving(in, need[k])
			}
		}
	}
	return out
}

// HoldFrom is the first offset of a source partition that a table with a standby
// may have to read again: that of its oldest partition that is not announced.
func (b *Book) HoldFrom(table connector.UUID, k SourceKey) (offset int64, ok bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, e := range b.byTable[table] {
		if e.Result == Void {
			continue
		}
		for i := range e.Artifacts {
			h := &e.Artifacts[i].Header
			if c := b.closes[CloseKey{table, h.TablePartition}]; c != nil && c.Step == Announced {
				continue
			}
			for _, in := range h.Inputs {
				if at, some := in.Offsets.First(); some && in.Topic == k.Topic && in.Partition == k.Partition && (!ok || at < offset) {
					offset, ok = at, true
				}
			}
		}
	}
	return offset, ok
}
