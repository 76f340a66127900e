package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
)

// TestThousandTopics: 1,000 lanes into 1,001 tables in one process. When there
// is nothing to read they have no goroutine.
func TestThousandTopics(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 200
	}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("topic%d", i)
	}
	w := newWorld(names...)
	w.bounded = false
	w.sink.Roll = connector.RollPolicy{Bytes: 1 << 20}
	for i, name := range names {
		w.topics[name].Append(0, event(int64(i), 0), event(int64(n+i), 0))
	}
	before := runtime.NumGoroutine()
	start := time.Now()
	r := w.start(t, w.Process())
	until(t, r, "every row", func(s engine.Status) bool {
		for _, x := range s.Tables {
			if x.Name == "all" {
				return x.Counts.Read == int64(2*n)
			}
		}
		return false
	})
	t.Logf("%d lanes have read their rows after %v", n, time.Since(start))
	until(t, r, "rest", func(engine.Status) bool { return runtime.NumGoroutine()-before < 20 })
	// One record in one of them is read, the others sleep on.
	w.topics[names[7]].Append(0, event(-1, 0))
	until(t, r, "the row", func(s engine.Status) bool {
		for _, x := range s.Tables {
			if x.Name == "t_"+names[7] {
				return x.Counts.Read == 3
			}
		}
		return false
	})
	start = time.Now()
	if err := r.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped after %v", time.Since(start))
	w.check(t, map[string]int{"all": 2*n + 1, "t_" + names[7]: 3})
}
