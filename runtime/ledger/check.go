package ledger

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/offsets"
)

// Row is the equation of one output and source partition: what `ledger show`
// prints. Open is 0 unless a running lane added what it has read.
type Row struct {
	Table     *Table
	Topic     connector.UUID
	TopicName string
	Partition int32
	// Resume is the durable resume position.
	Resume int64
	Counts Counts
	Open   int64
}

// Rows are the equations of the book as it would be after a restart: the
// cursors, and above them the committed intents. By table, topic and partition.
func (b *Book) Rows() []Row {
	b.mu.RLock()
	defer b.mu.RUnlock()
	names := map[connector.UUID]string{}
	for _, l := range b.lanes {
		names[l.ID.Topic] = l.Topic
	}
	rows := map[CursorKey]*Row{}
	for k, c := range b.cursors {
		rows[k] = &Row{Table: b.table(k.Output), Topic: k.Topic, TopicName: names[k.Topic], Partition: k.Partition,
			Resume: c.Offset, Counts: c.Counts.Clone()}
	}
	for _, e := range b.intents {
		if e.Result != Committed || e.Rewrite {
			continue
		}
		for i := range e.Inputs {
			in := &e.Inputs[i]
			k := CursorKey{e.ID().Table, in.Topic, in.Partition}
			r := rows[k]
			if r == nil {
				r = &Row{Table: b.table(k.Output), Topic: k.Topic, TopicName: names[k.Topic], Partition: k.Partition}
				rows[k] = r
			}
			if in.Offsets.End() <= r.Resume {
				continue // the cursor counts it
			}
			above := in.Counts(r.Resume, math.MaxInt64)
			r.Counts.Add(&above)
		}
	}
	for table := range b.homes.moved {
		for k, n := range b.movingRows(table) {
			if r := rows[CursorKey{table, k.Topic, k.Partition}]; r != nil {
				n = min(n, r.Counts.Written)
				r.Counts.Written, r.Open = r.Counts.Written-n, r.Open+n
			}
		}
	}
	out := make([]Row, 0, len(rows))
	for _, r := range rows {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(x, y Row) int {
		return cmp.Or(cmp.Compare(x.Table.Name, y.Table.Name), cmp.Compare(x.TopicName, y.TopicName),
			slices.Compare(x.Topic[:], y.Topic[:]), cmp.Compare(x.Partition, y.Partition))
	})
	return out
}

func (b *Book) table(id connector.UUID) *Table {
	if t := b.byID[id]; t != nil {
		return t
	}
	return &Table{Name: id.String(), ID: id}
}

// Violation is something that must not be.
type Violation struct {
	Table     string
	Topic     string
	Partition int32
	Problem   string
}

// String is the violation as a line.
func (v Violation) String() string {
	return fmt.Sprintf("%s, topic %s partition %d: %s", v.Table, v.Topic, v.Partition, v.Problem)
}

// Check verifies the equation of each row and that no offset is committed
// twice for a table.
func (b *Book) Check() []Violation {
	var out []Violation
	for _, r := range b.Rows() {
		if open := r.Counts.Open(); open != r.Open {
			out = append(out, Violation{r.Table.Name, r.TopicName, r.Partition,
				fmt.Sprintf("read %d = written %d + folded %d + filtered %d + dead %d + late %d does not hold: %d rows are unaccounted for",
					r.Counts.Read, r.Counts.Written, r.Counts.Folded, r.Counts.Filtered.Sum(), r.Counts.Dead.Sum(), r.Counts.Late, open)})
		}
	}
	out = append(out, b.doubles()...)
	return append(out, b.rewrittenTwice()...)
}

// rewrittenTwice finds offsets that two artefacts hold which stand for void ones of
// one table partition.
func (b *Book) rewrittenTwice() []Violation {
	b.mu.RLock()
	defer b.mu.RUnlock()
	type key struct {
		CloseKey
		SourceKey
	}
	seen := map[key]offsets.Set{}
	var out []Violation
	for _, e := range b.intents {
		if e.Result != Committed || !e.Rewrite {
			continue
		}
		for i := range e.Artifacts {
			h := &e.Artifacts[i].Header
			if b.homes.void[h.ID] != nil {
				continue
			}
			for _, in := range h.Inputs {
				k := key{CloseKey{h.ID.Table, h.TablePartition}, SourceKey{in.Topic, in.Partition}}
				if twice := seen[k].Intersect(in.Offsets); !twice.Empty() {
					out = append(out, Violation{b.table(h.ID.Table).Name, in.Topic.String(), in.Partition,
						fmt.Sprintf("offsets %s of partition %s are in two artefacts of its home, one is %s", twice, h.TablePartition, h.ID)})
				}
				seen[k] = seen[k].Union(in.Offsets)
			}
		}
	}
	return out
}

func (b *Book) doubles() []Violation {
	b.mu.RLock()
	defer b.mu.RUnlock()
	type input struct {
		key CursorKey
		in  *Input
		id  connector.ArtifactID
	}
	var all []input
	for _, e := range b.intents {
		if e.Result == Committed && !e.Rewrite {
			for i := range e.Inputs {
				in := &e.Inputs[i]
				all = append(all, input{CursorKey{e.ID().Table, in.Topic, in.Partition}, in, e.ID()})
			}
		}
	}
	byKey := map[CursorKey][]offsets.Set{}
	for _, x := range all {
		byKey[x.key] = append(byKey[x.key], x.in.Offsets)
	}
	once := map[CursorKey]bool{} // nothing is in two sets: the union is as large as all
	for k, sets := range byKey {
		var sum int64
		for _, s := range sets {
			sum += s.Count()
		}
		once[k] = offsets.UnionOf(sets...).Count() == sum
	}
	seen := map[CursorKey]offsets.Set{}
	var out []Violation
	for _, x := range all {
		if !once[x.key] {
			if twice := seen[x.key].Intersect(x.in.Offsets); !twice.Empty() {
				out = append(out, Violation{b.table(x.key.Output).Name, x.key.Topic.String(), x.key.Partition,
					fmt.Sprintf("offsets %s are in two committed artefacts, one is %s", twice, x.id)})
			}
			seen[x.key] = seen[x.key].Union(x.in.Offsets)
		}
		for o := range x.in.Odd.All() {
			if !x.in.Offsets.Contains(o.Offset) {
				out = append(out, Violation{b.table(x.key.Output).Name, x.key.Topic.String(), x.key.Partition,
					fmt.Sprintf("offset %d has counts and is not in the set of %s", o.Offset, x.id)})
			}
		}
	}
	return out
}
