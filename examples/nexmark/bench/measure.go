package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/examples/nexmark"
)

// run is what one run took.
type run struct {
	cpu, wall time.Duration
	peak      int64 // bytes resident
}

// measured are the runs of a query; flink may be why it has none.
type measured struct {
	events          int
	millrace, flink []run
	noFlink         string
}

// measure runs a query in turns.
func (c *config) measure(ctx context.Context, n int) (*measured, error) {
	if err := c.makeEvents(ctx, n); err != nil {
		return nil, err
	}
	events, _ := c.size(n)
	m := &measured{events: events}
	var f *services.Flink
	if !c.alone {
		var err error
		if f, err = c.startFlink(ctx); err != nil {
			return nil, err
		}
	}
	switch {
	case f != nil:
		defer f.Close()
	case c.alone:
		m.noFlink = "not run"
	default:
		m.noFlink = "no generator"
	}
	for i := range c.runs + 1 {
		if f != nil && m.noFlink == "" {
			r, err := c.flink(ctx, f, n)
			var refused *services.FlinkError
			switch {
			case errors.As(err, &refused):
				m.noFlink = refused.Error()
			case err != nil:
				m.noFlink = "ended: " + firstLine(err.Error())
			case i > 0:
				m.flink = append(m.flink, r)
			}
		}
		if i == 0 {
			continue // Flink's first run warms up
		}
		r, err := c.once(ctx, n)
		if err != nil {
			return nil, err
		}
		m.millrace = append(m.millrace, r)
	}
	return m, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// once runs a query in a Millrace process with a new data directory.
func (c *config) once(ctx context.Context, n int) (run, error) {
	data := filepath.Join(c.dir, "data")
	vars := c.vars(n)
	if err := errors.Join(os.RemoveAll(data), os.RemoveAll(vars["OUT"])); err != nil {
		return run{}, fmt.Errorf("removing old output: %w", err)
	}
	args := append(c.pinned(), c.millrace)
	args = append(args, c.job(fmt.Sprintf("queries/q%d.sql", n), c.source, vars, data)...)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	if c.cpu != "" {
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return run{}, fmt.Errorf("running it: %w\n%s", err, out.Bytes())
	}
	u := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return run{cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), wall: time.Since(began), peak: u.Maxrss << 10}, nil
}

// flinkJVM are the flags of Flink's process: one core has no use for collectors with
// threads of their own.
func (c *config) flinkJVM() []string {
	return []string{fmt.Sprintf("-Xmx%dm", c.heap), fmt.Sprintf("-Xms%dm", min(c.heap, 512)), "-XX:+UseSerialGC"}
}

// flinkSettings are those of the public benchmark, with objects used again.
func (c *config) flinkSettings() map[string]string {
	return map[string]string{
		"table.local-time-zone":            "UTC",
		"execution.runtime-mode":           "streaming",
		"parallelism.default":              "1",
		"pipeline.object-reuse":            "true",
		"state.backend.type":               "hashmap",
		"execution.checkpointing.interval": "10s",
		"execution.checkpointing.dir":      "file://" + filepath.Join(c.dir, "checkpoints"),
		"execution.checkpointing.checkpoints-after-tasks-finish.enabled": "false",
		"table.exec.mini-batch.enabled":                                  "true",
		"table.exec.mini-batch.allow-latency":                            "2s",
		"table.exec.mini-batch.size":                                     "50000",
		"table.optimizer.distinct-agg.split.enabled":                     "true",
	}
}

// startFlink starts one for a query; nil: it has no source of that kind.
func (c *config) startFlink(ctx context.Context) (*services.Flink, error) {
	o := services.FlinkOptions{Dir: filepath.Join(c.dir, "flink"), JVM: c.flinkJVM(), Before: c.pinned(),
		Jars: []services.Jar{{Group: "org.apache.flink", Artifact: "flink-csv", Version: services.FlinkVersion}}}
	if c.source == "generator" {
		if c.jar == "" {
			return nil, nil
		}
		o.Classpath = []string{c.jar}
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("making Flink's directory: %w", err)
	}
	return services.StartFlinkWith(ctx, o)
}

var (
	variable = regexp.MustCompile(`\$\{(\w+)(:-(\w+))?\}`)
	sideFile = regexp.MustCompile(`'connector' = 'filesystem', 'path' = '\$\{SIDE\}', 'format' = 'csv'`)
	seed     = regexp.MustCompile(`, 'seed' = '[^']*'`)
)

// flink runs a query there. Its file has the same SQL; connectors of Flink's own
// have other options where they must.
func (c *config) flink(ctx context.Context, f *services.Flink, n int) (run, error) {
	vars := c.vars(n)
	if err := os.RemoveAll(vars["OUT"]); err != nil {
		return run{}, fmt.Errorf("removing old output: %w", err)
	}
	if err := f.Session(ctx, c.flinkSettings()); err != nil {
		return run{}, err
	}
	query, err := nexmark.Query(n)
	if err != nil {
		return run{}, err
	}
	var text string
	for _, name := range []string{"source/" + c.source + ".sql", "views.sql"} {
		b, err := nexmark.Files().ReadFile(name)
		if err != nil {
			return run{}, err
		}
		text += string(b)
	}
	text = seed.ReplaceAllString(text, ", 'next-event.rate' = '"+vars["RATE"]+"'")
	text += sideFile.ReplaceAllLiteralString(query, "'connector.type' = 'filesystem', 'connector.path' = 'file://${SIDE}/side.csv', 'format.type' = 'csv'")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "'${EVENTS}", "'file://${EVENTS}"), "'${OUT}", "'file://${OUT}")
	text = variable.ReplaceAllStringFunc(text, func(s string) string { return vars[variable.FindStringSubmatch(s)[1]] })
	var r run
	for _, st := range strings.SplitAfter(text, ";\n") {
		st = strings.TrimSuffix(strings.TrimSpace(st), ";")
		if st == "" {
			continue
		}
		before, _, err := services.UsageOf(f.PID())
		if err != nil {
			return run{}, err
		}
		began := time.Now()
		if _, err := f.Run(ctx, st); err != nil {
			return run{}, err
		}
		after, _, err := services.UsageOf(f.PID())
		if err != nil {
			return run{}, err
		}
		// The INSERT is the last; what declares tables costs next to nothing.
		r.cpu, r.wall = after-before, time.Since(began)
	}
	r.peak, err = services.PeakOf(f.PID())
	return r, err
}
