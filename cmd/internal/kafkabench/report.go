package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/millrace/millrace/connectors/conntest/services"
)

// spread is the middle of some measurements with the lowest and the highest.
type spread struct{ median, low, high float64 }

func spreadOf(xs []float64) spread {
	if len(xs) == 0 {
		return spread{}
	}
	s := slices.Sorted(slices.Values(xs))
	mid := s[len(s)/2]
	if len(s)%2 == 0 {
		mid = (s[len(s)/2-1] + s[len(s)/2]) / 2
	}
	return spread{mid, s[0], s[len(s)-1]}
}

// format is "median (low-high)"; nothing for what was not measured.
func (s spread) format(digits int) string {
	if s.high == 0 {
		return ""
	}
	if s.low == s.high {
		return fmt.Sprintf("%.*f", digits, s.median)
	}
	return fmt.Sprintf("%.*f (%.*f-%.*f)", digits, s.median, digits, s.low, digits, s.high)
}

// of is the spread of a value over one system's measurements in a phase.
func of(all []measurement, phase, system string, value func(measurement) float64) spread {
	var xs []float64
	for _, m := range all {
		if m.Phase == phase && m.System == system {
			xs = append(xs, value(m))
		}
	}
	return spreadOf(xs)
}

func rateOf(m measurement) float64  { return m.Rate }
func wholeOf(m measurement) float64 { return m.Whole }
func cpuOf(m measurement) float64   { return m.CPU }
func toolOf(m measurement) float64  { return m.Tool }
func p50Of(m measurement) float64   { return m.P50 }
func p99Of(m measurement) float64   { return m.P99 }
func peakOf(m measurement) float64  { return m.Resident }
func filesOf(m measurement) float64 { return m.Files }
func openOf(m measurement) float64  { return m.Open }
func openCPU(m measurement) float64 { return m.OpenCPU }
func diskOf(m measurement) float64  { return m.Disk }

// systemsOf lists the systems of a phase in their order of appearance.
func systemsOf(all []measurement, phase string) []string {
	var out []string
	for _, m := range all {
		if m.Phase == phase && !slices.Contains(out, m.System) {
			out = append(out, m.System)
		}
	}
	return out
}

// printThroughput prints a table a phase. The ratios are of medians: rates and CPU
// seconds over those of Kafka without a sync, rates over the ceiling's.
func (b *bench) printThroughput(c cell, all []measurement) {
	for _, phase := range []string{producing, consuming} {
		systems := systemsOf(all, phase)
		if len(systems) == 0 {
			continue
		}
		fmt.Fprintf(b.out, "\n%s: %v; medians of %d (lowest-highest)\n", phase, c, b.repetitions)
		w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "system\tMB/s\tof kafka\tof ceiling\tCPU s/GB\tof kafka\tclient CPU s/GB\tp50 ms\tp99 ms\tpeak MiB\twith join MB/s")
		rate, cpu, most := of(all, phase, kafka, rateOf).median, of(all, phase, kafka, cpuOf).median, of(all, phase, ceilingSystem, rateOf).median
		for _, s := range systems {
			r, u := of(all, phase, s, rateOf), of(all, phase, s, cpuOf)
			fmt.Fprintln(w, strings.Join([]string{s, r.format(1), ratio(r.median, rate), ratio(r.median, most), u.format(2), ratio(u.median, cpu), of(all, phase, s, toolOf).format(2),
				of(all, phase, s, p50Of).format(0), of(all, phase, s, p99Of).format(0), of(all, phase, s, peakOf).format(0), of(all, phase, s, wholeOf).format(1)}, "\t"))
		}
		w.Flush()
	}
}

func ratio(a, b float64) string {
	if a == 0 || b == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", a/b)
}

// note shows a measurement as it comes, and keeps it where -raw says.
func (b *bench) note(m measurement) error {
	m.Load = services.LoadAverage()
	b.say("  %d %-8s %-30s %8.1f MB/s %6.2f CPU s/GB  p99 %.0f ms  peak %.0f MiB  files %.0f  load %s", m.Repetition+1, m.Phase, m.System, m.Rate, m.CPU, m.P99, m.Resident, m.Files, m.Load)
	return b.keep(m)
}

// keep adds a measurement to the file of -raw.
func (b *bench) keep(m measurement) error {
	if b.raw == "" {
		return nil
	}
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("writing a measurement: %w", err)
	}
	f, err := os.OpenFile(b.raw, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("keeping a measurement: %w", err)
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		f.Close()
		return fmt.Errorf("keeping a measurement: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("keeping a measurement: %w", err)
	}
	return nil
}
