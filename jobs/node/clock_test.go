package node

import (
	"fmt"
	"testing"
	"time"
)

// TestBatchClock: a batch job reads the clock once, at its generation's first
// start, and says the same after every restart.
func TestBatchClock(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "x", 3)
	for i := range 9 {
		w.produce(n, "x", fmt.Sprintf(`{"id":%d,"a":0}`, i))
	}
	sql := "SET 'execution.runtime-mode' = 'batch';\n" + source("x", "x") + w.sink("out") +
		"INSERT INTO `out` SELECT id, UNIX_TIMESTAMP(CAST(CURRENT_TIMESTAMP AS STRING)) FROM x;"
	// What an earlier start, cut short by a crash, had written down.
	began := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	if err := n.records.put(jobRecord{Name: "job", ID: newUUID(), Path: "/jobs/job.sql", BeganMillis: began.UnixMilli()}); err != nil {
		t.Fatal(err)
	}
	w.run(n, w.options("job", sql))
	var want []string
	for i := range int64(9) {
		want = append(want, row(i, began.Unix()))
	}
	w.wantRows("out", want...)
}
