package cli

import (
	"testing"
	"time"

	"github.com/millrace/millrace/jobs/node"
)

func TestProgressLine(t *testing.T) {
	p := node.Progress{Job: "clicks", RowsPerSecond: 12345.6, Read: 20000, Lag: 7, Open: 1500, NextFileIn: 8400 * time.Millisecond, Dead: 2,
		Trouble: []string{"orders is quarantined: no space"}}
	if got, want := progressLine(p), "clicks: 12,345 rows/s, read 20,000, lag 7, open 1,500 (next file in 8s), dead 2, late 0; orders is quarantined: no space"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSummaryLine(t *testing.T) {
	for _, c := range []struct {
		p    node.Progress
		want string
	}{
		{node.Progress{Job: "j", Seconds: 2}, "job j: ended after 2.0 s; in all no rows read"},
		{node.Progress{Job: "j", Seconds: 2, Read: 1, Written: 1}, "job j: ended after 2.0 s; in all 1 row read = 1 written"},
		{node.Progress{Job: "j", Seconds: 2.5, Read: 2106, Written: 2000, Folded: 50, Filtered: 50, Dead: 3, Late: 2, Open: 1},
			"job j: ended after 2.5 s; in all 2,106 rows read = 2,000 written + 50 folded + 50 filtered + 3 dead + 2 late + 1 open"},
	} {
		if got := summaryLine(c.p); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
