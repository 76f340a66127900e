package keyed

import (
	"context"
	"reflect"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
	"weak"

	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/pace"
	"github.com/millrace/millrace/runtime/state"
)

// Write notes the bodies of the state files.
func (w *weighed) Write(ctx context.Context, n uint64, files []checkpoint.File) error {
	for _, f := range files {
		if f.Name != checkpoint.ManifestFile {
			body := reflect.ValueOf(f.Body).Elem().FieldByName("Body").Interface()
			w.written = append(w.written, weak.Make(body.(*state.Sections)))
		}
	}
	return w.Store.Write(ctx, n, files)
}

// headRoom is what the collector lets the heap grow by, in per cent of what is live.
func headRoom() int {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return int(s[0].Value.Uint64())
}

// eventually waits for something that nobody tells of.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick, limit := time.NewTicker(time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal(what)
		}
	}
}

// TestSavedStateIsNotHeld: what a checkpoint has written is let go when it is durable, not
// with the next checkpoint, which may be long after.
func TestSavedStateIsNotHeld(t *testing.T) {
	l := newLarge(t)
	st, err := l.open(2, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Kill()
	l.give(st, rowsOf(10_000)...)
	if len(l.store.written) != 2 {
		t.Fatalf("%d state files", len(l.store.written))
	}
	for _, body := range l.store.written {
		eventually(t, "saved state is held after its checkpoint", func() bool {
			runtime.GC()
			return body.Value() == nil
		})
	}
}

// TestCollectorFollowsRestoredState: it does so while state is read, not only when rows
// come; and not any more once the stages have ended, or have not begun.
func TestCollectorFollowsRestoredState(t *testing.T) {
	t.Setenv("GOGC", "")
	pace.Follow()
	atRest := func() {
		t.Helper()
		// Less than three per cent is not worth a change.
		eventually(t, "the collector follows state that is not there any more", func() bool { return headRoom() >= 98 })
	}
	atRest()
	l := newLarge(t)
	st, err := l.open(2, 0)
	if err != nil {
		t.Fatal(err)
	}
	l.give(st, rowsOf(60_000)...)
	st.Kill()
	atRest()
	st, err = l.open(2, 0)
	if err != nil {
		t.Fatal(err)
	}
	// About 8 MiB of 24: (16 + 8/4) / (16 + 8).
	if l.store.pace > 85 {
		t.Errorf("a head room of %d %% while state was read", l.store.pace)
	}
	st.Kill()
	atRest()
	l.damage()
	if _, err := l.open(2, 0); err == nil {
		t.Fatal("damaged state was taken")
	}
	if l.store.pace > 85 {
		t.Errorf("a head room of %d %% while damaged state was read", l.store.pace)
	}
	atRest()
}
