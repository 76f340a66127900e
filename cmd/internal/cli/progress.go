package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/millrace/millrace/jobs/node"
)

// progress shows what running jobs do, on stderr.
type progress struct {
	e        *Env
	mode     string
	interval time.Duration
	shown    bool
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
	for _, r := range running {
		s := r.Progress()
		switch p.mode {
		case "json":
			b, err := json.Marshal(s)
			if err == nil {
				fmt.Fprintf(p.e.Stderr, "%s\n", b)
			}
		case "plain":
			p.e.note("%s", s.Line())
		case "bar":
			line := s.Line()
			if w := p.e.Width; w > 1 && len(line) >= w {
				line = line[:w-1]
			}
			fmt.Fprintf(p.e.Stderr, "\r\x1b[K%s", line)
			p.shown = true
		}
	}
}

// clear takes the rewritten line away.
func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.e.Stderr, "\r\x1b[K")
		p.shown = false
	}
}
