package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/jobs/node"
)

// progress shows what running jobs do, on stderr.
type progress struct {
	e        *Env
	mode     string
	interval time.Duration
}

// newProgress reads --progress: auto is a line that is rewritten on a
// terminal, and a line every ten seconds elsewhere.
func (e *Env) newProgress() (*progress, error) {
	p := &progress{e: e, mode: e.progress, interval: 10 * time.Second}
	if p.mode == "auto" {
		p.mode = "plain"
		if e.StderrTerminal {
			p.mode = "bar"
		}
	}
	switch p.mode {
	case "bar", "json":
		p.interval = time.Second
	case "plain", "none":
	default:
		return nil, usage("--progress %s: want auto, bar, plain, json or none", e.progress)
	}
	return p, nil
}

func (p *progress) show(running []*node.Running) {
	var lines []string
	for _, r := range running {
		s := r.Progress()
		switch p.mode {
		case "json":
			if b, err := json.Marshal(s); err == nil {
				p.e.note("%s", b)
			}
		case "plain":
			p.e.note("%s", progressLine(s))
		case "bar":
			lines = append(lines, progressLine(s))
		}
	}
	if len(lines) > 0 {
		p.e.bar(strings.Join(lines, " | "))
	}
}

// progressLine is what a job does, as one line for people.
func progressLine(p node.Progress) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s rows/s, read %s, lag %s, open %s", p.Job, output.Thousands(int64(p.RowsPerSecond)), output.Thousands(p.Read), output.Thousands(p.Lag), output.Thousands(p.Open))
	if p.Open > 0 && p.NextFileIn > 0 {
		fmt.Fprintf(&b, " (next file in %s)", output.Wait(p.NextFileIn))
	}
	fmt.Fprintf(&b, ", dead %s, late %s", output.Thousands(p.Dead), output.Thousands(p.Late))
	if p.Recovering {
		b.WriteString(", recovering")
	}
	for _, t := range p.Trouble {
		b.WriteString("; " + t)
	}
	return b.String()
}

// summaryLine is what a job has done so far, in all its runs: the ledger's
// equation without its zeros.
func summaryLine(p node.Progress) string {
	head := fmt.Sprintf("job %s: ended after %.1f s; in all ", p.Job, p.Seconds)
	if p.Read == 0 {
		return head + "no rows read"
	}
	var parts []string
	for _, x := range []struct {
		rows int64
		fate string
	}{{p.Written, "written"}, {p.Folded, "folded"}, {p.Filtered, "filtered"}, {p.Dead, "dead"}, {p.Late, "late"}, {p.Open, "open"}} {
		if x.rows != 0 {
			parts = append(parts, output.Thousands(x.rows)+" "+x.fate)
		}
	}
	return head + output.Count(p.Read, "row") + " read = " + strings.Join(parts, " + ")
}
