package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/millrace/millrace/examples/nexmark"
)

// config is the flags.
type config struct {
	millrace, dir, source  string
	jar, profile, out, cpu string
	events, heavy, rate    int
	runs, heap             int
	queries                []int
	alone                  bool
}

// withoutWindow are the queries that keep a good part of their input: they get the
// smaller number of events, so that Flink's heap holds them.
var withoutWindow = map[int]bool{3: true, 4: true, 7: true, 9: true, 16: true, 18: true, 19: true, 20: true, 23: true}

// left out are q6, which neither runs, and q12, whose result depends on the clock.
var leftOut = map[int]bool{6: true, 12: true}

func main() {
	var c config
	flag.StringVar(&c.millrace, "millrace", "bin/millrace", "the binary")
	flag.StringVar(&c.dir, "dir", "", "where events, data and output lie; kept, so that a second run finds the events (default: a temporary one)")
	flag.StringVar(&c.source, "source", "files", "where events come from: files or generator")
	flag.StringVar(&c.jar, "generator-jar", "", "nexmark-flink.jar of the public benchmark, for -source generator in Flink")
	flag.StringVar(&c.profile, "profile", "", "write CPU profiles of Millrace into this directory, and compare nothing")
	flag.StringVar(&c.out, "out", "", "append the table to this file as well")
	flag.StringVar(&c.cpu, "cpu", "0", "the core that each runs on, as taskset takes it; empty: any")
	flag.IntVar(&c.events, "events", 5_000_000, "events of a query")
	flag.IntVar(&c.heavy, "heavy-events", 0, "events of the queries that keep their input (default: a fifth)")
	flag.IntVar(&c.rate, "rate", 100_000, "events in a second of event time; a fifth for the queries that keep their input")
	flag.IntVar(&c.runs, "runs", 3, "runs that count")
	flag.IntVar(&c.heap, "heap", 2048, "Flink's heap in MiB")
	flag.BoolVar(&c.alone, "alone", false, "measure Millrace alone, without Flink")
	only := flag.String("queries", "", "numbers with commas (default: all)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := errors.Join(c.pick(*only), c.run(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (c *config) pick(only string) error {
	if c.heavy == 0 {
		c.heavy = c.events / 5
	}
	if only == "" {
		for n := range nexmark.Queries {
			if !leftOut[n] {
				c.queries = append(c.queries, n)
			}
		}
		return nil
	}
	for s := range strings.SplitSeq(only, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n >= nexmark.Queries || leftOut[n] {
			return fmt.Errorf("no query %q", s)
		}
		c.queries = append(c.queries, n)
	}
	return nil
}

// run prepares the directory and measures query by query.
func (c *config) run(ctx context.Context) (err error) {
	if c.source != "files" && c.source != "generator" {
		return fmt.Errorf("-source %q is none of files, generator", c.source)
	}
	if c.dir == "" {
		if c.dir, err = os.MkdirTemp("", "millrace-nexmark-"); err != nil {
			return fmt.Errorf("making a directory: %w", err)
		}
		defer os.RemoveAll(c.dir)
	}
	for _, p := range []*string{&c.dir, &c.millrace} {
		if *p, err = filepath.Abs(*p); err != nil {
			return fmt.Errorf("finding %s: %w", *p, err)
		}
	}
	if err := errors.Join(os.MkdirAll(c.dir, 0o755), os.CopyFS(c.sql(), nexmark.Files())); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("preparing %s: %w", c.dir, err)
	}
	if err := c.sideInput(); err != nil {
		return err
	}
	if c.profile != "" {
		return c.profiles(ctx)
	}
	r := newReport(c)
	r.say("%s", c.settings())
	r.header()
	for _, n := range c.queries {
		row, err := c.measure(ctx, n)
		if err != nil {
			return fmt.Errorf("q%d: %w", n, err)
		}
		r.row(n, row)
	}
	return r.save()
}

func (c *config) sql() string { return filepath.Join(c.dir, "sql") }

// size is how many events a query gets, and how many in a second.
func (c *config) size(n int) (events, rate int) {
	if withoutWindow[n] {
		return c.heavy, max(c.rate/5, 1)
	}
	return c.events, c.rate
}

func (c *config) eventsDir(events, rate int) string {
	return filepath.Join(c.dir, fmt.Sprintf("events-%d-%d", events, rate))
}

// vars are the variables of a query's files.
func (c *config) vars(n int) map[string]string {
	events, rate := c.size(n)
	return map[string]string{
		"EVENTS": c.eventsDir(events, rate), "EVENTS_NUM": strconv.Itoa(events), "RATE": strconv.Itoa(rate),
		"SIDE": filepath.Join(c.dir, "side"), "OUT": filepath.Join(c.dir, "out"),
	}
}

// pinned is a command on the core of the comparison.
func (c *config) pinned() []string {
	if c.cpu == "" {
		return nil
	}
	return []string{"taskset", "-c", c.cpu}
}

// sideInput writes the table that q13 looks up.
func (c *config) sideInput() error {
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, "%d,%d\n", i, i)
	}
	dir := filepath.Join(c.dir, "side")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "side.csv"), []byte(b.String()), 0o644)); err != nil {
		return fmt.Errorf("writing the side input: %w", err)
	}
	return nil
}

// makeEvents writes the events of a query, unless an earlier run has.
func (c *config) makeEvents(ctx context.Context, n int) error {
	vars := c.vars(n)
	done := vars["EVENTS"] + ".complete"
	if _, err := os.Stat(done); err == nil || c.source != "files" {
		return nil
	}
	data := filepath.Join(c.dir, "generate")
	if err := errors.Join(os.RemoveAll(vars["EVENTS"]), os.RemoveAll(data)); err != nil {
		return fmt.Errorf("removing a part of the events: %w", err)
	}
	args := c.job("generate.sql", "generator", vars, data)
	if out, err := exec.CommandContext(ctx, c.millrace, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("making events: %w\n%s", err, out)
	}
	return os.WriteFile(done, nil, 0o644)
}

// job is the command line of a job file with its tables.
func (c *config) job(file, source string, vars map[string]string, data string) []string {
	sql := c.sql()
	args := []string{"run", filepath.Join(sql, file), "-f", filepath.Join(sql, "source", source+".sql"), "-f", filepath.Join(sql, "views.sql"),
		"--data", data, "--progress", "none"}
	for k, v := range vars {
		args = append(args, "--set", k+"="+v)
	}
	return args
}
