package jobtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/jobs/control"
)

// stepsSQL has windows by row time, over two stages and of two partitions, windows by the
// clock, rows that pass at once, a table whose rows change, a lookup, and a value.
const stepsSQL = `
CREATE TABLE orders (
  id BIGINT, customer STRING, amount INT, ts TIMESTAMP_LTZ(3), proc AS PROCTIME(),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'log', 'topic' = 'orders', 'json.timestamp-format.standard' = 'ISO-8601');
CREATE TABLE hourly (customer STRING, h TIMESTAMP(3), total BIGINT) WITH ('connector' = 'log', 'topic' = 'hourly');
CREATE TABLE largest (h TIMESTAMP(3), total BIGINT) WITH ('connector' = 'log', 'topic' = 'largest');
CREATE TABLE minutes (m TIMESTAMP(3), n BIGINT) WITH ('connector' = 'log', 'topic' = 'minutes');
CREATE TABLE seen (id BIGINT, tick TIMESTAMP_LTZ(3)) WITH ('connector' = 'log', 'topic' = 'seen');
CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE literal (id INT) WITH ('connector' = 'blackhole');
CREATE VIEW sums AS SELECT customer, window_start, window_end, SUM(amount) AS total
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY customer, window_start, window_end;
INSERT INTO hourly SELECT customer, window_start, total FROM sums;
INSERT INTO largest SELECT window_start, MAX(total) FROM sums GROUP BY window_start, window_end;
INSERT INTO minutes SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(proc), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
INSERT INTO seen SELECT id, CURRENT_TIMESTAMP FROM orders;
INSERT INTO totals SELECT customer, SUM(amount) FROM orders GROUP BY customer;
INSERT INTO literal VALUES (7);
`

func stepsSuite(t *testing.T, tests string) (*Suite, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"job.sql": stepsSQL, "job.test.yaml": tests} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Load(filepath.Join(dir, "job.test.yaml"))
}

func runSteps(t *testing.T, tests string, accept bool) (*Suite, []Result) {
	t.Helper()
	s, err := stepsSuite(t, tests)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := Run(context.Background(), s, Options{Registry: registry(t), Accept: accept})
	if wrong := new(control.Error); errors.As(err, &wrong) {
		t.Fatal(wrong.Rendered)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, rs
}

// After each step there is what its records fire, and nothing more.
func TestSteps(t *testing.T) {
	_, rs := runSteps(t, `
tests:
  - name: windows by row time
    steps:
      - name: the hour is open
        given:
          orders:
            - {id: 1, customer: ann, amount: 1, ts: "2026-07-21T06:10:00Z"}
            - {id: 2, customer: bob, amount: 5, ts: "2026-07-21T06:20:00Z"}
            - {id: 3, customer: ann, amount: 2, ts: "2026-07-21T07:00:04.998Z"}
        want:
          hourly: []
          largest: []
          seen: [{id: 1}, {id: 2}, {id: 3}]
          totals: [{customer: ann, total: 3}, {customer: bob, total: 5}]
          literal: [{id: 7}]
      - name: the watermark reaches its end
        given:
          orders: [{id: 4, customer: ann, amount: 4, ts: "2026-07-21T07:00:05Z"}]
        want:
          hourly:
            - {customer: ann, h: "2026-07-21 06:00:00", total: 1}
            - {customer: bob, h: "2026-07-21 06:00:00", total: 5}
          largest: [{h: "2026-07-21 06:00:00", total: 5}]
          totals: [{customer: ann, total: 7}, {customer: bob, total: 5}]
        dead: []
      - name: nothing comes
        want:
          largest: [{h: "2026-07-21 06:00:00", total: 5}]
      - name: too late
        given:
          orders: [{id: 5, customer: ann, amount: 8, ts: "2026-07-21T06:59:59Z"}]
        want:
          hourly:
            - {customer: ann, h: "2026-07-21 06:00:00", total: 1}
            - {customer: bob, h: "2026-07-21 06:00:00", total: 5}
          totals: [{customer: ann, total: 15}, {customer: bob, total: 5}]
        dead: [{table: hourly, reason: late}]
    want:
      hourly:
        - {customer: ann, h: "2026-07-21 06:00:00", total: 1}
        - {customer: bob, h: "2026-07-21 06:00:00", total: 5}
        - {customer: ann, h: "2026-07-21 07:00:00", total: 6}
      largest:
        - {h: "2026-07-21 06:00:00", total: 5}
        - {h: "2026-07-21 07:00:00", total: 6}
      literal: [{id: 7}]
    dead: [{table: hourly, reason: late}, {table: largest, reason: late}]
  - name: a partition that is behind holds the watermark
    given:
      orders:
        - {id: 1, customer: ann, amount: 1, ts: "2026-07-21T06:10:00Z"}
    steps:
      - name: one is ahead
        given: {orders: [{id: 2, customer: ann, amount: 2, ts: "2026-07-21T09:00:00Z"}]}
        want: {hourly: []}
      - name: the other follows
        given: {orders: [{id: 3, customer: ann, amount: 4, ts: "2026-07-21T07:00:05Z", $partition: 1}]}
        want: {hourly: [{customer: ann, h: "2026-07-21 06:00:00", total: 1}]}
  - name: windows by the clock
    clock: "2026-07-21T06:00:30Z"
    steps:
      - name: the minute is open
        given: {orders: [{id: 1, amount: 1}, {id: 2, amount: 1}]}
        want:
          minutes: []
          seen: [{id: 1, tick: "2026-07-21T06:00:30Z"}, {id: 2, tick: "2026-07-21T06:00:30Z"}]
      - name: a moment before its end
        clock: "2026-07-21T06:00:59.999Z"
        want: {minutes: []}
      - name: its end, without input
        clock: "2026-07-21T06:01:00Z"
        want: {minutes: [{m: "2026-07-21 06:00:00", n: 2}]}
      - name: the next one
        given: {orders: [{id: 3, amount: 1}]}
        clock: "2026-07-21T06:02:10Z"
        want:
          minutes: [{m: "2026-07-21 06:00:00", n: 2}]
          seen: [{id: 1, tick: "2026-07-21T06:00:30Z"}, {id: 2, tick: "2026-07-21T06:00:30Z"}, {id: 3, tick: "2026-07-21T06:02:10Z"}]
    want:
      minutes: [{m: "2026-07-21 06:00:00", n: 2}, {m: "2026-07-21 06:02:00", n: 1}]
  - name: a clock without steps
    clock: 1000
    given: {orders: [{id: 1}]}
    want: {seen: [{id: 1, tick: "1970-01-01T00:00:01Z"}]}
`, false)
	for _, r := range rs {
		if !r.OK {
			t.Errorf("%s: %+v", r.Name, r.Problems)
		}
	}
	if len(rs[0].Steps) != 4 || rs[0].Steps[3].Name != "too late" || !rs[0].Steps[3].OK || rs[0].Steps[0].Line != 5 {
		t.Errorf("the steps: %+v", rs[0].Steps)
	}
}

// A difference names its step, and the other steps are run all the same.
func TestStepsDiffer(t *testing.T) {
	_, rs := runSteps(t, `
tests:
  - name: t
    steps:
      - name: one
        given: {orders: [{id: 1, customer: ann, amount: 1, ts: "2026-07-21T06:10:00Z"}]}
        want: {hourly: [{customer: ann, total: 1}]}
      - name: two
        want: {seen: [{id: 1}]}
      - name: three
        want: {seen: [{id: 2}]}
    want: {seen: [{id: 1}, {id: 3}]}
`, false)
	var got []string
	for _, p := range rs[0].Problems {
		got = append(got, p.Step+"/"+p.Table+"/"+p.Message)
	}
	want := `one/hourly/missing:    {"customer": "ann", "total": 1}` + "\n" + `three/seen/missing:    {"id": 2}` + "\n" + `three/seen/not wanted: {"id": 1}` + "\n" + `/seen/missing:    {"id": 3}`
	if strings.Join(got, "\n") != want || rs[0].OK || rs[0].Steps[0].OK || !rs[0].Steps[1].OK || rs[0].Steps[2].OK {
		t.Errorf("%+v\n%s\nwant\n%s", rs[0].Steps, strings.Join(got, "\n"), want)
	}
}

// Steps that differ are written, those that do not are left as they are; a test that
// wants nothing gets every step.
func TestUpdateSteps(t *testing.T) {
	const before = `tests:
  - name: one differs
    steps:
      - name: right
        given:
          orders:
            - {id: 1, customer: ann, amount: 1, ts: "2026-07-21T06:10:00Z"}
        want: {hourly: []}
      - name: wrong # and why
        given: {orders: [{id: 2, customer: ann, amount: 1, ts: "2026-07-21T08:00:00Z"}]}
        want:
          hourly: []
        dead: [{reason: late}]
  - name: fresh
    clock: 60000
    steps:
      - name: first
        given: {orders: ['{"id": 1, "customer": "ann", "ts": "2026-07-21T06:10:00Z"}']}
      - name: second
        given: {orders: ['{']}
`
	s, rs := runSteps(t, before, true)
	text, changed, err := s.Update(rs)
	if err != nil || !changed {
		t.Fatal(changed, err)
	}
	for _, want := range []string{
		"        want: {hourly: []}\n      - name: wrong # and why\n",
		"        want:\n          hourly:\n            - {customer: ann, h: \"2026-07-21 06:00:00\", total: 1}\n        dead: []\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	s, rs = runSteps(t, string(text), true)
	for _, r := range rs {
		if !r.OK {
			t.Errorf("after the update: %s: %+v", r.Name, r.Problems)
		}
	}
	if len(s.Tests[1].steps[0].want) == 0 || !s.Tests[1].steps[1].hasDead || s.Tests[1].steps[0].hasDead || len(s.Tests[1].want) != len(s.Tests[1].steps[0].want) {
		t.Errorf("the fresh test:\n%s", text)
	}
}

// What is wrong with steps is said with the line.
func TestStepsFaulty(t *testing.T) {
	test := func(body string) string { return "tests:\n  - name: t\n" + body }
	for _, c := range []struct{ text, says string }{
		{test("    steps: []\n"), ":3:12: steps: want at least one step"},
		{test("    steps: {}\n"), "want a list"},
		{test("    step: []\n"), `unknown key "step"; did you mean "steps"?`},
		{test("    steps:\n      - {want: {seen: []}}\n"), ":4:9: a step needs a name"},
		{test("    steps:\n      - {name: a, wants: {}}\n"), `:4:19: a step: unknown key "wants"; did you mean "want"?`},
		{test("    steps:\n      - {name: a, steps: []}\n"), `unknown key "steps"`},
		{test("    steps:\n      - {name: a, dead: []}\n      - {name: a}\n"), `:5:9: there are two steps named "a"`},
		{test("    steps:\n      - {name: a, clock: 5, dead: []}\n"), "moves a clock that does not stand"},
		{test("    clock: noon\n    dead: []\n"), "clock: want a time"},
		{test("    clock: 10\n    steps:\n      - {name: a, clock: 20}\n      - {name: b, clock: 15, dead: []}\n"), ":6:9: step \"b\": the clock goes back"},
		{test("    steps:\n      - {name: a}\n"), "wants nothing"},
		{test("    steps:\n      - {name: a, given: {order: []}, dead: []}\n"), `:4:1: the job reads no table "order"; did you mean "orders"?`},
		{test("    steps:\n      - {name: a, want: {sen: []}}\n"), `the job writes no table "sen"; did you mean "seen"?`},
	} {
		s, err := stepsSuite(t, c.text)
		if err == nil {
			_, err = Run(context.Background(), s, Options{Registry: registry(t)})
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: error %v, want %q", c.text, err, c.says)
		}
	}
}

// A lane that fails ends the test at its step, also where others only wait.
func TestStepsFail(t *testing.T) {
	s, err := suite(t, "tests:\n  - name: t\n    set: {POLICY: fail}\n    steps:\n      - {name: one, want: {copied: []}}\n      - {name: two, given: {clicks: [{id: x}]}, want: {copied: []}}\n      - {name: three, want: {copied: []}}\n")
	if err != nil {
		t.Fatal(err)
	}
	rs, err := Run(context.Background(), s, Options{Registry: registry(t)})
	if err != nil {
		t.Fatal(err)
	}
	if p := rs[0].Problems; len(p) != 1 || p[0].Step != "two" || !strings.Contains(p[0].Message, "the job failed") || len(rs[0].Steps) != 2 {
		t.Errorf("%+v", rs[0])
	}
}
