package lane

import (
	"testing"
	"time"
)

func TestDeadRate(t *testing.T) {
	at := time.Unix(1000, 0)
	r := newDeadRate(5, at)
	steps := []struct {
		after time.Duration
		rows  int64
		ok    bool
	}{
		{0, 50, true}, // ten seconds' worth at once
		{0, 1, false}, // and no more
		{time.Second, 5, true},
		{time.Second, 6, false},
		{0, 5, true}, // what was refused took nothing
		{time.Hour, 51, false},
		{0, 50, true},
	}
	for i, s := range steps {
		at = at.Add(s.after)
		if ok := r.take(s.rows, at); ok != s.ok {
			t.Errorf("step %d: %d rows after %v: %v", i, s.rows, s.after, ok)
		}
	}
	none := newDeadRate(0, at)
	if !none.take(1<<40, at) {
		t.Error("without a limit there is one")
	}
}
