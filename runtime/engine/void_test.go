package engine_test

import (
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
)

// TestVoidFilesAreRemoved: what is void at the old home is hidden there, kept while its
// partition is not announced at the new one, and then removed.
func TestVoidFilesAreRemoved(t *testing.T) {
	w := newTwoHomes(t)
	p := w.Process()
	r, book := w.begin(p)
	for i := range int64(12) {
		w.feed("a", i, i/3) // hours 0 to 3
		w.feed("b", 100+i, i/3)
	}
	w.written(r, p, 24)
	w.wait(r, p, "announcements", func(s engine.Status) bool { return s.Tables[0].Announced == 3 })
	if done, err := r.Switch(t.Context(), engine.SwitchRequest{Table: "t", To: connector.StandbyHome, Reason: "by hand"}); err != nil || done.Rows != 6 {
		t.Fatalf("switched: %+v, %v", done, err)
	}
	w.written(r, p, 24)
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Homes are looked at as soon as a run has begun, and often.
	w.rule = connector.Standby{Auto: true, After: time.Minute / 1000}
	hidden := func() bool {
		fact, _ := book.Table("t")
		for _, f := range book.Moved(fact.ID) {
			if !f.Retracted {
				return false
			}
		}
		return len(book.Moved(fact.ID)) > 0
	}
	p = w.Process()
	r, book = w.begin(p)
	w.wait(r, p, "hiding", func(engine.Status) bool { return hidden() })
	for i := range int64(2) { // hour 3 ends
		w.feed("a", 200+i, 5)
		w.feed("b", 300+i, 5)
	}
	w.written(r, p, 28)
	// Since it was hidden the partition has been announced at most, and nobody has
	// looked again.
	if w.Kept("main") == 0 {
		t.Error("nothing is kept of a partition that was not announced at its new home")
	}
	w.wait(r, p, "announcement at the new home", func(s engine.Status) bool { return s.Tables[0].Announced == 4 })
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	p = w.Process()
	r, book = w.begin(p)
	w.wait(r, p, "removal", func(engine.Status) bool { return w.Kept("main") == 0 })
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.verify(book, "t")
}
