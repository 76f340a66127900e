package topicset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/connector"
)

// topic is a source that answers with its name and what it was asked.
type topic struct {
	name    string
	fail    error
	cursors []connector.Position
}

func (m *topic) Partitions(context.Context) ([]connector.Partition, error) { return nil, nil }

func (m *topic) Start(_ context.Context, parts []connector.Partition) ([]connector.Position, error) {
	var out []connector.Position
	for _, p := range parts {
		out = append(out, connector.Position{Partition: p, Offset: int64(p.ID) + 100*int64(m.name[0])})
	}
	return out, m.fail
}

func (m *topic) End(_ context.Context, parts []connector.Partition) ([]int64, error) {
	return make([]int64, len(parts)), m.fail
}

func (m *topic) Check(_ context.Context, saved []connector.Position) ([]error, error) {
	out := make([]error, len(saved))
	for i, p := range saved {
		out[i] = fmt.Errorf("%s/%d", m.name, p.Partition.ID)
	}
	return out, m.fail
}

func (m *topic) ExplainStart(parts []connector.Partition) []string {
	return slices.Repeat([]string{m.name}, len(parts))
}

func (m *topic) MirrorCursor(_ context.Context, next []connector.Position) error {
	m.cursors = append(m.cursors, next...)
	return m.fail
}

func (m *topic) Open(context.Context, []connector.Split, []int, func()) (connector.Reader, error) {
	return nil, errors.New("opened " + m.name)
}

func (m *topic) Close() error { return nil }

func part(name string, id int32) connector.Partition {
	return connector.Partition{TopicID: connector.UUID{name[0]}, Topic: name, ID: id}
}

// Answers come in the order of the questions, whatever topics they are about.
func TestAnswersInOrder(t *testing.T) {
	members := map[string]*topic{"a": {name: "a"}, "b": {name: "b"}}
	s := Set[*topic]{Of: func(name string) *topic { return members[name] }}
	asked := []connector.Partition{part("b", 1), part("a", 0), part("b", 0), part("a", 7)}
	start, err := s.Start(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{9801, 9700, 9800, 9707} {
		if start[i].Partition != asked[i] || start[i].Offset != want {
			t.Errorf("%d: starts at %+v, want offset %d of %+v", i, start[i], want, asked[i])
		}
	}
	errs, err := s.Check(t.Context(), start)
	if err != nil || fmt.Sprint(errs) != "[b/1 a/0 b/0 a/7]" {
		t.Errorf("checked %v, %v", errs, err)
	}
	if got := s.ExplainStart(asked); !slices.Equal(got, []string{"b", "a", "b", "a"}) {
		t.Errorf("explained %v", got)
	}
	// One topic's failure does not keep the others' positions from being shown.
	members["b"].fail = errors.New("no broker")
	if err := s.MirrorCursor(t.Context(), start); !errors.Is(err, members["b"].fail) {
		t.Errorf("mirrored: %v", err)
	}
	if got := len(members["a"].cursors); got != 2 {
		t.Errorf("%d positions of the other topic", got)
	}
	if _, err := s.End(t.Context(), asked); !errors.Is(err, members["b"].fail) {
		t.Errorf("ends: %v", err)
	}
}

// A reader is of one topic.
func TestOpen(t *testing.T) {
	s := Set[*topic]{Of: func(name string) *topic { return &topic{name: name} }}
	split := func(name string) connector.Split {
		return connector.Split{From: connector.Position{Partition: part(name, 0)}}
	}
	if _, err := s.Open(t.Context(), []connector.Split{split("b"), split("b")}, nil, nil); err == nil || err.Error() != "opened b" {
		t.Errorf("one topic: %v", err)
	}
	if _, err := s.Open(t.Context(), []connector.Split{split("a"), split("b")}, nil, nil); err == nil || err.Error() != "BUG: a reader is asked for topics a and b" {
		t.Errorf("two topics: %v", err)
	}
}

func TestListing(t *testing.T) {
	spec := &connector.Spec{Name: "x", Options: []connector.Option{DiscoveryOption("x")}}
	for interval, want := range map[string][3]int{"": {1, 2, 3}, "0": {1, 1, 1}, "1 h": {1, 1, 3}} {
		m := map[string]string{"connector": "x"}
		if interval != "" {
			m[keyDiscovery] = interval
		}
		v, errs := spec.Resolve(m)
		if len(errs) > 0 {
			t.Fatal(errs[0])
		}
		var l Listing
		there := 0
		list := func() int {
			there++
			out, err := l.List(v, func() ([]connector.Partition, error) {
				var out []connector.Partition
				for i := range there {
					out = append(out, part("a", int32(i)))
				}
				return out, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return len(out)
		}
		first, second := list(), list()
		l.asked = time.Now().Add(-2 * time.Hour)
		if have := [3]int{first, second, list()}; have != want {
			t.Errorf("interval %q: %v partitions, want %v", interval, have, want)
		}
	}
	var l Listing
	v, _ := spec.Resolve(map[string]string{"connector": "x", keyDiscovery: "0"})
	broken := errors.New("no broker")
	if _, err := l.List(v, func() ([]connector.Partition, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("a failed list: %v", err)
	}
	if out, err := l.List(v, func() ([]connector.Partition, error) { return []connector.Partition{part("a", 0)}, nil }); err != nil || len(out) != 1 {
		t.Errorf("after a failed one: %v, %v", out, err)
	}
}
