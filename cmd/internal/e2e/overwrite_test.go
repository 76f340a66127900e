package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// overwriteJob replaces the partitions that it touches of one table, one given
// partition of another, and the whole of a third.
const overwriteJob = `
SET 'execution.runtime-mode' = 'batch';
SET 'execution.checkpointing.interval' = '20 ms';
CREATE TABLE clicks (id BIGINT, k STRING, n INT) WITH (
  'connector' = 'log', 'topic' = 'clicks', 'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = 'latest-offset', 'format' = 'json');
CREATE TABLE parts (id BIGINT, n INT, k STRING) PARTITIONED BY (k) WITH (
  'connector' = 'filesystem', 'path' = '${OUT}/parts', 'format' = 'parquet', 'parquet.compression' = 'SNAPPY',
  'sink.partition-commit.policy.kind' = 'success-file');
CREATE TABLE sums (k STRING, c BIGINT, dt STRING) PARTITIONED BY (dt) WITH (
  'connector' = 'filesystem', 'path' = '${OUT}/sums', 'format' = 'parquet', 'parquet.compression' = 'SNAPPY',
  'sink.partition-commit.policy.kind' = 'success-file');
CREATE TABLE whole (id BIGINT) WITH (
  'connector' = 'filesystem', 'path' = '${OUT}/whole', 'format' = 'parquet', 'parquet.compression' = 'SNAPPY');
INSERT OVERWRITE parts SELECT id, n, k FROM clicks WHERE n <= ${MAX};
INSERT OVERWRITE sums PARTITION (dt = '${DAY:-monday}') SELECT k, COUNT(*) FROM clicks WHERE n <= ${MAX} GROUP BY k;
INSERT OVERWRITE whole SELECT id FROM clicks WHERE n <= ${MAX};
`

const overwriteRows = 210

// overwritten is what the three tables hold after a run with a bound on n.
func overwritten(most int) (parts, sums, whole multiset) {
	parts, sums, whole = multiset{}, multiset{}, multiset{}
	counts := map[string]int{}
	for id := range overwriteRows {
		if id%100 > most {
			continue
		}
		k := fmt.Sprintf("k%d", id%7)
		parts[fmt.Sprintf("id=%d n=%d k=%s", id, id%100, k)]++
		counts[k]++
		whole[fmt.Sprintf("id=%d", id)]++
	}
	for k, c := range counts {
		sums[fmt.Sprintf("k=%s c=%d dt=monday", k, c)]++
	}
	return parts, sums, whole
}

// overwriteArgs runs the job; the bound on n stands in its text, since variables
// are of literals alone.
func (w *world) overwriteArgs(most int, more ...string) []string {
	job := w.file("overwrite.sql", strings.ReplaceAll(overwriteJob, "${MAX}", strconv.Itoa(most)))
	return w.runArgs(job, more...)
}

func (w *world) checkOverwritten(what string, most int) {
	w.t.Helper()
	parts, sums, whole := overwritten(most)
	compare(w.t, what+": parts", w.table("parts"), parts)
	compare(w.t, what+": sums", w.table("sums"), sums)
	compare(w.t, what+": whole", w.table("whole"), whole)
}

// TestOverwrite replaces what runs before have left: touched partitions, a given
// one also by nothing, an unpartitioned table whole.
func TestOverwrite(t *testing.T) {
	w := newWorld(t)
	w.produce("clicks", clicks(0, overwriteRows)...)
	w.run(w.overwriteArgs(99)...).must(t, 0)
	w.checkOverwritten("first", 99)
	w.run(w.overwriteArgs(99)...).must(t, 0).says(t, "nothing to do")
	// Of n <= 1, the ids 0, 1, 100, 101, 200 and 201, none is of k6, which keeps what
	// it has.
	w.run(w.overwriteArgs(1, "--fresh")...).must(t, 0)
	parts, sums, whole := overwritten(1)
	all, _, _ := overwritten(99)
	touched := map[string]bool{}
	for row := range parts {
		touched[row[strings.LastIndex(row, "k="):]] = true
	}
	if len(touched) == 7 {
		t.Fatal("every partition is touched")
	}
	for row, n := range all {
		if !touched[row[strings.LastIndex(row, "k="):]] {
			parts[row] = n
		}
	}
	compare(t, "parts", w.table("parts"), parts)
	compare(t, "sums", w.table("sums"), sums)
	compare(t, "whole", w.table("whole"), whole)
	for k := range 7 {
		if _, err := os.Stat(filepath.Join(w.lake, "parts", fmt.Sprintf("k=k%d", k), "_SUCCESS")); err != nil {
			t.Error(err)
		}
	}
	// Another partition is given: the one before stays.
	w.run(w.overwriteArgs(99, "--fresh", "--set", "DAY=tuesday")...).must(t, 0)
	if got := w.table("sums"); len(got) != len(sums)+7 {
		t.Fatalf("sums: %v", got)
	}
	// No row at all: dynamic partitions stay, the given one and the whole table go.
	before := w.table("parts")
	w.run(w.overwriteArgs(-1, "--fresh", "--set", "DAY=tuesday")...).must(t, 0)
	compare(t, "parts", w.table("parts"), before)
	compare(t, "sums", w.table("sums"), sums)
	compare(t, "whole", w.table("whole"), multiset{})
	w.run("ledger", "show", "--check").must(t, 0)
	w.noLeftovers()
}

// noLeftovers looks for directories that were to take the place of others.
func (w *world) noLeftovers() {
	w.t.Helper()
	for _, pattern := range []string{".replacing-*", "*/.replacing-*"} {
		names, err := filepath.Glob(filepath.Join(w.lake, pattern))
		if err != nil {
			w.t.Fatal(err)
		}
		if len(names) > 0 {
			w.t.Errorf("left behind: %v", names)
		}
	}
}

// TestRunOverwrite: --fresh --overwrite makes every INSERT an INSERT OVERWRITE.
func TestRunOverwrite(t *testing.T) {
	w := newWorld(t)
	w.produce("clicks", clicks(0, overwriteRows)...)
	text := strings.ReplaceAll(strings.ReplaceAll(overwriteJob, "${MAX}", "99"), "INSERT OVERWRITE", "INSERT INTO")
	job := w.file("into.sql", text)
	w.run(w.runArgs(job)...).must(t, 0)
	w.run(w.runArgs(job, "--fresh")...).must(t, 2).says(t, "--append", "--overwrite")
	w.run(w.runArgs(job, "--overwrite")...).must(t, 2).says(t, "--fresh")
	for range 2 {
		w.run(w.runArgs(job, "--fresh", "--overwrite")...).must(t, 0)
		w.checkOverwritten("again", 99)
	}
}

// TestOverwriteOverKills kills a run that overwrites at operations that change the
// disk, from its first to its last. The tables then show what they had or what
// they are to have, each partition by itself, and the next run ends it.
func TestOverwriteOverKills(t *testing.T) {
	const samples = 16
	w := faultyWorld(t)
	w.produce("clicks", clicks(0, overwriteRows)...)
	w.run(w.overwriteArgs(99)...).must(t, 0)
	count := filepath.Join(w.dir, "count")
	w.faults("count:" + count)
	w.run(w.overwriteArgs(50, "--fresh")...).must(t, 0)
	b, err := os.ReadFile(count)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(string(b))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(11, uint64(n)))
	most, mixed := 50, 0
	for s := range samples {
		was := most
		most = 149 - was // from 50 to 99 and back
		at := n*s/samples + rng.IntN(max(n/samples, 1))
		what := fmt.Sprintf("kill at operation %d of %d", at, n)
		w.faults(fmt.Sprintf("mutating:*:%d:KILL", at))
		killed := w.run(w.overwriteArgs(most, "--fresh")...)
		w.env = nil
		if w.wholeParts(what, was, most) {
			mixed++
		}
		again := w.overwriteArgs(most)
		if killed.code != 0 && !strings.Contains(killed.stderr, ": epoch ") {
			again = w.overwriteArgs(most, "--fresh") // it had not come to its generation
		}
		if r := w.run(again...); r.code != 0 {
			t.Fatalf("%s: the next run ends with %d: %s\nthe killed one said: %s", what, r.code, r.stderr, killed.stderr)
		}
		w.checkOverwritten(what, most)
		w.noLeftovers()
		if t.Failed() {
			t.Fatalf("the killed run said: %s", killed.stderr)
		}
	}
	t.Logf("%d operations, %d kills, %d of them between two partitions", n, samples, mixed)
}

// wholeParts checks that each partition has the content of one run or of the
// other; it tells whether both were met.
func (w *world) wholeParts(what string, was, is int) bool {
	w.t.Helper()
	split := func(m multiset, by string) map[string]multiset {
		out := map[string]multiset{}
		for row, n := range m {
			key := row[strings.LastIndex(row, by):]
			if by == "" {
				key = ""
			}
			if out[key] == nil {
				out[key] = multiset{}
			}
			out[key][row] = n
		}
		return out
	}
	oldParts, oldSums, oldWhole := overwritten(was)
	newParts, newSums, newWhole := overwritten(is)
	olds, news := 0, 0
	for _, x := range []struct {
		table, by string
		old, new  multiset
	}{{"parts", "k=", oldParts, newParts}, {"sums", "dt=", oldSums, newSums}, {"whole", "", oldWhole, newWhole}} {
		have, before, after := split(w.table(x.table), x.by), split(x.old, x.by), split(x.new, x.by)
		for key := range after {
			switch fmt.Sprint(have[key]) {
			case fmt.Sprint(before[key]):
				olds++
			case fmt.Sprint(after[key]):
				news++
			default:
				w.t.Fatalf("%s: %s %s shows neither what it had nor what it is to have: %d rows, had %d, to have %d",
					what, x.table, key, len(have[key]), len(before[key]), len(after[key]))
			}
		}
	}
	return olds > 0 && news > 0
}
