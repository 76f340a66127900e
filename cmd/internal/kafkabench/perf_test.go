package main

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
)

// Lines as the tools of Kafka 4.3.1 print them.
func TestParseProduced(t *testing.T) {
	out := `2501 records sent, 499.8 records/sec (0.48 MB/sec), 10.3 ms avg latency, 300.0 ms max latency.
20000 records sent, 7934.781591 records/sec (7.57 MB/sec), 412.20 ms avg latency, 1301.00 ms max latency, 261 ms 50th, 1100 ms 95th, 1219 ms 99th, 1290 ms 99.9th.
`
	got, err := parseProduced(out)
	if want := (produced{20000, 7934.781591, 261, 1219, 1301, 0}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if _, err := parseProduced("org.apache.kafka.common.errors.TimeoutException"); err == nil {
		t.Error("a run without a total is taken")
	}
}

func TestParseConsumed(t *testing.T) {
	out := "2026-01-02 03:04:05:678, 2026-01-02 03:04:09:678, 19.0735, 4.7684, 20000, 5000.0000, 3692, 308, 61.9270, 64935.0649\n"
	got, err := parseConsumed(out)
	if want := (consumed{20000, 5000, 64935.0649, 0}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if _, err := parseConsumed("WARNING: Exiting before consuming the expected number of records"); err == nil {
		t.Error("a run without a total is taken")
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want string
	}{
		{nil, ""},
		{[]float64{3}, "3.0"},
		{[]float64{9, 1, 4}, "4.0 (1.0-9.0)"},
		{[]float64{9, 1, 4, 6}, "5.0 (1.0-9.0)"},
	} {
		if got := spreadOf(c.in).format(1); got != c.want {
			t.Errorf("%v: %q, want %q", c.in, got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	var out strings.Builder
	b := &bench{out: &out, repetitions: 1}
	c := cell{1000, 16384, 12}
	b.printThroughput(c, []measurement{
		{cell: c, Phase: producing, System: millrace, Rate: 150, CPU: 2},
		{cell: c, Phase: producing, System: kafka, Rate: 100, CPU: 8, Tool: 3.25},
		{cell: c, Phase: producing, System: ceilingSystem, Rate: 200},
	})
	for _, want := range []string{"150.0", "1.50", "0.75", "0.25", "3.25", "records of 1000 bytes, batch.size 16384, 12 partitions"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), consuming) {
		t.Errorf("there is a table of what was not measured\n%s", out.String())
	}
}

func TestEndOf(t *testing.T) {
	batch := func(base int64, last int32, size int) []byte {
		b := make([]byte, size)
		binary.BigEndian.PutUint64(b, uint64(base))
		binary.BigEndian.PutUint32(b[8:], uint32(size-12))
		binary.BigEndian.PutUint32(b[23:], uint32(last))
		return b
	}
	two := append(batch(5, 2, 100), batch(8, 0, 70)...)
	for _, c := range []struct {
		in   []byte
		want int64
	}{
		{nil, 0}, {two, 9}, {two[:len(two)-1], 8}, {two[:99], 0}, {two[:100], 8}, {batch(math.MaxInt32, 9, 61), math.MaxInt32 + 10},
	} {
		if got := endOf(c.in); got != c.want {
			t.Errorf("%d bytes: %d, want %d", len(c.in), got, c.want)
		}
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{{"-records", "1,x"}, {"-batches", "0"}, {"-partitions", ""}, {"-systems", "redis"}, {"-repetitions", "0"}, {"-batch-records", "-1"}, {"more"},
		{"-scenario", "many", "-systems", "ceiling"}} {
		b := &bench{progress: &strings.Builder{}}
		if err := b.parse(args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
	for args, want := range map[string]int64{"-scenario restart": journalBytes, "-scenario restart -bytes 7": 7, "-scenario many -bytes 7": 7} {
		b := &bench{progress: &strings.Builder{}}
		if err := b.parse(strings.Fields(args)); err != nil || b.bytes != want {
			t.Errorf("%s: %d bytes, %v, want %d", args, b.bytes, err, want)
		}
	}
	b := &bench{progress: &strings.Builder{}}
	if err := b.parse([]string{"-records", "100,1000", "-systems", "kafka,millrace"}); err != nil || len(b.records) != 2 || len(b.systems) != 2 {
		t.Errorf("%v, %v, %v", err, b.records, b.systems)
	}
}

func TestKibibytes(t *testing.T) {
	const status = "Name:\tmillrace\nVmHWM:\t   30208 kB\nVmRSS:\t   29000 kB\n"
	if got := kibibytes(status, "VmHWM:"); got != 30208 {
		t.Errorf("%d, want 30208", got)
	}
	if got := kibibytes(status, "VmSwap:"); got != 0 {
		t.Errorf("%d, want 0", got)
	}
}
