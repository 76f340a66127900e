package main

import (
	"fmt"
	"slices"
	"time"
)

// report prints the table: medians, lowest to highest.
func (m *measured) report(say func(string, ...any)) {
	rate := func(r run) float64 { return float64(m.events) / r.cpu.Seconds() }
	perMillion := func(seconds float64) float64 { return seconds * 1e6 / float64(m.events) }
	rows := []struct {
		what, format string
		of           func(run) float64
		higher       bool // is better
	}{
		{"events per CPU s", "%.0f", rate, true},
		{"CPU s per million events", "%.1f", func(r run) float64 { return perMillion(r.cpu.Seconds()) }, false},
		{"broker's CPU s beside it", "%.1f", func(r run) float64 { return perMillion(r.broker.Seconds()) }, false},
		{"HDFS's CPU s beside it", "%.1f", func(r run) float64 { return perMillion(r.hdfs.Seconds()) }, false},
		{"seconds", "%.1f", func(r run) float64 { return r.wall.Seconds() }, false},
		{"peak MiB", "%.0f", func(r run) float64 { return float64(r.peak) / (1 << 20) }, false},
	}
	say("")
	ours, theirs := medianOf(m.millrace, rate), medianOf(m.flink, rate)
	beyond := func(s spread, idle time.Duration) float64 { return 1 / (1/s.middle - idle.Seconds()/float64(m.events)) }
	say("| | Millrace | Flink | ratio |")
	say("|---|---|---|---|")
	for _, row := range rows {
		ours, theirs := medianOf(m.millrace, row.of), medianOf(m.flink, row.of)
		ratio := theirs.middle / ours.middle
		if row.higher {
			ratio = ours.middle / theirs.middle
		}
		say("| %s | %s | %s | %.1fx |", row.what, ours.text(row.format), theirs.text(row.format), ratio)
	}
	x, y := beyond(ours, m.millraceIdle), beyond(theirs, m.flinkIdle)
	say("| events per CPU s beyond a run without events | %.0f | %.0f | %.1fx |", x, y, x/y)
}

// spread is a figure over several runs.
type spread struct{ least, middle, most float64 }

func medianOf(runs []run, of func(run) float64) spread {
	all := make([]float64, len(runs))
	for i, r := range runs {
		all[i] = of(r)
	}
	slices.Sort(all)
	return spread{all[0], all[len(all)/2], all[len(all)-1]}
}

func (s spread) text(format string) string {
	return fmt.Sprintf(format+" ("+format+"-"+format+")", s.middle, s.least, s.most)
}
