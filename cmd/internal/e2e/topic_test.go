package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/jobs/control"
)

// twoTopics copies two topics into two tables.
const twoTopics = `
CREATE TABLE a (id BIGINT) WITH ('connector' = 'log', 'topic' = 'a', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = '${BOUNDED:-unbounded}', 'format' = 'json');
CREATE TABLE b (id BIGINT) WITH ('connector' = 'log', 'topic' = 'b', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = '${BOUNDED:-unbounded}', 'format' = 'json');
CREATE TABLE a_out (id BIGINT) WITH ('connector' = 'filesystem', 'path' = '${OUT}/a_out', 'format' = 'parquet', 'sink.rolling-policy.rollover-interval' = '300 ms');
CREATE TABLE b_out (id BIGINT) WITH ('connector' = 'filesystem', 'path' = '${OUT}/b_out', 'format' = 'parquet', 'sink.rolling-policy.rollover-interval' = '300 ms');
INSERT INTO a_out SELECT id FROM a;
INSERT INTO b_out SELECT id FROM b;
`

func idLines(first, count int) []string {
	out := make([]string, count)
	for i := range out {
		out[i] = fmt.Sprintf(`{"id":%d}`, first+i)
	}
	return out
}

func idRows(first, count int) multiset {
	m := multiset{}
	for i := range count {
		m[fmt.Sprintf("id=%d", first+i)]++
	}
	return m
}

// TestTopicDeletedAndRecreated: a topic of the same name is another topic. Its
// lane does not take the old position for a position in it: it stops and says
// what it misses, while the other lane runs on. On command it goes on with the
// new topic.
func TestTopicDeletedAndRecreated(t *testing.T) {
	w := newWorld(t)
	w.produce("a", idLines(0, 100)...)
	w.produce("b", idLines(0, 100)...)
	job := w.file("two.sql", twoTopics)
	p := w.start(w.runArgs(job)...)
	for _, table := range []string{"a_out", "b_out"} {
		w.untilLedger(p, table, "committed", func(l control.TableLedger) bool { return l.Written == 100 })
	}
	p.kill()

	w.run("topics", "rm", "a").must(t, 2).says(t, "--yes")
	w.run("topics", "rm", "a", "--yes").must(t, 2).says(t, "two", "--force")
	w.run("topics", "rm", "a", "--yes", "--force").must(t, 0)
	w.produce("a", idLines(1000, 40)...)
	w.produce("b", idLines(100, 50)...)

	p = w.start(w.runArgs(job)...)
	w.untilLedger(p, "b_out", "the other lane runs on", func(l control.TableLedger) bool { return l.Written == 150 })
	var stopped control.LaneState
	eventuallyOf(t, p, "the lane of the topic that was made again says why it stands", func() (bool, string) {
		var last string
		for _, j := range w.jobs() {
			for _, l := range j.Lanes {
				last += fmt.Sprintf("%+v\n", l)
				if l.Topic == "a" && l.Error != "" {
					stopped = l
					return true, last
				}
			}
		}
		return false, last
	})
	if !strings.Contains(stopped.Error, "a") || stopped.State == "running" {
		t.Errorf("the lane says: %+v", stopped)
	}
	t.Logf("the lane says: %s: %s", stopped.State, stopped.Error)
	compare(t, "a_out", w.table("a_out"), idRows(0, 100))

	w.run("jobs", "resume", "two", "--lane", stopped.Lane, "--skip-lost").must(t, 0)
	want := idRows(0, 100)
	for r := range idRows(1000, 40) {
		want[r]++
	}
	eventuallyOf(t, p, "the lane goes on with the new topic", func() (bool, string) {
		got := w.table("a_out")
		return got.total() >= 140, fmt.Sprintf("%d rows; %+v", got.total(), w.jobs())
	})
	compare(t, "a_out", w.table("a_out"), want)
	compare(t, "b_out", w.table("b_out"), idRows(0, 150))
	p.terminate()
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.stderr.String())
	}
	w.run("ledger", "show", "--check").must(t, 0)
}

// TestMissingTopic: a job over a topic that is not there is refused, with the
// command that makes it.
func TestMissingTopic(t *testing.T) {
	w := newWorld(t)
	job := w.file("small.sql", copyJob())
	w.run(w.runArgs(job)...).must(t, 2).says(t, "clicks", "millrace topics create clicks")
}
