package kafka

import (
	"fmt"
	"slices"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/connectors/format/rawfmt"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// changes is a batch of changes of a table (id, n).
func changes(table *connector.Table, kinds []batch.Kind, ids, ns []int64) *batch.Batch {
	b := new(batch.Batch)
	b.Reset(table.Schema(nil))
	for i := range b.Cols {
		b.Cols[i].Reset(b.Schema.Fields[i].Type, len(kinds))
	}
	copy(b.Cols[0].I64, ids)
	copy(b.Cols[1].I64, ns)
	b.Kinds, b.Len = kinds, len(kinds)
	return b
}

// TestUpsert is upserts on the test double.
func TestUpsert(t *testing.T) { newWorld(t).upserts(t, func() {}) }

// upserts: changes become records of their key, what a row is now, or nothing. A keyed
// stage's artefacts carry their records, deletions as well, so that another process
// can publish them. The table that is read is the one that was written. fault befalls
// the cluster between the two processes.
func (w *world) upserts(t *testing.T, fault func()) {
	w.topic("newest", 3, map[string]string{"cleanup.policy": "compact"})
	u := NewUpsert(jsonfmt.Format{}, rawfmt.Format{})
	with := w.options("newest", "connector", "upsert-kafka", "key.format", "raw", "value.format", "json", "value.fields-include", "EXCEPT_KEY")
	delete(with, "scan.startup.mode")
	with["scan.bounded.mode"] = "latest-offset"
	v, errs := u.Spec().Resolve(with)
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	notNull := types.NewBigInt().WithNullable(false)
	table := &connector.Table{Name: "newest", Columns: columns(field("id", notNull), field("n", types.NewBigInt())), PrimaryKey: []int{0}, Options: v}
	open := func(epoch uint64) connector.Sink {
		s, err := u.OpenSink(w.ctx, table, conntest.OwnerOf(1, epoch))
		check(t, err)
		t.Cleanup(func() { s.Close() })
		return s
	}
	s := open(1)
	a := connector.Attempt{ID: connector.ArtifactID{Job: conntest.UUID(1), Table: conntest.UUID(9), Keyed: true, Subtask: 2, Epoch: 1, Manifest: 1}, MemoryBytes: 16 << 20}
	wr, err := s.OpenWriter(w.ctx, a)
	check(t, err)
	sw := &sinkWorld{world: w}
	first := sw.seal(wr, a, 0, changes(table, []batch.Kind{batch.Insert, batch.Insert, batch.UpdateBefore, batch.UpdateAfter}, []int64{1, 2, 1, 1}, []int64{10, 20, 10, 11}))
	check(t, s.Publish(w.ctx, []connector.Artifact{first})...)
	second := sw.seal(wr, a, 1, changes(table, []batch.Kind{batch.Delete, batch.UpdateAfter}, []int64{2, 1}, []int64{20, 12}))

	// The process ends; the next one publishes what was sealed.
	check(t, s.Close())
	fault()
	next := open(2)
	outcomes, err := next.Resolve(w.ctx, []connector.Artifact{first, second})
	check(t, err)
	if !slices.Equal(outcomes, []connector.Outcome{connector.Published, connector.Sealed}) {
		t.Fatalf("outcomes %v", outcomes)
	}
	check(t, next.Publish(w.ctx, []connector.Artifact{second})...)
	check(t, next.Publish(w.ctx, []connector.Artifact{second})...) // once more changes nothing

	have := map[string][]string{}
	partition := map[string]int32{}
	for _, r := range w.committed("newest") {
		key := fmt.Sprintf("%x", r.Key)
		if p, seen := partition[key]; seen && p != r.Partition {
			t.Errorf("key %s is in partitions %d and %d", key, p, r.Partition)
		}
		partition[key] = r.Partition
		value := "deleted"
		if r.Value != nil {
			value = string(r.Value)
		}
		have[key] = append(have[key], value)
	}
	want := map[string][]string{"0000000000000001": {`{"n":10}`, `{"n":11}`, `{"n":12}`}, "0000000000000002": {`{"n":20}`, "deleted"}}
	for key, values := range want {
		if !slices.Equal(have[key], values) {
			t.Errorf("key %s: %v, want %v", key, have[key], values)
		}
	}
	if len(have) != len(want) {
		t.Errorf("keys %v", have)
	}

	source, err := u.OpenSource(w.ctx, table)
	check(t, err)
	defer source.Close()
	rows := map[int64]string{}
	_, err = w.open(source, []int{0, 1}).collect(-1, 100, 1<<20, func(b *batch.Batch) {
		for i := range b.Len {
			if id := b.Cols[0].I64[i]; b.KindOf(i) == batch.Delete {
				delete(rows, id)
			} else {
				rows[id] = cellText(&b.Cols[1], i)
			}
		}
	})
	check(t, err)
	if len(rows) != 1 || rows[1] != "12" {
		t.Errorf("the table that is read has %v, want 12 for key 1", rows)
	}
}
