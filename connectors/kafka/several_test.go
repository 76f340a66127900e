package kafka

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/runtime/connector"
)

// placesOf are partitions as topic/number.
func placesOf(parts []connector.Partition) []string {
	var out []string
	for _, p := range parts {
		out = append(out, fmt.Sprintf("%s/%d", p.Topic, p.ID))
	}
	return out
}

func (w *world) places(s connector.Source) []string {
	w.t.Helper()
	parts, err := s.Partitions(w.ctx)
	check(w.t, err)
	return placesOf(parts)
}

// readTopic reads what a table has of one topic, as a lane does.
func (w *world) readTopic(s connector.Source, topic string) []string {
	w.t.Helper()
	splits := slices.DeleteFunc(w.splits(s), func(x connector.Split) bool { return x.From.Partition.Topic != topic })
	have, err := w.openAt(s, nil, splits...).collect(-1, 100, 1<<20, nil)
	check(w.t, err)
	var out []string
	for _, x := range splits {
		out = append(out, have[x.Number]...)
	}
	return out
}

func TestListOfTopics(t *testing.T) {
	w := newWorld(t)
	for i, name := range []string{"b", "a", "c"} {
		w.topic(name, int32(i+1), nil)
		w.put(name, 0, fmt.Sprintf(`{"id":%d}`, i), fmt.Sprintf(`{"id":%d}`, i+10))
	}
	s := w.several("topic", "b; a", "scan.bounded.mode", scanrange.Latest)
	if have := w.places(s); !reflect.DeepEqual(have, []string{"a/0", "a/1", "b/0"}) {
		t.Errorf("partitions %v", have)
	}
	for topic, want := range map[string][]string{"a": {"0:1", "1:11"}, "b": {"0:0", "1:10"}} {
		if have := w.readTopic(s, topic); !slices.Equal(have, want) {
			t.Errorf("topic %s: %v, want %v", topic, have, want)
		}
	}
	m := w.options("b;nowhere")
	v, _ := w.conn.Spec().Resolve(m)
	if _, err := w.conn.OpenSource(w.ctx, &connector.Table{Name: "t", Columns: idOnly, Options: v}); err == nil || !strings.Contains(err.Error(), "topic nowhere") {
		t.Errorf("a topic that is not there: %v", err)
	}
}

// Topics that match later are read as well; those of Kafka itself never are.
func TestPatternOfTopics(t *testing.T) {
	w := newWorld(t)
	w.topic("clicks.eu", 2, nil)
	w.topic("clicks", 1, nil)
	w.topic("old-clicks.eu", 1, nil)
	w.put("clicks.eu", 1, `{"id":1}`)
	s := w.several("topic-pattern", `clicks\..*`)
	if have := w.places(s); !reflect.DeepEqual(have, []string{"clicks.eu/0", "clicks.eu/1"}) {
		t.Errorf("partitions %v", have)
	}
	w.topic("clicks.us", 1, nil)
	if have := w.places(s); !reflect.DeepEqual(have, []string{"clicks.eu/0", "clicks.eu/1", "clicks.us/0"}) {
		t.Errorf("partitions later %v", have)
	}
	everything := w.several("topic-pattern", ".*", "properties.group.id", "g")
	check(t, everything.MirrorCursor(w.ctx, []connector.Position{{Partition: everything.partsOf(t, "clicks.eu")[1], Offset: 1, LeaderEpoch: -1}}))
	for _, place := range w.places(everything) {
		if strings.HasPrefix(place, "__") {
			t.Errorf("an internal topic is read: %s", place)
		}
	}
	all, err := w.admin.FetchOffsets(w.ctx, "g")
	check(t, err)
	if o, ok := all.Lookup("clicks.eu", 1); !ok || o.At != 1 {
		t.Errorf("the group is at %+v", o)
	}
	m := w.options("")
	delete(m, "topic")
	m["topic-pattern"] = "clikcs.*"
	v, _ := w.conn.Spec().Resolve(m)
	if _, err := w.conn.OpenSource(w.ctx, &connector.Table{Name: "t", Columns: idOnly, Options: v}); err == nil || !strings.Contains(err.Error(), "none of the cluster's topics matches 'topic-pattern' = 'clikcs.*'") {
		t.Errorf("a pattern for nothing: %v", err)
	}
}

func (s *several) partsOf(t *testing.T, topic string) []connector.Partition {
	t.Helper()
	parts, err := s.Partitions(t.Context())
	check(t, err)
	return slices.DeleteFunc(parts, func(p connector.Partition) bool { return p.Topic != topic })
}

// A topic that goes, or comes again, is its own lane's trouble.
func TestOneOfSeveralTopicsGoes(t *testing.T) {
	for _, again := range []bool{false, true} {
		w := newWorld(t)
		w.topic("a", 1, nil)
		w.topic("b", 1, nil)
		w.put("a", 0, `{"id":1}`)
		w.put("b", 0, `{"id":2}`)
		s := w.several("topic-pattern", "[ab]", "scan.bounded.mode", scanrange.Latest)
		saved := []connector.Position{
			{Partition: s.partsOf(t, "b")[0], Offset: 1, LeaderEpoch: -1},
			{Partition: s.partsOf(t, "a")[0], Offset: 1, LeaderEpoch: -1},
		}
		check(t, w.cluster.DeleteTopic("a"))
		if again {
			w.topic("a", 1, nil)
		}
		if have := w.places(s); !slices.Equal(have, []string{"b/0"}) {
			t.Errorf("again %t: partitions %v", again, have)
		}
		if have := w.readTopic(s, "b"); !slices.Equal(have, []string{"0:2"}) {
			t.Errorf("again %t: %v of the other topic", again, have)
		}
		fresh := w.several("topic-pattern", "[ab]")
		for name, x := range map[string]*several{"the same run": s, "the next run": fresh} {
			errs, err := x.Check(w.ctx, saved)
			check(t, err)
			if errs[0] != nil {
				t.Errorf("%s: the other topic: %v", name, errs[0])
			}
			if m := mismatchOf(t, errs[1]); !m.Recreated || m.Position != saved[1] {
				t.Errorf("%s: %+v", name, m)
			}
		}
	}
}
