package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
)

// TestDecideClose tells what the table's committer does next. Partitions are
// "h0", "h1"... of an hour each, announced when the watermark has passed their
// start by an hour.
func TestDecideClose(t *testing.T) {
	const hour = int64(3_600_000)
	byTime := connector.CommitPolicy{Trigger: connector.PartitionTime, Delay: time.Hour, Time: func(tp string) (int64, error) {
		var h int64
		_, err := fmt.Sscanf(tp, "h%d", &h)
		return h * hour, err
	}}
	byClock := connector.CommitPolicy{Trigger: connector.ProcessTime, Delay: time.Hour}
	at := func(next, watermark int64) lane.Progress { return lane.Progress{Next: next, Watermark: watermark} }
	closing := func(bound int64) *ledger.Close {
		return &ledger.Close{TablePartition: "h0", Step: ledger.Closing, Version: 1, Bounds: []ledger.Bound{{Offset: bound}}}
	}
	step := func(s ledger.CloseStep) *ledger.Close {
		return &ledger.Close{TablePartition: "h0", Step: s, Version: 1}
	}

	for _, c := range []struct {
		name string
		s    closeState
		idle bool // of the second source partition
		want string
	}{
		{"nothing is known while a lane is down", closeState{policy: byTime, progress: []lane.Progress{at(9, 9*hour)}, partitions: []string{"h0"}}, false, ""},
		{"the watermark has not passed", closeState{policy: byTime, known: true, progress: []lane.Progress{at(9, hour-1)}, partitions: []string{"h0"}}, false, ""},
		{"it has passed: bounds are where each lane is", closeState{policy: byTime, known: true, progress: []lane.Progress{at(9, hour), at(5, 2*hour)}, partitions: []string{"h0", "h1"}}, false,
			"closing h0 at 9,5; seal h0"},
		{"one partition holds it back", closeState{policy: byTime, known: true, progress: []lane.Progress{at(9, hour), at(5, batch.NoWatermark)}, partitions: []string{"h0"}}, false, ""},
		{"unless it is idle", closeState{policy: byTime, known: true, progress: []lane.Progress{at(9, hour), at(5, batch.NoWatermark)}, partitions: []string{"h0"}}, true,
			"closing h0 at 9,5; seal h0"},
		{"a partition without a time waits for the end", closeState{policy: byTime, known: true, progress: []lane.Progress{at(9, 99*hour)}, partitions: []string{"__HIVE_DEFAULT_PARTITION__"}}, false, ""},
		{"the end closes everything", closeState{policy: byTime, known: true, ended: true, progress: []lane.Progress{at(9, batch.MaxWatermark)}, partitions: []string{"__HIVE_DEFAULT_PARTITION__", "h7"}}, false,
			"closing __HIVE_DEFAULT_PARTITION__ at 9; closing h7 at 9; seal __HIVE_DEFAULT_PARTITION__; seal h7"},
		{"files of a closing partition are wanted", closeState{policy: byTime, known: true, progress: []lane.Progress{at(9, hour)}, partitions: []string{"h0"}, open: map[string]bool{"h0": true},
			closes: map[string]*ledger.Close{"h0": closing(9)}}, false, "seal h0"},
		{"after a crash it is not closed before the bounds are reached again", closeState{policy: byTime, known: true, progress: []lane.Progress{at(8, hour)}, partitions: []string{"h0"},
			closes: map[string]*ledger.Close{"h0": closing(9)}}, false, "seal h0"},
		{"all committed: closed", closeState{policy: byTime, known: true, progress: []lane.Progress{at(9, hour)}, partitions: []string{"h0"},
			closes: map[string]*ledger.Close{"h0": closing(9)}}, false, "closed h0; seal h0"},
		{"closed without announced is announced, whatever else is known", closeState{policy: byTime, partitions: []string{"h0"},
			closes: map[string]*ledger.Close{"h0": step(ledger.Closed)}}, false, "announce h0"},
		{"a replay closes nothing that others wait for", closeState{policy: byTime, known: true, ended: true, leave: true, progress: []lane.Progress{at(9, batch.MaxWatermark)},
			partitions: []string{"h0", "h1"}, closes: map[string]*ledger.Close{"h0": closing(5)}}, false, ""},
		{"a replay announces again what it has added to", closeState{policy: byTime, known: true, ended: true, leave: true, progress: []lane.Progress{at(9, batch.MaxWatermark)},
			partitions: []string{"h0"}, closes: map[string]*ledger.Close{"h0": {TablePartition: "h0", Step: ledger.Closing, Version: 2}}}, false, "closed h0; seal h0"},
		{"announced is done", closeState{policy: byTime, known: true, ended: true, partitions: []string{"h0"},
			closes: map[string]*ledger.Close{"h0": step(ledger.Announced)}}, false, ""},
		{"by the clock: not yet", closeState{policy: byClock, known: true, now: hour - 1, first: map[string]int64{"h0": 0}, progress: []lane.Progress{at(9, 0)}, partitions: []string{"h0"}}, false, ""},
		{"by the clock", closeState{policy: byClock, known: true, now: hour, first: map[string]int64{"h0": 0}, progress: []lane.Progress{at(9, batch.NoWatermark)}, partitions: []string{"h0"}}, false,
			"closing h0 at 9; seal h0"},
	} {
		s := c.s
		for i := range s.progress {
			s.progress[i].Output.Partition = int32(i)
		}
		s.idle = func(p *lane.Progress) bool { return c.idle && p.Output.Partition == 1 }
		p := decideClose(&s)
		var got []string
		for _, f := range p.facts {
			line := f.Step.String() + " " + f.TablePartition
			if f.Step == ledger.Closing {
				var bounds []string
				for _, b := range f.Bounds {
					bounds = append(bounds, fmt.Sprint(b.Offset))
				}
				line += " at " + strings.Join(bounds, ",")
			}
			got = append(got, line)
		}
		for _, tp := range p.seal {
			got = append(got, "seal "+tp)
		}
		for _, x := range p.announce {
			got = append(got, "announce "+x.TablePartition)
		}
		if g := strings.Join(got, "; "); g != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, g, c.want)
		}
	}
}

func TestParseOptions(t *testing.T) {
	o, err := ParseOptions(map[string]string{"lane.detach-after": "5 s", "slot.count": "3", "slot.memory": "1 mb", "lane.linger": "0", "other.key": "x"})
	if err != nil || o.Lane.DetachAfter != 5*time.Second || o.Slots != 3 || o.SlotMemoryBytes != 1<<20 || o.Lane.Linger >= 0 {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := ParseOptions(map[string]string{"lane.detach-after": "soon"}); err == nil || !strings.Contains(err.Error(), "lane.detach-after") {
		t.Errorf("a bad duration: %v", err)
	}
	for _, s := range Specs() {
		// Every declared option is read: a bad value of it is noticed.
		if _, err := ParseOptions(map[string]string{s.Key: "?"}); err == nil {
			t.Errorf("option %s is declared and not read", s.Key)
		}
	}
}
