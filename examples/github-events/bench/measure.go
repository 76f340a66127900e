package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/millrace/millrace/connectors/conntest/services"
)

// run is what one run took, and the servers meanwhile.
type run struct {
	cpu, wall    time.Duration
	broker, hdfs time.Duration
	peak         int64 // bytes resident
}

// measured are the runs that count.
type measured struct {
	events          int
	millrace, flink []run
	// idle are the times of a run without an event: of starting, planning and compiling.
	millraceIdle, flinkIdle time.Duration
}

// measure runs both in turns. Flink's first run warms it up.
func (c *config) measure(ctx context.Context, s *servers, made map[string]int, say func(string, ...any)) (*measured, error) {
	sources, job, err := jobText(s.kafka.Addrs())
	if err != nil {
		return nil, err
	}
	f, err := c.startFlink(ctx, s)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m := &measured{events: c.events}
	for i := range c.runs + 1 {
		theirDir := s.url(fmt.Sprintf("/flink-%d", i))
		theirs, err := c.flink(ctx, s, f, flinkSQL(sources, job, theirDir))
		if err != nil {
			return nil, err
		}
		if i == 0 {
			continue
		}
		ourDir := s.url(fmt.Sprintf("/millrace-%d", i))
		ours, err := c.once(ctx, s, sources, withRowGroups(job, "16MB", ""), ourDir)
		if err != nil {
			return nil, err
		}
		say("run %d: Millrace %.2f CPU s (broker %.2f, HDFS %.2f), Flink %.2f (%.2f, %.2f), load %s", i, ours.cpu.Seconds(), ours.broker.Seconds(), ours.hdfs.Seconds(),
			theirs.cpu.Seconds(), theirs.broker.Seconds(), theirs.hdfs.Seconds(), services.LoadAverage())
		wrote, err := c.read(ctx, job, ourDir)
		if err != nil {
			return nil, err
		}
		theyWrote, err := c.read(ctx, job, theirDir)
		if err != nil {
			return nil, err
		}
		if err := compare(wrote, theyWrote, made); err != nil {
			return nil, err
		}
		m.millrace, m.flink = append(m.millrace, ours), append(m.flink, theirs)
	}
	// From the end of the topics to their end.
	sources = strings.ReplaceAll(sources, "'scan.startup.mode' = 'earliest-offset'", "'scan.startup.mode' = 'latest-offset'")
	theirs, err := c.flink(ctx, s, f, flinkSQL(sources, job, s.url("/flink-idle")))
	if err != nil {
		return nil, err
	}
	ours, err := c.once(ctx, s, sources, withRowGroups(job, "16MB", ""), s.url("/millrace-idle"))
	if err != nil {
		return nil, err
	}
	m.millraceIdle, m.flinkIdle = ours.cpu, theirs.cpu
	say("without events: Millrace %.2f CPU s, Flink %.2f", ours.cpu.Seconds(), theirs.cpu.Seconds())
	return m, nil
}

// userEnv is the environment with the user's name for HDFS.
func userEnv() []string { return append(os.Environ(), "HADOOP_USER_NAME="+hadoopUser()) }

// once runs the job in a Millrace process with a new data directory.
func (c *config) once(ctx context.Context, s *servers, sources, job, out string) (r run, err error) {
	data, ddl, file := filepath.Join(c.dir, "data"), filepath.Join(c.dir, "sources.sql"), filepath.Join(c.dir, "job.sql")
	defer os.RemoveAll(data)
	if err := errors.Join(os.RemoveAll(data), os.WriteFile(ddl, []byte(sources), 0o644), os.WriteFile(file, []byte(job), 0o644), s.mark()); err != nil {
		return run{}, err
	}
	args := append(c.pinned(), c.millrace, "run", file, "-f", ddl, "--data", data, "--progress", "none", "--set", "BOUNDED=latest-offset", "--set", "OUT="+out)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = userEnv()
	if c.cpu != "" {
		cmd.Env = append(cmd.Env, "GOMAXPROCS=1")
	}
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return run{}, fmt.Errorf("running the job: %w\n%s", err, text.Bytes())
	}
	r.wall = time.Since(began)
	r.cpu, r.peak = cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss<<10
	r.broker, r.hdfs, err = s.since()
	return r, err
}

// flinkJVM are the flags of Flink's process: one core has no use for collectors with
// threads of their own.
func (c *config) flinkJVM() []string {
	return []string{fmt.Sprintf("-Xmx%dm", c.heapMiB), fmt.Sprintf("-Xms%dm", min(c.heapMiB, 512)), "-XX:+UseSerialGC", "-DHADOOP_USER_NAME=" + hadoopUser()}
}

// hadoopUser is the user for both; root where the machine names none.
func hadoopUser() string {
	for _, name := range []string{"HADOOP_USER_NAME", "USER"} {
		if v := os.Getenv(name); v != "" {
			return v
		}
	}
	return "root"
}

// flinkSettings are those of Flink's session.
func (c *config) flinkSettings() map[string]string {
	return map[string]string{
		"table.local-time-zone":            "UTC",
		"execution.runtime-mode":           "streaming",
		"parallelism.default":              "1",
		"pipeline.object-reuse":            "true",
		"state.backend.type":               "hashmap",
		"execution.checkpointing.interval": "10s",
		"execution.checkpointing.dir":      "file://" + filepath.Join(c.dir, "checkpoints"),
	}
}

func (c *config) startFlink(ctx context.Context, s *servers) (*services.Flink, error) {
	dir := filepath.Join(c.dir, "flink")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making Flink's directory: %w", err)
	}
	jar := func(group, artifact, version string) services.Jar {
		return services.Jar{Group: group, Artifact: artifact, Version: version}
	}
	return services.StartFlinkWith(ctx, services.FlinkOptions{Dir: dir, JVM: c.flinkJVM(), Before: c.pinned(), Classpath: []string{s.hdfs.ConfDir},
		Jars: []services.Jar{
			jar("org.apache.flink", "flink-sql-connector-kafka", "5.0.0-2.2"),
			jar("org.apache.flink", "flink-sql-parquet", services.FlinkVersion),
			jar("org.apache.flink", "flink-hadoop-fs", services.FlinkVersion),
			jar("org.apache.hadoop", "hadoop-client-api", "3.4.2"),
			jar("org.apache.hadoop", "hadoop-client-runtime", "3.4.2"),
			jar("commons-logging", "commons-logging", "1.3.0"),
			jar("com.github.luben", "zstd-jni", "1.5.6-6"),
		}})
}

// flink runs the statements in a session of their own; the last one is the job.
func (c *config) flink(ctx context.Context, s *servers, f *services.Flink, statements []string) (r run, err error) {
	if err := f.Session(ctx, c.flinkSettings()); err != nil {
		return run{}, err
	}
	last := len(statements) - 1
	for _, st := range statements[:last] {
		if _, err := f.Run(ctx, st); err != nil {
			return run{}, fmt.Errorf("Flink: %w\n%s", err, st)
		}
	}
	before, _, err := services.UsageOf(f.PID())
	if err := errors.Join(err, s.mark()); err != nil {
		return run{}, err
	}
	began := time.Now()
	if _, err := f.Run(ctx, statements[last]); err != nil {
		return run{}, fmt.Errorf("Flink: %w", err)
	}
	r.wall = time.Since(began)
	after, _, err := services.UsageOf(f.PID())
	if err != nil {
		return run{}, err
	}
	r.cpu = after - before
	if r.peak, err = services.PeakOf(f.PID()); err != nil {
		return run{}, err
	}
	r.broker, r.hdfs, err = s.since()
	return r, err
}

// settings say what both run with.
func (c *config) settings() string {
	var set []string
	for k, v := range c.flinkSettings() {
		set = append(set, k+"="+v)
	}
	slices.Sort(set)
	return fmt.Sprintf("%d events of 15 topics into 16 tables, ZSTD, row groups of 16 MiB, core %q, %d runs in turns, load %s\n"+
		"Flink %s: java %s\n  %s\nMillrace: %s, GOMAXPROCS=1 where there is a core",
		c.events, c.cpu, c.runs, services.LoadAverage(), services.FlinkVersion, strings.Join(c.flinkJVM(), " "), strings.Join(set, "\n  "), c.millrace)
}
