package node

import (
	"slices"
	"testing"

	"github.com/millrace/millrace/jobs/control"
)

// readers are the groups that are subscribed to topics, as topic and group.
func readers(n *Node) []string {
	var out []string
	for _, s := range n.store.Subscriptions() {
		if t, err := n.store.TopicByID(s.Topic); err == nil {
			out = append(out, t.Name+" "+s.Group)
		}
	}
	slices.Sort(out)
	return out
}

// TestLogTopicsByPattern reads all topics that match, a lane each, those as well that
// come while the job runs: it is subscribed to them, and nothing is removed that it has
// not read. Dead letters are replayed by topic.
func TestLogTopicsByPattern(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	sql := func(a string) string {
		return "CREATE TABLE clicks (id BIGINT, a BIGINT, topic STRING METADATA VIRTUAL) WITH ('connector'='log', 'topic-pattern'='clicks[.].*', " +
			"'properties.group.id'='shown', 'scan.startup.mode'='earliest-offset', 'format'='json');\n" +
			w.sink("out") + "INSERT INTO `out` SELECT id + CASE topic WHEN 'clicks.eu' THEN 1000 WHEN 'clicks.us' THEN 2000 ELSE 3000 END, 100 / " + a + " FROM clicks;"
	}
	w.topic(n, "clicks.eu", 1)
	w.topic(n, "clicks.us", 2)
	w.topic(n, "views", 1)
	w.produce(n, "clicks.eu", `{"id":1,"a":1}`, `{"id":2,"a":0}`)
	w.produce(n, "clicks.us", `{"id":3,"a":2}`)
	w.produce(n, "views", `{"id":4,"a":4}`)
	r, err := n.Start(w.ctx(), w.options("job", "SET 'source.monitor-interval' = '20 ms';\n"+sql("a")))
	if err != nil {
		t.Fatal(explain(err))
	}
	w.awaitRead(n, "out", 3)
	if got, want := readers(n), []string{"clicks.eu job/job", "clicks.eu shown", "clicks.us job/job", "clicks.us shown"}; !slices.Equal(got, want) {
		t.Errorf("read by %q, want %q", got, want)
	}
	w.topic(n, "clicks.asia", 1)
	w.produce(n, "clicks.asia", `{"id":5,"a":0}`, `{"id":6,"a":4}`)
	w.awaitRead(n, "out", 5)
	if got := readers(n); !slices.Contains(got, "clicks.asia job/job") || !slices.Contains(got, "clicks.asia shown") {
		t.Errorf("the later topic is read by %q", got)
	}
	wantInput(t, n.DeleteTopic(w.ctx(), control.DeleteTopic{Name: "clicks.asia"}), "is read by job job")
	if err := r.Stop(w.ctx()); err != nil {
		t.Fatal(err)
	}
	w.wantRows("out", row(1001, 100), row(2003, 50), row(3006, 25))
	w.wantLetters(n, "out clicks.asia 0 [0] division_by_zero 0", "out clicks.eu 1 [0] division_by_zero 0")
	if got, want := w.replay(n, "out", sql("(a + 5)")), (control.Replayed{Table: "out", Rows: 2, Written: 2}); got != want {
		t.Errorf("replayed %+v, want %+v", got, want)
	}
	w.wantRows("out", row(1001, 100), row(1002, 20), row(2003, 50), row(3005, 20), row(3006, 25))
	w.ledger(n, "out")
	// Another run goes on where this one stopped, and lets go of what it reads no more.
	w.produce(n, "clicks.us", `{"id":7,"a":1}`)
	r, err = n.Start(w.ctx(), w.options("job", sql("a")))
	if err != nil {
		t.Fatal(explain(err))
	}
	w.awaitRead(n, "out", 6)
	if err := r.Stop(w.ctx()); err != nil {
		t.Fatal(err)
	}
	w.wantRows("out", row(1001, 100), row(1002, 20), row(2003, 50), row(2007, 100), row(3005, 20), row(3006, 25))
}

// A pattern does not make a job read what it writes.
func TestPatternStandsForWhatTheJobWrites(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "clicks", 1)
	w.topic(n, "clicks.out", 1)
	source := "CREATE TABLE clicks (id BIGINT) WITH ('connector'='log', 'topic-pattern'='clicks.*', 'format'='json');\n"
	dead := source + "CREATE TABLE b (id BIGINT) WITH ('connector'='log', 'topic'='other', 'format'='json');\nINSERT INTO b SELECT id FROM clicks;"
	_, err := n.Start(w.ctx(), w.options("clicks", dead))
	wantInput(t, err, "topic clicks.dead")
	sink := source + "CREATE TABLE b (id BIGINT) WITH ('connector'='log', 'topic'='clicks.out', 'format'='json');\nINSERT INTO b SELECT id FROM clicks;"
	_, err = n.Start(w.ctx(), w.options("job", sink))
	wantInput(t, err, "topic clicks.out")
	manifest := "SET 'manifest.topic' = 'clicks.done';\n" + source + w.sink("out") + "INSERT INTO `out` SELECT id, 1 FROM clicks;"
	_, err = n.Start(w.ctx(), w.options("job", manifest))
	wantInput(t, err, "topic clicks.done")
	ready := source + "CREATE TABLE b (id BIGINT, dt STRING) PARTITIONED BY (dt) WITH ('connector'='filesystem', 'path'='" + w.dir + "/b', 'format'='json', " +
		"'sink.partition-commit.policy.kind'='readiness-topic', 'sink.partition-commit.readiness-topic.name'='clicks.ready');\nINSERT INTO b SELECT id, 'a' FROM clicks;"
	_, err = n.Start(w.ctx(), w.options("job", ready))
	wantInput(t, err, "topic clicks.ready")
}

// TestLaterTopicsAreReadWhole: where a table begins is said by its start option; a topic
// that matches later, while the job runs or between two runs, is read from its first
// record on.
func TestLaterTopicsAreReadWhole(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	o := w.options("job", "SET 'source.monitor-interval' = '500 ms';\n"+
		"CREATE TABLE clicks (id BIGINT) WITH ('connector'='log', 'topic-pattern'='clicks[.].*', 'scan.startup.mode'='latest-offset', 'format'='json');\n"+
		w.sink("out")+"INSERT INTO `out` SELECT id, 0 FROM clicks;")
	w.topic(n, "clicks.eu", 1)
	w.produce(n, "clicks.eu", `{"id":1}`)
	later := func(topic string, rows int64, values ...string) {
		t.Helper()
		w.topic(n, topic, 1)
		w.produce(n, topic, values...)
		r, err := n.Start(w.ctx(), o)
		if err != nil {
			t.Fatal(explain(err))
		}
		w.awaitRead(n, "out", rows)
		if err := r.Stop(w.ctx()); err != nil {
			t.Fatal(err)
		}
	}
	r, err := n.Start(w.ctx(), o)
	if err != nil {
		t.Fatal(explain(err))
	}
	w.topic(n, "clicks.asia", 1)
	w.produce(n, "clicks.asia", `{"id":2}`, `{"id":3}`)
	w.awaitRead(n, "out", 2)
	if err := r.Stop(w.ctx()); err != nil {
		t.Fatal(err)
	}
	later("clicks.africa", 4, `{"id":4}`, `{"id":5}`)
	later("clicks.us", 5, `{"id":6}`)
	w.wantRows("out", row(2, 0), row(3, 0), row(4, 0), row(5, 0), row(6, 0))
	w.ledger(n, "out")
}

// A list names its topics: each of them is there, and a preview reads them.
func TestLogTopicsOfAList(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "a", 1)
	sql := "CREATE TABLE s (id BIGINT, a BIGINT) WITH ('connector'='log', 'topic'='a;b', 'scan.startup.mode'='earliest-offset', 'scan.bounded.mode'='latest-offset', 'format'='json');\n" +
		w.sink("out") + "INSERT INTO `out` SELECT id, a FROM s;"
	_, err := n.Start(w.ctx(), w.options("job", sql))
	wantInput(t, err, `"b"`)
	w.topic(n, "b", 1)
	w.produce(n, "a", `{"id":1,"a":1}`)
	w.produce(n, "b", `{"id":2,"a":2}`)
	p := &result{}
	if err := n.Preview(w.ctx(), control.Preview{Files: w.options("job", sql).Files, Range: "0:1", Limit: 10}, p); err != nil || len(p.rows) != 2 {
		t.Errorf("the preview has %d rows, %v", len(p.rows), err)
	}
	w.run(n, w.options("job", sql))
	w.wantRows("out", row(1, 1), row(2, 2))
	if s := n.store.Subscriptions(); len(s) != 0 {
		t.Errorf("a finished job is subscribed: %+v", s)
	}
}
