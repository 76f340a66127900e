package node

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/jobs/control"
)

// TestStatementsAboutJobs: the shell lists jobs and groups and stops a job; what the
// job had read is committed, and run again it goes on behind it.
func TestStatementsAboutJobs(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "events", 1)
	w.produce(n, "events", `{"id":1,"a":1,"b":1}`, `{"id":2,"a":2,"b":1}`)
	from := strings.Replace(source("e", "events"), "'scan.bounded.mode'='latest-offset'", "'properties.group.id'='shown'", 1)
	sql := from + w.sink("out") + "INSERT INTO `out` SELECT id, a FROM e;"
	r, err := n.Start(w.ctx(), w.options("job", sql))
	if err != nil {
		t.Fatal(explain(err))
	}
	w.awaitRead(n, "out", 2)
	ask := func(sql string) (*result, error) {
		got := &result{}
		err := n.Query(w.ctx(), control.Query{Files: []control.SQLFile{{Name: "typed", Text: sql}}}, got)
		return got, err
	}
	want := func(sql string, columns string, rows ...string) {
		t.Helper()
		got, err := ask(sql)
		if err != nil {
			t.Fatalf("%s: %v", sql, explain(err))
		}
		if c := strings.Join(got.columns, ","); c != columns {
			t.Errorf("%s: columns %s, want %s", sql, c, columns)
		}
		if len(got.rows) != len(rows) {
			t.Fatalf("%s: %d rows %v, want %d", sql, len(got.rows), got.rows, len(rows))
		}
		for i := range rows {
			if !strings.Contains(got.rows[i], rows[i]) {
				t.Errorf("%s: row %s, want %s in it", sql, got.rows[i], rows[i])
			}
		}
	}
	const jobs, groups = "job id,job name,status,start time", "group,type,state,members,lag,owner"
	want("SHOW JOBS", jobs, `"job name":"job","status":"running","start time":"20`)
	want("SHOW JOBS LIKE 'x%'", jobs)
	want("DESCRIBE JOB 'job'", jobs, `"status":"running"`)
	want("SHOW GROUPS", groups, `"group":"job/job"`, `"group":"shown","type":"job","state":"Stable"`)
	want("SHOW GROUPS LIKE 'sh%'", groups, `"owner":"job job"`)

	for _, c := range []struct{ sql, text string }{
		{"STOP JOB 'jbo'", `there is no job "jbo"`},
		{"STOP JOB 'job' WITH DRAIN", "WITH DRAIN is not supported"},
		{"DESCRIBE JOB 'jbo'", `there is no job "jbo"`},
	} {
		if _, err := ask(c.sql); err == nil || !strings.Contains(explain(err), c.text) {
			t.Errorf("%s: %v, want %q", c.sql, err, c.text)
		}
	}
	want("SHOW JOBS", jobs, `"status":"running"`) // a refused statement stops nothing

	got, err := ask("STOP JOB '" + r.record.ID.String() + "' WITH SAVEPOINT")
	if err != nil || len(got.done) != 1 || !strings.Contains(got.done[0], "job job is stopped") {
		t.Fatalf("stopping: %v, %v", got, err)
	}
	if err := r.Wait(w.ctx()); err != nil {
		t.Fatal(err)
	}
	if l := w.ledger(n, "out"); l.Written != 2 || l.Open != 0 {
		t.Errorf("after STOP JOB: %+v", l)
	}
	want("SHOW JOBS", jobs, `"status":"stopped","start time":""`)
	want("DESCRIBE GROUP shown", "topic,partition,offset,latest,lag,member", `"topic":"events","partition":"0","offset":"2","latest":"2","lag":"0"`)
	_, err = ask("STOP JOB 'job'")
	wantInput(t, err, "job job is not running")

	w.produce(n, "events", `{"id":3,"a":3,"b":1}`)
	if r, err = n.Start(w.ctx(), w.options("job", sql)); err != nil {
		t.Fatal(explain(err))
	}
	w.awaitRead(n, "out", 3)
	if _, err := ask("STOP JOB 'job'"); err != nil {
		t.Fatal(explain(err))
	}
	if err := r.Wait(w.ctx()); err != nil {
		t.Fatal(err)
	}
	if l := w.ledger(n, "out"); l.Written != 3 || l.Read != 3 || l.Open != 0 {
		t.Errorf("at the end: %+v", l)
	}
}
