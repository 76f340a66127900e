package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/connectors/conntest/services"
)

// toolJVM are the flags of Kafka's tools: the compiler for long runs, a collector
// that takes nothing from the server.
func toolJVM() []string { return []string{"-Xmx512m", "-XX:+UseSerialGC"} }

// tool runs one of Kafka's classes and returns what it printed, and the processor time
// it took.
func (b *bench) tool(ctx context.Context, class string, args ...string) (out string, cpu time.Duration, err error) {
	before := cpuTime(unix.RUSAGE_CHILDREN)
	out, err = b.runTool(ctx, class, args...)
	return out, cpuTime(unix.RUSAGE_CHILDREN) - before, err
}

func (b *bench) runTool(ctx context.Context, class string, args ...string) (string, error) {
	if !b.pin {
		out, err := services.KafkaToolOn(ctx, toolJVM(), nil, class, args...)
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		return out, err
	}
	jars, err := services.KafkaJars(ctx)
	if err != nil {
		return "", err
	}
	java, err := services.JavaPath()
	if err != nil {
		return "", err
	}
	all := append([]string{"-c", "1-1023", java}, toolJVM()...)
	cmd := exec.CommandContext(ctx, "taskset", append(append(all, "-cp", filepath.Join(jars, "*"), class), args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("running %s: %w\n%s", class, err, out)
	}
	return string(out), nil
}

// produced is what ProducerPerformance says at its end. Latencies are milliseconds.
type produced struct {
	records       int64
	perSecond     float64
	p50, p99, max float64
	cpu           time.Duration // of the client
}

// produce runs ProducerPerformance; rate is in records per second, -1 for no bound.
func (b *bench) produce(ctx context.Context, s *server, topic string, size, batch int, bytes int64, rate int) (produced, error) {
	n := max(bytes/int64(size), 1)
	args := []string{"--bootstrap-server", s.addr, "--topic", topic, "--num-records", strconv.FormatInt(n, 10), "--record-size", strconv.Itoa(size),
		"--throughput", strconv.Itoa(rate), "--command-property", "acks=all", "batch.size=" + strconv.Itoa(batch), "linger.ms=" + strconv.Itoa(lingerOf(batch))}
	if b.properties != "" {
		args = append(args, strings.Split(b.properties, ",")...)
	}
	out, cpu, err := b.tool(ctx, "org.apache.kafka.tools.ProducerPerformance", args...)
	if err != nil {
		return produced{}, err
	}
	p, err := parseProduced(out)
	p.cpu = cpu
	if err == nil && p.records != n {
		err = fmt.Errorf("ProducerPerformance sent %d records of %d:\n%s", p.records, n, out)
	}
	return p, err
}

// defaultBatch and defaultLinger are Kafka's. A larger batch gets more time to fill.
const (
	defaultBatch  = 16 << 10
	defaultLinger = 5  // ms
	largeLinger   = 10 // ms
)

func lingerOf(batch int) int {
	if batch > defaultBatch {
		return largeLinger
	}
	return defaultLinger
}

var producedLine = regexp.MustCompile(`(\d+) records sent, ([0-9.]+) records/sec \([0-9.]+ MB/sec\), [0-9.]+ ms avg latency, ([0-9.]+) ms max latency, (\d+) ms 50th, \d+ ms 95th, (\d+) ms 99th, \d+ ms 99\.9th`)

// parseProduced reads the line of the totals. Lines before it are of seconds.
func parseProduced(out string) (produced, error) {
	all := producedLine.FindAllStringSubmatch(out, -1)
	if len(all) == 0 {
		return produced{}, fmt.Errorf("ProducerPerformance printed no total:\n%s", out)
	}
	m := all[len(all)-1]
	var p produced
	p.records, _ = strconv.ParseInt(m[1], 10, 64)
	p.perSecond, _ = strconv.ParseFloat(m[2], 64)
	p.max, _ = strconv.ParseFloat(m[3], 64)
	p.p50, _ = strconv.ParseFloat(m[4], 64)
	p.p99, _ = strconv.ParseFloat(m[5], 64)
	return p, nil
}

// consumed is what ConsumerPerformance says: records per second over everything, and
// without the time it took to join its group.
type consumed struct {
	records               int64
	perSecond, fetchedPer float64
	cpu                   time.Duration // of the client
}

// consume runs ConsumerPerformance over n records from the start of a topic.
func (b *bench) consumeAll(ctx context.Context, s *server, topic string, n int64) (consumed, error) {
	out, cpu, err := b.tool(ctx, "org.apache.kafka.tools.ConsumerPerformance", "--bootstrap-server", s.addr, "--topic", topic,
		"--num-records", strconv.FormatInt(n, 10), "--group", "bench", "--timeout", "60000", "--hide-header")
	if err != nil {
		return consumed{}, err
	}
	c, err := parseConsumed(out)
	c.cpu = cpu
	if err == nil && c.records < n {
		err = fmt.Errorf("ConsumerPerformance consumed %d records of %d:\n%s", c.records, n, out)
	}
	return c, err
}

// parseConsumed reads start, end, MB, MB/s, records, records/s, ms of rebalancing, ms
// of fetching, MB/s and records/s of fetching.
func parseConsumed(out string) (consumed, error) {
	for _, line := range strings.Split(out, "\n") {
		f := strings.Split(strings.TrimSpace(line), ", ")
		if len(f) != 10 {
			continue
		}
		var c consumed
		var errs [3]error
		c.records, errs[0] = strconv.ParseInt(f[4], 10, 64)
		c.perSecond, errs[1] = strconv.ParseFloat(f[5], 64)
		c.fetchedPer, errs[2] = strconv.ParseFloat(f[9], 64)
		if errs == [3]error{} {
			return c, nil
		}
	}
	return consumed{}, fmt.Errorf("ConsumerPerformance printed no total:\n%s", out)
}
