package cli

import (
	"encoding/json"
	"encoding/xml"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/cmd/internal/exitcode"
)

const (
	testedJob = `CREATE TABLE a (id BIGINT, s STRING) WITH ('connector' = 'log', 'topic' = 'a');
CREATE TABLE b (id BIGINT, s STRING) PARTITIONED BY (s) WITH ('connector' = 'filesystem', 'path' = '/no/such/lake', 'format' = 'parquet',
  'sink.partition-commit.policy.kind' = 'success-file');
INSERT INTO b SELECT id, UPPER(s) FROM a;
`
	goodTest = "  - name: good\n    given: {a: [{id: 1, s: x}]}\n    want: {b: [{id: 1, s: X}]}\n"
	badTest  = "  - name: bad\n    given: {a: [{id: 1, s: x}]}\n    want:\n      b:\n        - {id: 1, s: x}\n"
)

func TestTest(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "job.sql"), testedJob)
	good := write(t, filepath.Join(dir, "good.test.yaml"), "job: job.sql\ntests:\n"+goodTest)
	code, out, errs := command(t, "", "test", good)
	if code != exitcode.OK || out != good+": good: ok\n1 passed, 0 failed\n" || errs != "" {
		t.Errorf("a good test: %d %q %q", code, out, errs)
	}
	job := write(t, filepath.Join(dir, "job.test.yml"), "tests:\n"+goodTest+badTest)
	report := filepath.Join(dir, "report.xml")
	code, out, _ = command(t, "", "test", dir+"/...", "--junit", report)
	want := good + ": good: ok\n" + job + ": good: ok\n" + job + ": bad: FAILED\n  table b\n    line 9: s: want \"x\", got \"X\"\n2 passed, 1 failed\n"
	if code != exitcode.Failed || out != want {
		t.Errorf("a bad test: %d %q, want %q", code, out, want)
	}
	var suites junitSuites
	if err := xml.Unmarshal([]byte(read(t, report)), &suites); err != nil || suites.Tests != 3 || suites.Failures != 1 || suites.Errors != 0 ||
		len(suites.Suites) != 2 || suites.Suites[1].Cases[1].Failure == nil || !strings.Contains(suites.Suites[1].Cases[1].Failure.Text, `want "x", got "X"`) {
		t.Errorf("the JUnit report (%v): %s", err, read(t, report))
	}
	code, out, _ = command(t, "", "test", job, "-o", "json")
	var env struct {
		Ok     bool
		Result struct{ Files []testFile }
	}
	if err := json.Unmarshal([]byte(out), &env); err != nil || code != exitcode.Failed || env.Ok || len(env.Result.Files) != 1 ||
		len(env.Result.Files[0].Tests) != 2 || !env.Result.Files[0].Tests[0].OK || env.Result.Files[0].Tests[1].Problems[0].Table != "b" {
		t.Errorf("-o json (%v): %d %s", err, code, out)
	}
	if code, out, _ = command(t, "", "test", job, "--update"); code != exitcode.OK || !strings.Contains(out, "bad: updated") || !strings.Contains(read(t, job), "- {id: 1, s: X}") {
		t.Errorf("--update: %d %s\n%s", code, out, read(t, job))
	}
	if code, out, _ = command(t, "", "test", dir); code != exitcode.OK || !strings.HasSuffix(out, "3 passed, 0 failed\n") {
		t.Errorf("after --update: %d %s", code, out)
	}
}

// A faulty file stops neither the others nor the report.
func TestTestFaulty(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "job.sql"), testedJob)
	write(t, filepath.Join(dir, "wrong.sql"), strings.Replace(testedJob, "UPPER(s)", "UPPER(t)", 1))
	write(t, filepath.Join(dir, "a.test.yaml"), "job: wrong.sql\ntests:\n"+goodTest)
	write(t, filepath.Join(dir, "b.test.yaml"), "job: job.sql\ntest: []\n")
	write(t, filepath.Join(dir, "job.test.yaml"), "tests:\n"+badTest)
	report := filepath.Join(dir, "report.xml")
	code, out, errs := command(t, "", "test", dir, "--junit", report)
	if code != exitcode.Input || !strings.HasSuffix(out, "0 passed, 1 failed, 2 faulty files\n") {
		t.Errorf("%d %s", code, out)
	}
	for _, want := range []string{"wrong.sql:4:32: error[unknown_column]", `b.test.yaml:2:1: a test file: unknown key "test"; did you mean "tests"?`} {
		if !strings.Contains(errs, want) {
			t.Errorf("no %q in %s", want, errs)
		}
	}
	if text := read(t, report); !strings.Contains(text, `tests="3" failures="1" errors="2"`) {
		t.Errorf("the report: %s", text)
	}
	for _, args := range [][]string{{"test"}, {"test", filepath.Join(dir, "job.sql")}, {"test", filepath.Join(dir, "none")}, {"test", t.TempDir()}} {
		if code, _, errs := command(t, "", args...); code != exitcode.Input || errs == "" {
			t.Errorf("%v: %d %q, want exit 2", args, code, errs)
		}
	}
}

// Steps are named where people and CI systems look.
func TestTestSteps(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "job.sql"), testedJob)
	job := write(t, filepath.Join(dir, "job.test.yaml"), `tests:
  - name: grows
    steps:
      - {name: one, given: {a: [{id: 1, s: x}]}, want: {b: [{id: 1}]}}
      - name: two
        given: {a: [{id: 2, s: x}]}
        want:
          b: [{id: 1}, {id: 3}]
    want: {b: [{id: 1}]}
`)
	report := filepath.Join(dir, "report.xml")
	code, out, _ := command(t, "", "test", job, "--junit", report)
	want := job + ": grows: FAILED\n  after step two\n  table b\n    line 8: missing:    {\"id\": 3}\n    line 8: not wanted: {\"id\": 2}\n" +
		"  at the end\n  table b\n    line 9: not wanted: {\"id\": 2}\n0 passed, 1 failed\n"
	if code != exitcode.Failed || out != want {
		t.Errorf("%d %q, want %q", code, out, want)
	}
	var suites junitSuites
	if err := xml.Unmarshal([]byte(read(t, report)), &suites); err != nil || suites.Tests != 3 || suites.Failures != 2 {
		t.Fatalf("the JUnit report (%v): %s", err, read(t, report))
	}
	cases := suites.Suites[0].Cases
	if cases[0].Name != "grows: one" || cases[0].Failure != nil || cases[1].Name != "grows: two" || cases[1].Failure == nil ||
		!strings.Contains(cases[1].Failure.Text, `b missing:    {"id": 3}`) || cases[2].Name != "grows" || cases[2].Failure == nil {
		t.Errorf("the cases: %s", read(t, report))
	}
	code, out, _ = command(t, "", "test", job, "-o", "json")
	if code != exitcode.Failed || !strings.Contains(strings.ReplaceAll(out, " ", ""), `"step":"two"`) || !strings.Contains(strings.ReplaceAll(out, " ", ""), `"steps":[`) {
		t.Errorf("-o json: %d %s", code, out)
	}
	if code, out, _ = command(t, "", "test", job, "--update"); code != exitcode.OK {
		t.Errorf("--update: %d %s", code, out)
	}
	if code, out, _ = command(t, "", "test", job); code != exitcode.OK {
		t.Errorf("after --update: %d %s\n%s", code, out, read(t, job))
	}
}
