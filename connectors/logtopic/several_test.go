package logtopic

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

// tableOver is a table over a list or a pattern of topics.
func (w *logWorld) tableOver(cols []connector.Column, with ...string) *connector.Table {
	w.t.Helper()
	m := map[string]string{"connector": "log", "scan.startup.mode": scanrange.Earliest, "scan.bounded.mode": scanrange.Latest, "format": "json"}
	for i := 0; i < len(with); i += 2 {
		m[with[i]] = with[i+1]
	}
	v, errs := w.conn.Spec().Resolve(m)
	if len(errs) > 0 {
		w.t.Fatal(errs[0])
	}
	return &connector.Table{Name: "t", Columns: cols, Options: v}
}

func (w *logWorld) places(s connector.Source) []string {
	w.t.Helper()
	parts, err := s.Partitions(ctx)
	check(w.t, err)
	var out []string
	for _, p := range parts {
		out = append(out, fmt.Sprintf("%s/%d", p.Topic, p.ID))
	}
	return out
}

func partsOf(t *testing.T, s connector.Source, topic string) []connector.Partition {
	t.Helper()
	parts, err := s.Partitions(ctx)
	check(t, err)
	return slices.DeleteFunc(parts, func(p connector.Partition) bool { return p.Topic != topic })
}

// readTopic reads what a table has of one topic, as a lane does.
func (w *logWorld) readTopic(s connector.Source, topic string) []string {
	w.t.Helper()
	parts := partsOf(w.t.(*testing.T), s, topic)
	from, err := s.Start(ctx, parts)
	check(w.t, err)
	ends, err := s.End(ctx, parts)
	check(w.t, err)
	var splits []connector.Split
	for i := range parts {
		splits = append(splits, connector.Split{Number: int32(i), From: from[i], End: ends[i]})
	}
	r, err := s.Open(ctx, splits, nil, func() {})
	check(w.t, err)
	defer r.Close()
	have, err := collect(w.t, r.(*reader), 100, 1<<20, nil)
	check(w.t, err)
	var out []string
	for i := range splits {
		out = append(out, have[int32(i)]...)
	}
	return out
}

var idAndTopic = append(slices.Clone(idOnly), connector.Column{Field: field("topic", types.NewString().WithNullable(false)), Metadata: "topic"})

func TestListOfTopics(t *testing.T) {
	w := newWorld(t)
	for i, name := range []string{"b", "a", "c"} {
		tp := w.topic(name, i+1, nil)
		w.put(tp.Partitions[0], record.None, fmt.Sprintf(`{"id":%d}`, i), fmt.Sprintf(`{"id":%d}`, i+10))
	}
	s := w.source(w.tableOver(idAndTopic, "topic", "b; a"))
	if have := w.places(s); !slices.Equal(have, []string{"a/0", "a/1", "b/0"}) {
		t.Errorf("partitions %v", have)
	}
	for topic, want := range map[string][]string{"a": {"0:1,a", "1:11,a"}, "b": {"0:0,b", "1:10,b"}} {
		if have := w.readTopic(s, topic); !slices.Equal(have, want) {
			t.Errorf("topic %s: %v, want %v", topic, have, want)
		}
	}
	if _, err := w.conn.OpenSource(ctx, w.tableOver(idOnly, "topic", "b;nowhere")); !errors.Is(err, topiclog.ErrTopicNotFound) || !strings.Contains(err.Error(), "topic nowhere") {
		t.Errorf("a topic that is not there: %v", err)
	}
	if _, err := w.conn.OpenSink(ctx, w.tableOver(idOnly, "topic", "a;b"), connector.Owner{}); err == nil || !strings.Contains(err.Error(), "a table that is written has one topic") {
		t.Errorf("written: %v", err)
	}
}

// Topics that match later are read as well; those of Millrace itself never are.
func TestPatternOfTopics(t *testing.T) {
	w := newWorld(t)
	eu := w.topic("clicks.eu", 2, nil)
	w.topic("clicks", 1, nil)
	w.topic("old-clicks.eu", 1, nil)
	w.topic("__millrace_ledger", 1, nil)
	w.put(eu.Partitions[1], record.None, `{"id":1}`)
	s := w.source(w.tableOver(idOnly, "topic-pattern", `clicks\..*`))
	if have := w.places(s); !slices.Equal(have, []string{"clicks.eu/0", "clicks.eu/1"}) {
		t.Errorf("partitions %v", have)
	}
	w.put(w.topic("clicks.us", 1, nil).Partitions[0], record.None, `{"id":2}`)
	if have := w.places(s); !slices.Equal(have, []string{"clicks.eu/0", "clicks.eu/1", "clicks.us/0"}) {
		t.Errorf("partitions later %v", have)
	}
	if have := w.readTopic(s, "clicks.us"); !slices.Equal(have, []string{"0:2"}) {
		t.Errorf("the later topic: %v", have)
	}
	everything := w.source(w.tableOver(idOnly, "topic-pattern", ".*", "properties.group.id", "g"))
	if have := w.places(everything); slices.Contains(have, "__millrace_ledger/0") || len(have) != 5 {
		t.Errorf("everything is %v", have)
	}
	at := []connector.Position{{Partition: partsOf(t, everything, "clicks.us")[0], Offset: 1}, {Partition: partsOf(t, everything, "clicks.eu")[1], Offset: 1}}
	check(t, everything.(connector.CursorMirror).MirrorCursor(ctx, at), everything.(connector.Holder).Hold(ctx, "job", at))
	if c, h := w.store.Cursors("g"), w.store.Holds(); len(c) != 2 || len(h) != 2 || h[0].Name != "job" {
		t.Errorf("cursors %+v, holds %+v", c, h)
	}
	if _, err := w.conn.OpenSource(ctx, w.tableOver(idOnly, "topic-pattern", "clikcs.*")); err == nil || !strings.Contains(err.Error(), "none of the log's topics matches 'topic-pattern' = 'clikcs.*'") {
		t.Errorf("a pattern for nothing: %v", err)
	}
}

// A topic that goes, or comes again, is its own lane's trouble.
func TestOneOfSeveralTopicsGoes(t *testing.T) {
	for _, again := range []bool{false, true} {
		w := newWorld(t)
		w.put(w.topic("a", 1, nil).Partitions[0], record.None, `{"id":1}`)
		w.put(w.topic("b", 1, nil).Partitions[0], record.None, `{"id":2}`)
		s := w.source(w.tableOver(idOnly, "topic-pattern", "[ab]"))
		saved := []connector.Position{{Partition: partsOf(t, s, "b")[0], Offset: 1}, {Partition: partsOf(t, s, "a")[0], Offset: 1}}
		check(t, w.store.DeleteTopic(ctx, "a", false))
		if again {
			w.topic("a", 1, nil)
		}
		if have := w.places(s); !slices.Equal(have, []string{"b/0"}) {
			t.Errorf("again %t: partitions %v", again, have)
		}
		if have := w.readTopic(s, "b"); !slices.Equal(have, []string{"0:2"}) {
			t.Errorf("again %t: %v of the other topic", again, have)
		}
		fresh := w.source(w.tableOver(idOnly, "topic-pattern", "[ab]"))
		for name, x := range map[string]connector.Source{"the same run": s, "the next run": fresh} {
			errs, err := x.Check(ctx, saved)
			check(t, err)
			if errs[0] != nil {
				t.Errorf("%s: the other topic: %v", name, errs[0])
			}
			var m *connector.MismatchError
			if !errors.As(errs[1], &m) || !m.Recreated || m.Position != saved[1] {
				t.Errorf("%s: %v", name, errs[1])
			}
		}
	}
}
