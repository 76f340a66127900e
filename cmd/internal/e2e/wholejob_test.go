package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace/connectors/all"
	githubevents "github.com/millrace/millrace/examples/github-events"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/node"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/client"
	"github.com/millrace/millrace/storage/vfs"
)

var benchEvents = flag.Int("bench.events", 1_400_000, "records of the whole-job benchmark")

// wholeJob is the workload that other engines were measured with: JSON events
// of at most 1,090 bytes, twelve typed columns, a filter, Parquet with Snappy.
const wholeJob = `
SET 'pipeline.name' = 'wholejob';
CREATE TABLE src (
  id STRING, type STRING, actor ROW<id BIGINT, login STRING>, repo ROW<id BIGINT, name STRING>,
  payload ROW<` + "`size` INT, distinct_size INT, `ref` STRING, `action` STRING>, `public`" + ` BOOLEAN, created_at TIMESTAMP_LTZ(3)
) WITH ('connector' = 'log', 'topic' = 'gh', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = '${BOUNDED:-latest-offset}',
  'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601');
CREATE TABLE pq (
  id BIGINT, type STRING, actor_id BIGINT, actor_login STRING, repo_id BIGINT, repo_name STRING,
  ` + "`public`" + ` BOOLEAN, created_at TIMESTAMP_LTZ(3), p_size INT, p_distinct INT, p_ref STRING, p_action STRING
) WITH ('connector' = 'filesystem', 'path' = '${OUT}/pq', 'format' = 'parquet', 'parquet.compression' = 'SNAPPY',
  'sink.rolling-policy.file-size' = '128MB', 'sink.rolling-policy.rollover-interval' = '10 min');
INSERT INTO pq SELECT CAST(id AS BIGINT), type, actor.id, actor.login, repo.id, repo.name, ` + "`public`" + `, created_at,
  payload.` + "`size`, payload.distinct_size, payload.`ref`, payload.`action`" + `
FROM src WHERE type <> 'WatchEvent' AND actor.id > 0;
`

// benchLines are the shipped events of at most 1,090 bytes, cut around the id
// and the time.
type benchLine struct {
	a, b, c []byte
	watch   bool
}

func benchLines(t testing.TB) []benchLine {
	t.Helper()
	files := githubevents.Files()
	packed, err := files.ReadFile("data/events.ndjson.zst")
	if err != nil {
		t.Fatal(err)
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	raw, err := dec.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []benchLine
	size := 0
	for line := range bytes.Lines(raw) {
		line = bytes.TrimRight(line, "\n")
		if len(line) > 1090 {
			continue
		}
		var e struct {
			ID        string
			Type      string
			CreatedAt string `json:"created_at"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		i := bytes.Index(line, []byte(e.ID))
		j := bytes.LastIndex(line, []byte(e.CreatedAt))
		if i < 0 || j < i {
			t.Fatalf("no id or time in %s", line)
		}
		size += len(line)
		out = append(out, benchLine{a: line[:i], b: line[i+len(e.ID) : j], c: line[j+len(e.CreatedAt):], watch: e.Type == "WatchEvent"})
	}
	t.Logf("%d distinct events, mean %d bytes", len(out), size/len(out))
	return out
}

// appendLine makes record k: ids count up, a hundred records a second.
func (l *benchLine) appendLine(b []byte, k int) []byte {
	b = append(b, l.a...)
	b = strconv.AppendInt(b, 17_200_000_000+int64(k), 10)
	b = append(b, l.b...)
	b = time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(k/100)*time.Second).AppendFormat(b, "2006-01-02T15:04:05Z")
	return append(b, l.c...)
}

// benchFile writes the input and returns how many rows must come out.
func benchFile(t testing.TB, path string, events int) (want int) {
	t.Helper()
	lines := benchLines(t)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	var b []byte
	for k := range events {
		l := &lines[k%len(lines)]
		if !l.watch {
			want++
		}
		b = append(l.appendLine(b[:0], k), '\n')
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return want
}

// usage is what a process took.
type usage struct {
	cpu time.Duration
	rss int64 // bytes
}

func (p *process) usage() usage {
	u := p.state.SysUsage().(*syscall.Rusage)
	return usage{cpu: time.Duration(u.Utime.Nano() + u.Stime.Nano()), rss: u.Maxrss << 10}
}

// reportWhole sums processes up: CPU seconds per million records, the largest
// memory of any one and of all together.
func reportWhole(b *testing.B, events int, took time.Duration, parts map[string]usage) {
	var cpu time.Duration
	var most, sum int64
	for name, u := range parts {
		cpu += u.cpu
		most, sum = max(most, u.rss), sum+u.rss
		b.ReportMetric(u.cpu.Seconds()*1e6/float64(events), name+"-cpu-s/Mrec")
		b.ReportMetric(float64(u.rss)/(1<<20), name+"-MiB")
	}
	b.ReportMetric(cpu.Seconds()*1e6/float64(events), "cpu-s/Mrec")
	b.ReportMetric(float64(most)/(1<<20), "peak-MiB")
	b.ReportMetric(float64(events)/took.Seconds(), "rec/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkWholeJob is the whole way, from the first record produced (and
// fsync'd) to the last row committed in Parquet, in CPU seconds of all our
// processes. Run it with -benchtime 1x.
func BenchmarkWholeJob(b *testing.B) {
	b.Run("produce, then run", func(b *testing.B) {
		for range b.N {
			w := newWorld(b)
			input := filepath.Join(w.dir, "input.ndjson")
			want := benchFile(b, input, *benchEvents)
			job := w.file("wholejob.sql", wholeJob)
			start := time.Now()
			produce := w.start("topics", "produce", "gh", "-f", input)
			if code := produce.wait(); code != 0 {
				b.Fatalf("produce: %d\n%s", code, produce.stderr.String())
			}
			run := w.start(w.runArgs(job)...)
			if code := run.wait(); code != 0 {
				b.Fatalf("run: %d\n%s", code, run.stderr.String())
			}
			took := time.Since(start)
			reportWhole(b, *benchEvents, took, map[string]usage{"produce": produce.usage(), "run": run.usage()})
			checkWhole(b, w, want)
		}
	})
	b.Run("run while producing", func(b *testing.B) {
		for range b.N {
			w := newWorld(b)
			input := filepath.Join(w.dir, "input.ndjson")
			want := benchFile(b, input, *benchEvents)
			job := w.file("wholejob.sql", wholeJob)
			w.run("topics", "create", "gh").must(b, 0)
			run := w.start(w.runArgs(job, "--set", "BOUNDED=unbounded")...)
			eventuallyOf(b, run, "it serves", func() (bool, string) { return w.jobs() != nil, "no answer" })
			start := time.Now()
			produce := w.start("topics", "produce", "gh", "-f", input)
			if code := produce.wait(); code != 0 {
				b.Fatalf("produce: %d\n%s", code, produce.stderr.String())
			}
			w.untilLedger(run, "pq", "all is read", func(l control.TableLedger) bool { return l.Read == int64(*benchEvents) })
			run.terminate()
			if code := run.wait(); code != 0 {
				b.Fatalf("run: %d\n%s", code, run.stderr.String())
			}
			took := time.Since(start)
			reportWhole(b, *benchEvents, took, map[string]usage{"produce": produce.usage(), "run": run.usage()})
			checkWhole(b, w, want)
		}
	})
}

// checkWhole counts the rows that came out.
func checkWhole(b *testing.B, w *world, want int) {
	b.Helper()
	var got struct{ Tables []control.TableLedger }
	w.ask(&got, "ledger", "show", "pq")
	if s := sums(got.Tables, "pq"); s.Written != int64(want) || s.Dead != 0 || s.Open != 0 {
		b.Fatalf("%+v, want %d rows", s, want)
	}
	var files struct{ Files []struct{ Rows int } }
	w.ask(&files, "file", "verify", w.lake)
	rows := 0
	for _, f := range files.Files {
		rows += f.Rows
	}
	if rows != want {
		b.Fatalf("the files hold %d rows, want %d", rows, want)
	}
}

// BenchmarkWholeJobInProcess is the same work inside the test process, for
// -cpuprofile and -memprofile.
func BenchmarkWholeJobInProcess(b *testing.B) {
	for range b.N {
		dir := b.TempDir()
		lines := benchLines(b)
		ctx := context.Background()
		n, err := node.Open(ctx, node.Options{Dir: filepath.Join(dir, "data"), Connectors: func(log *client.Client, fsys vfs.FS) (*connector.Registry, error) {
			return all.Registry(all.Deps{Log: log, FS: fsys})
		}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := n.CreateTopic(ctx, control.CreateTopic{Name: "gh", Partitions: 1}); err != nil {
			b.Fatal(err)
		}
		var before, after syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before) // cannot fail for SELF
		b.ResetTimer()
		k := 0
		var line []byte
		if _, err := n.Produce(ctx, "gh", func(r *control.Record) error {
			if k >= *benchEvents {
				return io.EOF
			}
			line = lines[k%len(lines)].appendLine(line[:0], k)
			*r = control.Record{Value: line, AnyPartition: true}
			k++
			return nil
		}); err != nil {
			b.Fatal(err)
		}
		o := node.RunOptions{
			Files: []control.SQLFile{{Name: "wholejob.sql", Text: wholeJob}}, Path: filepath.Join(dir, "wholejob.sql"),
			MaxDead: -1, Notice: func(string) {},
		}
		o.Vars.Set = map[string]string{"OUT": filepath.Join(dir, "lake")}
		r, err := n.Start(ctx, o)
		if err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(r.Wait(ctx), n.Close()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
		cpu := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
		b.ReportMetric(cpu.Seconds()*1e6/float64(*benchEvents), "cpu-s/Mrec")
	}
}
