package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

func TestOneOwner(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	_, err := w.tryOpen()
	var owned *OwnedError
	if !errors.As(err, &owned) {
		t.Fatalf("a second owner: %v", err)
	}
	info, err := n.Info(w.ctx())
	if err != nil || info.PID != os.Getpid() || info.Directory != w.dir {
		t.Errorf("info %+v, %v", info, err)
	}
	c, err := control.Dial(w.ctx(), w.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	topics, err := c.Topics(w.ctx())
	if err != nil || len(topics) != 1 || topics[0].Name != LedgerTopic || !topics[0].Internal {
		t.Errorf("topics over the socket: %+v, %v", topics, err)
	}
	w.close(n)
	w.close(w.open())
}

func TestTopics(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "clicks", 2, "retention.ms", "1000")
	_, err := n.CreateTopic(w.ctx(), control.CreateTopic{Name: "clicks", Partitions: 1})
	wantInput(t, err, "clicks")
	_, err = n.CreateTopic(w.ctx(), control.CreateTopic{Name: "other", Partitions: 1, Config: map[string]string{"retention.sm": "1"}})
	wantInput(t, err, "retention.ms")
	if got, err := n.CreateTopic(w.ctx(), control.CreateTopic{Name: "clicks", Partitions: 1, IfNotExists: true}); err != nil || len(got.Partitions) != 2 {
		t.Errorf("created if not exists: %+v, %v", got, err)
	}
	w.produce(n, "clicks", "a", "b", "c")
	got, err := n.Topic(w.ctx(), "clicks")
	if err != nil || got.Config["retention.ms"] != "1000" || got.Partitions[0].Latest != 3 || got.Partitions[1].Latest != 0 {
		t.Errorf("topic %+v, %v", got, err)
	}
	_, err = n.Topic(w.ctx(), "click")
	var e *control.Error
	if !errors.As(err, &e) || e.Kind != "not_found" || !strings.Contains(e.Hint, `"clicks"`) {
		t.Errorf("an unknown topic: %v", err)
	}
	_, err = n.Produce(w.ctx(), LedgerTopic, func(*control.Record) error { return nil })
	wantInput(t, err, "Millrace alone")
	_, err = n.Produce(w.ctx(), "clicks", func(r *control.Record) error { *r = control.Record{Partition: 9}; return nil })
	wantInput(t, err, "no partition 9")
	wantInput(t, n.DeleteTopic(w.ctx(), control.DeleteTopic{Name: LedgerTopic}), "own")
	if err := n.DeleteTopic(w.ctx(), control.DeleteTopic{Name: "clicks"}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Topic(w.ctx(), "clicks"); err == nil {
		t.Error("a deleted topic is there")
	}
}

func TestConsumeRanges(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "t", 1)
	w.produce(n, "t", "0", "1", "2", "3", "4")
	for _, c := range []struct {
		rng   string
		limit int64
		want  string
	}{{"start:end", 0, "01234"}, {"1:3", 0, "12"}, {"-2", 0, "34"}, {"+2", 0, "01"}, {"start:end", 3, "012"}, {"5:5", 0, ""}} {
		got := ""
		err := n.Consume(w.ctx(), control.Consume{Topic: "t", Range: c.rng, Limit: c.limit}, func(r *control.Record) error {
			got += string(r.Value)
			return nil
		})
		if err != nil || got != c.want {
			t.Errorf("range %s: %q, want %q: %v", c.rng, got, c.want, err)
		}
	}
	err := n.Consume(w.ctx(), control.Consume{Topic: "t", Range: "start:end", Partitions: []int32{3}}, nil)
	wantInput(t, err, "no partition 3")

	// A range without an end follows the topic.
	ctx, cancel := context.WithCancel(w.ctx())
	got := ""
	err = n.Consume(ctx, control.Consume{Topic: "t", Range: "start"}, func(r *control.Record) error {
		got += string(r.Value)
		switch len(got) {
		case 5:
			w.produce(n, "t", "5")
		case 6:
			cancel()
		}
		return nil
	})
	if got != "012345" || !errors.Is(err, context.Canceled) {
		t.Errorf("followed %q: %v", got, err)
	}
}

// TestConsumeACompactedTopic: what compaction has dropped, also at the end of
// the range, is passed over.
func TestConsumeACompactedTopic(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "t", 1, "cleanup.policy", "compact")
	topic, err := n.findTopic("t")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		var b record.Builder
		if err := b.Append(1, []byte{byte('a' + i%2)}, []byte(fmt.Sprint(i)), nil); err != nil {
			t.Fatal(err)
		}
		raw, err := b.Build()
		if err == nil {
			_, err = n.store.Append(w.ctx(), topiclog.AppendRequest{Partition: topic.Partitions[0].ID, Batches: raw})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(n.store.Flush(w.ctx()), n.store.Compact(w.ctx(), "t")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ rng, want string }{{"start:end", "18 19"}, {"3:10", ""}, {"3:19", "18"}} {
		var got []string
		err := n.Consume(w.ctx(), control.Consume{Topic: "t", Range: c.rng}, func(r *control.Record) error {
			got = append(got, string(r.Value))
			return nil
		})
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("range %s: %v, want %s: %v", c.rng, got, c.want, err)
		}
	}
}

// TestLedgerSurvivesCompaction: the ledger is read back from what compaction
// leaves of its topic.
func TestLedgerSurvivesCompaction(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "clicks", 1)
	for range 3 {
		w.produce(n, "clicks", `{"id":1,"a":1,"b":1}`, `{"id":1,"a":0,"b":1}`)
		o := w.options("job", w.divide(""))
		o.Fresh, o.Append = true, true
		w.run(n, o)
	}
	before := w.ledger(n, "out")
	if err := errors.Join(n.store.Flush(w.ctx()), n.store.Compact(w.ctx(), LedgerTopic)); err != nil {
		t.Fatal(err)
	}
	w.close(n)
	n = w.open()
	if after := w.ledger(n, "out"); fmt.Sprint(after) != fmt.Sprint(before) || after.Read != 6 {
		t.Errorf("the ledger says %+v, before compaction %+v", after, before)
	}
}

func TestFinishedJob(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "clicks", 1)
	w.topic(n, "other", 1)
	w.produce(n, "clicks", `{"id":1,"a":1,"b":1}`)
	sql := w.divide("")
	w.run(n, w.options("job", sql))
	if s, h := n.store.Subscriptions(), n.store.Holds(); len(s) != 0 || len(h) != 0 {
		t.Errorf("after the end there are subscriptions %v and holds %v", s, h)
	}
	w.close(n)

	n = w.open()
	w.produce(n, "clicks", `{"id":2,"a":1,"b":1}`)
	if r := w.run(n, w.options("job", sql)); !r.AlreadyFinished() {
		t.Error("a finished job ran again")
	}
	w.wantRows("out", row(1, 200))
	o := w.options("job", sql)
	o.Path = "/elsewhere/job.sql"
	_, err := n.Start(w.ctx(), o)
	wantInput(t, err, "belongs to /jobs/job.sql")
	o.Files[0].Text = "SET 'pipeline.name' = 'mine';\n" + strings.ReplaceAll(sql, "/out'", "/out2'")
	w.run(n, o)
	w.wantRows("out2", row(1, 200), row(2, 200))
	jobs, err := n.Jobs(w.ctx())
	if err != nil || len(jobs) != 2 || jobs[0].Name != "job" || jobs[0].State != "finished" || jobs[1].Name != "mine" {
		t.Errorf("jobs %+v, %v", jobs, err)
	}
}

// TestTopicsThatAreReadNoMore: an edited job lets them go.
func TestTopicsThatAreReadNoMore(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "x", 1)
	w.topic(n, "y", 1)
	endless := func(s string) string { return strings.ReplaceAll(s, "'scan.bounded.mode'='latest-offset', ", "") }
	both := endless(source("x", "x") + source("y", "y") + w.sink("out") + "INSERT INTO `out` SELECT id, a FROM x UNION ALL SELECT id, a FROM y;")
	stop := func(sql string) {
		r, err := n.Start(w.ctx(), w.options("job", sql))
		if err != nil {
			t.Fatal(explain(err))
		}
		if err := r.Stop(w.ctx()); err != nil {
			t.Fatal(err)
		}
	}
	stop(both)
	if s, h := n.store.Subscriptions(), n.store.Holds(); len(s) != 2 || len(h) != 2 {
		t.Fatalf("subscriptions %v and holds %v", s, h)
	}
	err := n.DeleteTopic(w.ctx(), control.DeleteTopic{Name: "y"})
	wantInput(t, err, "y")
	stop(endless(source("x", "x") + w.sink("out") + "INSERT INTO `out` SELECT id, a FROM x;"))
	if s, h := n.store.Subscriptions(), n.store.Holds(); len(s) != 1 || len(h) != 1 {
		t.Errorf("subscriptions %v and holds %v", s, h)
	}
	if err := n.DeleteTopic(w.ctx(), control.DeleteTopic{Name: "y"}); err != nil {
		t.Error(err)
	}
}

func TestQuery(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "clicks", 1)
	w.produce(n, "clicks", `{"id":1,"a":1,"b":1}`, `{"id":2,"a":0,"b":1}`, `no json`)
	w.run(n, w.options("job", w.divide("")))
	ask := func(q control.Query) *result {
		t.Helper()
		r := &result{}
		if err := n.Query(w.ctx(), q, r); err != nil {
			t.Fatal(explain(err))
		}
		return r
	}
	q := func(sql string) []control.SQLFile { return []control.SQLFile{{Name: "query", Text: sql}} }
	r := ask(control.Query{Job: "job", Files: q("SELECT id, 10 + a AS x FROM clicks")})
	if !slices.Equal(r.rows, []string{`{"id":1,"x":11}`, `{"id":2,"x":10}`}) || !slices.Equal(r.columns, []string{"id", "x"}) {
		t.Errorf("rows %v of columns %v", r.rows, r.columns)
	}
	// Invariant 6: what is not among the rows is said.
	if s := strings.Join(r.done, ""); !strings.Contains(s, "2 rows; not among them") || !strings.Contains(s, "1 malformed_record") {
		t.Errorf("it ended with %q", s)
	}
	if err := n.Query(w.ctx(), control.Query{Job: "job", Files: q("SELECT 10 / a FROM clicks")}, &result{}); err == nil || !strings.Contains(err.Error(), "division_by_zero") {
		t.Errorf("a query that divides by zero: %v", err)
	}
	r = ask(control.Query{Job: "job", Files: q("SELECT COUNT(*) AS n FROM `out`")})
	if !slices.Equal(r.rows, []string{`{"n":1}`}) {
		t.Errorf("rows %v", r.rows)
	}
	if err := n.Query(w.ctx(), control.Query{Job: "jbo", Files: q("SELECT 1")}, &result{}); err == nil || !strings.Contains(err.Error(), `no job "jbo"`) {
		t.Errorf("an unknown job: %v", err)
	}
	err := n.Query(w.ctx(), control.Query{Job: "job", Files: q("SELECT idd FROM clicks")}, &result{})
	var e *control.Error
	if !errors.As(err, &e) || !strings.Contains(e.Rendered, `did you mean`) {
		t.Errorf("a wrong column: %v", err)
	}
}

// TestPreview: it says what would be, moves no position and writes nothing.
func TestPreview(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "clicks", 1)
	w.produce(n, "clicks", `{"id":1,"a":1,"b":1}`, `{"id":2,"a":0,"b":1}`, `{"id":3,"a":1,"b":1}`, `{"id":4,"a":1,"b":1}`)
	sql := strings.ReplaceAll(w.divide(""), "'scan.bounded.mode'='latest-offset', ", "")
	files := w.options("job", sql).Files
	r := &result{}
	if err := n.Preview(w.ctx(), control.Preview{Files: files, Range: "1:4", Limit: 1}, r); err != nil {
		t.Fatal(explain(err))
	}
	if !slices.Equal(r.rows, []string{row(3, 200)}) || len(r.done) != 2 || r.done[0] != "table out: 1 of 2 rows" || !strings.Contains(r.done[1], "1 division_by_zero") {
		t.Errorf("preview %+v", r)
	}
	if s := n.store.Subscriptions(); len(s) != 0 || len(n.ledger.Scopes()) != 0 || len(n.records.all()) != 0 {
		t.Errorf("a preview left something behind: %v", s)
	}
	if topics, _ := n.Topics(w.ctx()); len(topics) != 2 {
		t.Errorf("topics %+v", topics)
	}
	w.wantRows("out")
	if err := n.Preview(w.ctx(), control.Preview{Files: files, Range: "start"}, &result{}); err == nil {
		t.Error("a preview without an end")
	}
	w.run(n, w.options("job", w.divide("")))
	w.wantRows("out", row(1, 200), row(3, 200), row(4, 200))
}

func TestMaxDead(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "clicks", 1)
	w.produce(n, "clicks", `{"id":1,"a":0,"b":1}`, `{"id":2,"a":1,"b":1}`)
	o := w.options("job", w.divide(""))
	o.MaxDead = 0
	r, err := n.Start(w.ctx(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(w.ctx()); err == nil || !strings.Contains(err.Error(), "at most 0 are allowed") {
		t.Errorf("it ended with %v", err)
	}
	if l := w.ledger(n, "out"); l.Read != l.Written+l.Dead {
		t.Errorf("ledger %+v", l)
	}
	o.MaxDead = -1
	w.run(n, o)
	w.wantRows("out", row(2, 200))
	w.wantLetters(n, "out clicks 0 [0] division_by_zero 0")
}

// TestDeadIndex forgets what no lane asks about, and knows what it has
// forgotten.
func TestDeadIndex(t *testing.T) {
	key := deadKey{table: connector.UUID{1}, topic: connector.UUID{2}}
	resume := int64(10)
	x := newDeadIndex(func(ledger.Scope, deadKey) int64 { return resume })
	add := func(offset int64, rows ...int32) {
		x.add(ledger.Scope{}, key, offset, rows, batch.CodeOverflow, "v")
	}
	add(5, 0) // below
	add(10, 2)
	add(10, 1, 2)
	if got := x.list(key, 0); len(got) != 1 || len(got[0].Rows) != 2 || got[0].Rows[0].Index != 1 {
		t.Errorf("listed %+v", got)
	}
	if !x.forgotten(key, 9) || x.forgotten(key, 10) {
		t.Error("what lies below the position is forgotten, and nothing else")
	}
	for i := range int64(3 * pruneLeast) {
		resume = i - 100
		add(i, 0)
		x.prune()
		if x.size > pruneLeast+300 {
			t.Fatalf("%d records are kept of 100 above the position", x.size)
		}
	}
}

// TestLettersAboveAnEarlierPosition: after going back to a checkpoint below the
// ledger's position, letters are read from the topic.
func TestLettersAboveAnEarlierPosition(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "clicks", 1)
	w.produce(n, "clicks", `{"id":1,"a":0,"b":1}`, `{"id":2,"a":0,"b":1}`)
	r := w.run(n, w.options("job", w.divide("")))
	w.close(n)
	n = w.open()
	d, err := n.existingDead(w.ctx(), r.record)
	if err != nil {
		t.Fatal(err)
	}
	tab, _ := n.ledger.Book(ledger.Scope{Job: r.record.ID}).Table("out")
	topic, _ := n.store.Topic("clicks")
	for _, c := range []struct {
		from int64
		want int
	}{{2, 0}, {1, 1}, {0, 2}} {
		got, err := d.Durable(w.ctx(), tab.ID, connector.UUID(topic.ID), map[int32]int64{0: c.from})
		if err != nil || len(got) != c.want {
			t.Errorf("from %d: %v, want %d: %v", c.from, got, c.want, err)
		}
	}
}

// TestForeignRecordsAmongLetters: a topic that holds something else is refused.
func TestForeignRecordsAmongLetters(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "graveyard", 1)
	w.topic(n, "clicks", 1)
	w.produce(n, "graveyard", `{"no":"letter"}`)
	_, err := n.Start(w.ctx(), w.options("job", "SET 'dead.topic' = 'graveyard';\n"+w.divide("")))
	if err == nil || !strings.Contains(err.Error(), "dead letter") {
		t.Errorf("a foreign record: %v", err)
	}
}
