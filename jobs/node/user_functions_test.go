package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/userfunc"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/storage/vfs"
)

// functions are WEIGHT, a scalar, and PRODUCT, an aggregate modulo 1000003. loads
// counts the states that were taken over.
func functions(t *testing.T, version string, loads *atomic.Int64) *userfunc.Set {
	t.Helper()
	times := func(into, by *int64) error { *into = product(*into, by); return nil }
	set, err := userfunc.NewSet(
		userfunc.Scalar1("WEIGHT", func(x int64) (int64, error) {
			if x == 13 {
				panic("unlucky")
			}
			return x + 2, nil
		}, userfunc.Options{Version: version}),
		userfunc.Aggregate1("PRODUCT", userfunc.Fold1[int64, int64, int64]{
			Add: func(s *int64, x int64) error { return times(s, &x) },
			State: userfunc.State[int64, int64]{
				Merge:  times,
				Result: func(s *int64) (int64, error) { return *s, nil },
				Save:   func(dst []byte, s *int64) []byte { return binary.AppendVarint(dst, *s) },
				Load: func(s *int64, b []byte) error {
					loads.Add(1)
					*s, _ = binary.Varint(b)
					return nil
				},
			},
		}, userfunc.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// product is a times b modulo a prime, in which 0 stands for no factor.
func product(a int64, b *int64) int64 {
	switch {
	case a == 0:
		return *b
	case *b == 0:
		return a
	}
	return a * *b % 1000003
}

// TestUserAggregateSurvivesACrash: the state of a user aggregate is saved, taken over
// after a power cut, and each row is in the result once. State that another version of
// a function went into is refused by name.
func TestUserAggregateSurvivesACrash(t *testing.T) {
	w := newWorld(t)
	var loads atomic.Int64
	w.functions = functions(t, "1", &loads)
	n := w.open()
	w.topic(n, "clicks", 1)
	job := w.options("job", `SET 'execution.checkpointing.interval' = '50 ms';
SET 'start.retry-timeout' = '1 s';
CREATE TABLE clicks (id BIGINT, a BIGINT, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts) WITH ('connector'='log', 'topic'='clicks',
  'scan.startup.mode'='earliest-offset', 'format'='json', 'json.timestamp-format.standard'='ISO-8601');
`+w.sink("out")+"INSERT INTO `out` SELECT id, PRODUCT(WEIGHT(a)) FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY id, window_start, window_end;")
	products := map[int64]int64{}
	var values []string
	for i := range int64(60) {
		id, a := i%3, i%17
		values = append(values, fmt.Sprintf(`{"id":%d,"a":%d,"ts":"2024-05-01T10:00:%02dZ"}`, id, a, i))
		if x := a + 2; a != 13 { // which is a dead letter
			products[id] = product(products[id], &x)
		}
	}
	w.produce(n, "clicks", values[:40]...)
	r := w.start(n, job)
	w.until(func() bool {
		all, err := n.Ledger(w.ctx(), "")
		if err != nil {
			t.Fatal(err)
		}
		return len(all) > 0 && all[0].Folded+all[0].Dead == 40
	})
	left := w.mem.CrashClone(vfs.CrashOptions{})
	if err := errors.Join(r.Stop(w.ctx()), r.Wait(w.ctx())); err != nil {
		t.Fatal(err)
	}
	w.close(n)

	w.functions = functions(t, "2", new(atomic.Int64))
	w.fs = left.CrashClone(vfs.CrashOptions{UnsyncedPercent: 100})
	n = w.open()
	r, err := n.Start(w.ctx(), job)
	if err == nil {
		err = r.Wait(w.ctx())
	}
	var bad *state.IncompatibleError
	if !errors.As(err, &bad) || !strings.Contains(bad.Reason, "version 1 of the user function WEIGHT, and this program has version 2") {
		t.Errorf("another version: %v", err)
	}
	w.close(n)

	w.functions = functions(t, "1", &loads)
	w.mem, w.fs = left, left
	n = w.open()
	r = w.start(n, job)
	if loads.Load() == 0 {
		t.Error("no state was taken over")
	}
	w.produce(n, "clicks", append(values[40:], `{"id":9,"a":1,"ts":"2024-05-01T10:05:00Z"}`)...)
	w.until(func() bool { return len(w.rows("out")) >= len(products) })
	var want []string
	for id, x := range products {
		want = append(want, row(id, x))
	}
	w.wantRows("out", want...)
	if err := errors.Join(r.Stop(w.ctx()), r.Wait(w.ctx())); err != nil {
		t.Fatal(err)
	}
}

func (w *world) start(n *Node, o RunOptions) *Running {
	w.t.Helper()
	r, err := n.Start(w.ctx(), o)
	if err != nil {
		w.t.Fatal(explain(err))
	}
	return r
}

// until waits for what a running job does.
func (w *world) until(is func() bool) {
	w.t.Helper()
	ctx, tick := w.ctx(), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.t.Fatal("it did not happen in time")
		}
	}
}

// TestUserFunctionsEverywhere: every way of the node to compile knows them.
func TestUserFunctionsEverywhere(t *testing.T) {
	w := newWorld(t)
	w.functions = functions(t, "3", new(atomic.Int64))
	n := w.open()
	w.topic(n, "clicks", 1)
	w.produce(n, "clicks", `{"id":1,"a":5}`, `{"id":2,"a":13}`, `{"id":3}`)
	job := source("clicks", "clicks") + w.sink("out") + "INSERT INTO `out` SELECT id, weight(a) FROM clicks;"
	w.run(n, w.options("job", job))
	w.wantRows("out", row(1, 7), `{"id":3,"x":null}`)
	w.wantLetters(n, "out clicks 1 [0] user_function 0")
	ask := func(sql string) *result {
		t.Helper()
		r := &result{}
		if err := n.Query(w.ctx(), control.Query{Job: "job", Files: []control.SQLFile{{Name: "query", Text: sql}}}, r); err != nil {
			t.Fatal(explain(err))
		}
		return r
	}
	for sql, want := range map[string]string{
		"SELECT WEIGHT(a) AS x FROM clicks WHERE id = 1":                                                                            `[{"x":7}]`,
		"SELECT PRODUCT(a) AS x FROM clicks":                                                                                        `[{"x":65}]`,
		"SELECT PRODUCT(x) FILTER (WHERE x > 2) AS x FROM (VALUES (2), (5), (3)) AS v (x)":                                          `[{"x":15}]`,
		"SELECT PRODUCT(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS x FROM (VALUES (2), (5), (3)) AS v (x)":    `[{"x":2} {"x":6} {"x":15}]`,
		"SELECT PRODUCT(n) AS x FROM (SELECT k, COUNT(*) AS n FROM (VALUES (1), (2), (2), (3), (3), (3)) AS v (k) GROUP BY k) AS g": `[{"x":6}]`,
		"SHOW USER FUNCTIONS":        `[{"function":"WEIGHT"} {"function":"PRODUCT"}]`,
		"SHOW FUNCTIONS LIKE 'WEI%'": `[{"function":"WEIGHT"}]`,
		"SELECT PRODUCT(DISTINCT id) AS x FROM (VALUES (2), (2), (3)) AS v (id)": `[{"x":6}]`,
	} {
		if got := fmt.Sprint(ask(sql).rows); got != want {
			t.Errorf("%s gives %s, want %s", sql, got, want)
		}
	}
	if got := strings.Join(ask("DESCRIBE FUNCTION weight").rows, "\n"); !strings.Contains(got, `"version","value":"3"`) || !strings.Contains(got, "WEIGHT(BIGINT)") {
		t.Error(got)
	}
	p := &result{}
	if err := n.Preview(w.ctx(), control.Preview{Files: []control.SQLFile{{Name: "job.sql", Text: job}}}, p); err != nil || len(p.rows) != 2 {
		t.Errorf("preview: %v, %v", p.rows, err)
	}
	if out := w.replay(n, "out", strings.Replace(job, "weight(a)", "weight(a + 1)", 1)); out.Rows != 1 {
		t.Errorf("replayed %+v", out)
	}
}
