package node

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/runtime/keyed"
	"github.com/millrace/millrace/storage/vfs"
)

// TestStateBeyondMemory: GROUP BY, ORDER BY and OVER go on on disk where other state ends the
// job, and neither a run nor a process that died leaves anything behind.
func TestStateBeyondMemory(t *testing.T) {
	w := newWorld(t)
	left := filepath.Join(w.dir, "spill", "of-a-process-that-died")
	if err := w.mem.MkdirAll(left); err != nil {
		t.Fatal(err)
	}
	n := w.open()
	gone := func(name string) {
		t.Helper()
		if there, err := vfs.Exists(w.mem, name); there || err != nil {
			t.Errorf("%s is there (%v)", name, err)
		}
	}
	gone(left)
	if there, err := vfs.Exists(w.mem, filepath.Dir(left)); !there || err != nil {
		t.Errorf("the directory itself, where a disk may be mounted: %v, %v", there, err)
	}
	w.topic(n, "clicks", 1)
	const keys = 20_000
	var records, want []string
	for i := range int64(2 * keys) {
		records = append(records, fmt.Sprintf(`{"id":%d,"a":%d,"b":1}`, i%keys, i))
	}
	for i := range int64(keys) {
		want = append(want, row(i, i+i+keys))
	}
	w.produce(n, "clicks", records...)
	head := "SET 'execution.runtime-mode' = 'batch';\nSET 'slot.state-memory' = '200 kb';\n" +
		source("clicks", "clicks")
	w.run(n, w.options("sums", head+w.sink("sums")+"INSERT INTO sums SELECT id, SUM(a) FROM clicks GROUP BY id;"))
	w.wantRows("sums", want...)

	want = want[:0]
	for i := range int64(2 * keys) {
		want = append(want, row(i%keys, i))
	}
	w.run(n, w.options("sorted", head+w.sink("ordered")+"INSERT INTO ordered SELECT id, a FROM clicks ORDER BY a;"))
	w.wantRows("ordered", want...)

	want = want[:0]
	for i := range int64(keys) {
		want = append(want, row(i, i), row(i, i+i+keys))
	}
	w.run(n, w.options("sofar", head+w.sink("sofar")+"INSERT INTO sofar SELECT id, SUM(a) OVER (PARTITION BY id ORDER BY a) FROM clicks;"))
	w.wantRows("sofar", want...)

	o := w.options("over", head+w.sink("totals")+"INSERT INTO totals SELECT id, SUM(a) OVER (ORDER BY a) FROM clicks;")
	r, err := n.Start(w.ctx(), o)
	if err != nil {
		t.Fatal(explain(err))
	}
	var limit *keyed.StateLimitError
	if err := r.Wait(w.ctx()); !errors.As(err, &limit) || limit.Kind != "Over" || limit.Spills {
		t.Errorf("OVER: %v", err)
	}
	w.close(n)
	gone(filepath.Join(w.dir, "spill", "x"))
	names, err := w.mem.List(filepath.Join(w.dir, "spill"))
	if len(names) > 0 {
		t.Errorf("%v are left of runs that have ended (%v)", names, err)
	}
}
