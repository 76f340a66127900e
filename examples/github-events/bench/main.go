package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// config is the flags.
type config struct {
	millrace, dir, out, cpu string
	events, runs, heapMiB   int
}

func main() {
	var c config
	flag.StringVar(&c.millrace, "millrace", "bin/millrace", "the binary")
	flag.StringVar(&c.dir, "dir", "", "where servers and data lie (default: a temporary directory)")
	flag.StringVar(&c.out, "out", "", "append the table to this file as well")
	flag.StringVar(&c.cpu, "cpu", "0", "the core that each runs on, as taskset takes it; empty: any")
	flag.IntVar(&c.events, "events", 500_000, "events in all topics together, 3 kB each")
	flag.IntVar(&c.runs, "runs", 3, "runs that count")
	flag.IntVar(&c.heapMiB, "heap", 2048, "Flink's heap in MiB")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	text, err := c.run(ctx)
	if err == nil {
		err = c.save(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run starts the servers, fills the topics and measures; text is the report, which it
// prints as it goes.
func (c *config) run(ctx context.Context) (text string, err error) {
	if c.dir == "" {
		if c.dir, err = os.MkdirTemp("", "millrace-github-"); err != nil {
			return "", fmt.Errorf("making a directory: %w", err)
		}
		defer os.RemoveAll(c.dir)
	}
	for _, p := range []*string{&c.dir, &c.millrace} {
		if *p, err = filepath.Abs(*p); err != nil {
			return "", fmt.Errorf("finding %s: %w", *p, err)
		}
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return "", fmt.Errorf("making the directory: %w", err)
	}
	s, err := c.startServers(ctx)
	if err != nil {
		return "", err
	}
	defer s.close()
	want, err := s.fill(ctx, c.events)
	if err != nil {
		return "", err
	}
	var report strings.Builder
	say := func(format string, args ...any) {
		line := fmt.Sprintf(format+"\n", args...)
		fmt.Print(line)
		report.WriteString(line)
	}
	say("%s", c.settings())
	m, err := c.measure(ctx, s, want, say)
	if err != nil {
		return "", err
	}
	m.report(say)
	return report.String(), nil
}

// save appends what was printed to a file.
func (c *config) save(text string) error {
	if c.out == "" {
		return nil
	}
	f, err := os.OpenFile(c.out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("saving the report: %w", err)
	}
	_, err = f.WriteString(text + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("saving the report: %w", err)
	}
	return nil
}

// pinned is a command on the core of the comparison.
func (c *config) pinned() []string {
	if c.cpu == "" {
		return nil
	}
	return []string{"taskset", "-c", c.cpu}
}
