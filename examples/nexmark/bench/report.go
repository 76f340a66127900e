package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/connectors/conntest/services"
)

// report prints as it goes, and keeps what it printed.
type report struct {
	c    *config
	text strings.Builder
}

func newReport(c *config) *report { return &report{c: c} }

func (r *report) say(format string, args ...any) {
	line := fmt.Sprintf(format+"\n", args...)
	fmt.Print(line)
	r.text.WriteString(line)
}

// settings say what both run with.
func (c *config) settings() string {
	var b strings.Builder
	fmt.Fprintf(&b, "source %s, %d events (%d of q", c.source, c.events, c.heavy)
	var heavy []int
	for n := range withoutWindow {
		heavy = append(heavy, n)
	}
	slices.Sort(heavy)
	b.WriteString(strings.Trim(strings.Join(strings.Fields(fmt.Sprint(heavy)), ", q"), "[]") + ")")
	fmt.Fprintf(&b, ", core %q, %d runs in turns, medians (lowest to highest)\n", c.cpu, c.runs)
	fmt.Fprintf(&b, "Flink %s: java %s\n", services.FlinkVersion, strings.Join(c.flinkJVM(), " "))
	var set []string
	for k, v := range c.flinkSettings() {
		set = append(set, k+"="+v)
	}
	slices.Sort(set)
	fmt.Fprintf(&b, "  %s\n", strings.Join(set, "\n  "))
	fmt.Fprintf(&b, "Millrace: %s, GOMAXPROCS=1 where there is a core, checkpoints every 10 s", c.millrace)
	return b.String()
}

func (r *report) header() {
	r.say("")
	r.say("| query | events | Millrace, events per CPU s | Flink, events per CPU s | ratio | Millrace, wall s | Flink, wall s | Millrace, MiB | Flink, MiB |")
	r.say("|---|---|---|---|---|---|---|---|---|")
}

// row is a query's line.
func (r *report) row(n int, m *measured) {
	ours, theirs := rates(m.events, m.millrace), rates(m.events, m.flink)
	wall := func(x run) float64 { return x.wall.Seconds() }
	peak := func(x run) float64 { return float64(x.peak) / (1 << 20) }
	if len(m.flink) == 0 {
		r.say("| q%d | %d | %s | %s | | %s | | %s | |", n, m.events, spread(ours, "%.0f"), m.noFlink,
			spread(values(m.millrace, wall), "%.1f"), spread(values(m.millrace, peak), "%.0f"))
		return
	}
	r.say("| q%d | %d | %s | %s | %.1fx | %s | %s | %s | %s |", n, m.events, spread(ours, "%.0f"), spread(theirs, "%.0f"), median(ours)/median(theirs),
		spread(values(m.millrace, wall), "%.1f"), spread(values(m.flink, wall), "%.1f"),
		spread(values(m.millrace, peak), "%.0f"), spread(values(m.flink, peak), "%.0f"))
}

func rates(events int, runs []run) []float64 {
	return values(runs, func(x run) float64 { return float64(events) / max(x.cpu, time.Millisecond).Seconds() })
}

func values(runs []run, f func(run) float64) []float64 {
	out := make([]float64, len(runs))
	for i, x := range runs {
		out[i] = f(x)
	}
	slices.Sort(out)
	return out
}

func median(sorted []float64) float64 { return sorted[len(sorted)/2] }

func spread(sorted []float64, format string) string {
	return fmt.Sprintf(format+" ("+format+"-"+format+")", median(sorted), sorted[0], sorted[len(sorted)-1])
}

// save appends what was printed to a file.
func (r *report) save() error {
	if r.c.out == "" {
		return nil
	}
	f, err := os.OpenFile(r.c.out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("saving the report: %w", err)
	}
	if _, err := f.WriteString(r.text.String() + "\n"); err != nil {
		return fmt.Errorf("saving the report: %w", err)
	}
	return f.Close()
}
