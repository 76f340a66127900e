package topiclog_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// duringRecovery lets the machine crash again at some steps of the recovery and
// checks what is left.
func (d *driver) duringRecovery(fsys *vfs.MemFS, m *model, what string) {
	clone := fsys.CrashClone(vfs.CrashOptions{UnsyncedPercent: 100})
	var again []*vfs.MemFS
	fault := vfs.NewFault(clone, vfs.InjectorFunc(func(op vfs.Op) error {
		if op.Kind&(vfs.OpSync|vfs.OpSyncDir|vfs.OpRename|vfs.OpRemove) != 0 {
			again = append(again, clone.CrashClone(vfs.CrashOptions{UnsyncedPercent: d.crashRng.IntN(101), Rand: d.crashRng}))
		}
		return nil
	}))
	s, err := topiclog.Open(d.options(fault))
	if err != nil {
		d.t.Errorf("seed %d, operation %d: %s: %v", d.seed, d.ops, what, err)
		return
	}
	fault.SetInjector(nil)
	if err := s.Close(); err != nil {
		d.t.Errorf("seed %d: %s: closing: %v", d.seed, what, err)
	}
	for i, c := range again {
		d.recoveries++
		what := fmt.Sprintf("%s, then at step %d of the recovery", what, i)
		s, err := topiclog.Open(d.options(c))
		if err != nil {
			d.t.Errorf("seed %d, operation %d: %s: %v", d.seed, d.ops, what, err)
			return
		}
		d.compare(s, m, what)
		if err := s.Close(); err != nil {
			d.t.Errorf("seed %d: %s: closing: %v", d.seed, what, err)
		}
	}
}

func (d *driver) verifyCrash(fsys *vfs.MemFS, m *model, what string) {
	if d.crashRng.IntN(8) == 0 {
		d.duringRecovery(fsys, m, what)
	}
	s, err := topiclog.Open(d.options(fsys))
	if err != nil {
		d.t.Errorf("seed %d, operation %d: %s: %v", d.seed, d.ops, what, err)
		return
	}
	d.compare(s, m, what)
	// Appends go on, offsets are never given twice, and a second crash right
	// after loses nothing either.
	for _, name := range slices.Sorted(maps.Keys(m.topics)) {
		tp, err := s.Topic(name)
		if err != nil || m.maybeGone[name] {
			continue
		}
		for i, p := range m.topics[name].parts {
			if d.crashRng.IntN(3) > 0 {
				continue
			}
			v := fmt.Sprintf("after-crash-%d", i)
			res, err := s.Append(context.Background(), topiclog.AppendRequest{Partition: tp.Partitions[i].ID, Batches: batch(d.t, v)})
			if err != nil {
				d.t.Errorf("seed %d: %s: appending after the crash: %v", d.seed, what, err)
				continue
			}
			if res.BaseOffset < p.next {
				d.t.Errorf("seed %d, operation %d: %s: topic %s partition %d: offset %d was given again, %d is next",
					d.seed, d.ops, what, name, i, res.BaseOffset, p.next)
			}
			// What may have been under way is settled by now.
			got, err := readRecs(s, tp.Partitions[i].ID)
			if err != nil {
				d.t.Errorf("seed %d: %s: %v", d.seed, what, err)
				continue
			}
			p.recs, p.maybeRecs, p.next = got, nil, res.BaseOffset+1
		}
	}
	again := fsys.CrashClone(vfs.CrashOptions{})
	if err := s.Close(); err != nil {
		d.t.Errorf("seed %d: %s: closing: %v", d.seed, what, err)
	}
	s, err = topiclog.Open(d.options(again))
	if err != nil {
		d.t.Errorf("seed %d: %s, second crash: %v", d.seed, what, err)
		return
	}
	d.compare(s, m, what+", second crash")
	if err := s.Close(); err != nil {
		d.t.Errorf("seed %d: %s: closing: %v", d.seed, what, err)
	}
}

// readRecs reads a whole partition from its start.
func readRecs(s *topiclog.Store, id topiclog.PartitionID) ([]mrec, error) {
	st, err := s.State(id)
	if err != nil {
		return nil, err
	}
	var out []mrec
	var dec record.Decoder
	for at := st.Start; ; {
		l, err := s.Fetch(context.Background(), topiclog.FetchRequest{Partition: id, Offset: at, MaxBytes: 10_000})
		if err != nil {
			return nil, err
		}
		if len(l.Chunks) == 0 {
			l.Release()
			return out, nil
		}
		for _, c := range l.Chunks {
			for len(c) > 0 {
				var b record.Batch
				if b, c, err = record.Split(c); err != nil {
					return nil, err
				}
				it, err := dec.Records(b)
				if err != nil {
					return nil, err
				}
				var r record.Record
				for it.Next(&r) {
					if r.Offset >= at {
						out = append(out, mrec{r.Offset, string(r.Value)})
					}
				}
				if it.Err() != nil {
					return nil, it.Err()
				}
			}
		}
		at = l.NextOffset
		l.Release()
	}
}

// compare checks a store against the oracle.
func (d *driver) compare(s *topiclog.Store, m *model, what string) {
	bad := func(format string, args ...any) {
		d.t.Errorf("seed %d, operation %d: %s: %s (recovery %+v)", d.seed, d.ops, what, fmt.Sprintf(format, args...), s.Status().Recovery)
	}
	for _, dm := range s.Status().Recovery.Damage {
		if dm.Kind == topiclog.DamageRotten {
			bad("a crash looks like rot: %s", dm)
		}
	}
	for _, t := range s.Topics() {
		if m.topics[t.Name] == nil && !m.maybeNew[t.Name] {
			bad("topic %s should not be there", t.Name)
		}
	}
	for name, mt := range m.topics {
		tp, err := s.Topic(name)
		if errors.Is(err, topiclog.ErrTopicNotFound) && m.maybeGone[name] {
			continue
		}
		if err != nil || tp.ID != mt.id || len(tp.Partitions) < len(mt.parts) {
			bad("topic %s: %v, id %s, want %s", name, err, tp.ID, mt.id)
			continue
		}
		for i, p := range mt.parts {
			if tp.Partitions[i].ID != p.id {
				bad("topic %s partition %d has id %d, want %d", name, i, tp.Partitions[i].ID, p.id)
				continue
			}
			d.comparePart(s, name, i, p, bad)
		}
	}
}

func (d *driver) comparePart(s *topiclog.Store, name string, i int, p *mpart, bad func(string, ...any)) {
	st, err := s.State(p.id)
	if err != nil {
		bad("topic %s partition %d: %v", name, i, err)
		return
	}
	if st.Start != p.start && st.Start != p.maybeStart {
		bad("topic %s partition %d starts at %d, want %d or %d", name, i, st.Start, p.start, p.maybeStart)
	}
	got, err := readRecs(s, p.id)
	if err != nil {
		bad("topic %s partition %d: %v", name, i, err)
		return
	}
	want := slices.DeleteFunc(slices.Clone(p.recs), func(r mrec) bool { return r.offset < st.Start })
	n := 0
	for n < len(got) && n < len(want) && got[n] == want[n] {
		n++
	}
	switch {
	case n < len(want) && !p.os:
		bad("topic %s partition %d: acknowledged record %v is lost or changed; read %d of %d records, next %v", name, i, want[n], len(got), len(want), got[n:min(n+2, len(got))])
		return
	case n < len(want) && n < len(got):
		bad("topic %s partition %d: read %v, want %v", name, i, got[n], want[n])
		return
	}
	// The rest can only be a prefix of what was under way, in order.
	rest := got[n:]
	maybe := p.maybeRecs
	for _, r := range rest {
		if len(maybe) == 0 || r.value != maybe[0].value {
			bad("topic %s partition %d: read %v, which nobody appended there", name, i, r)
			return
		}
		maybe = maybe[1:]
	}
	cursor := int64(-1)
	for _, c := range s.Cursors("group") {
		if c.Partition == p.id {
			cursor = c.Offset
		}
	}
	if cursor != p.cursor && cursor != p.maybeCursor {
		bad("topic %s partition %d: cursor %d, want %d or %d", name, i, cursor, p.cursor, p.maybeCursor)
	}
	notes, err := s.Notes(p.id, "job")
	if err != nil {
		bad("notes: %v", err)
	}
	if len(notes) < len(p.notes) && !p.os {
		bad("topic %s partition %d: %d notes, want %d", name, i, len(notes), len(p.notes))
	}
	// An os topic may lose notes with their records, and of records that were
	// deleted it is not even seen.
	k := 0
	for _, want := range p.notes {
		if k < len(notes) && string(notes[k].Data) == want {
			k++
		} else if !p.os {
			bad("topic %s partition %d: note %d is not %q", name, i, k, want)
		}
	}
}
