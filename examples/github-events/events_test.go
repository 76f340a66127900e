package githubevents

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// generated is what a reader of the JSON sees.
type generated struct {
	ID        string           `json:"id"`
	Type      string           `json:"type"`
	Actor     struct{ ID any } `json:"actor"`
	CreatedAt time.Time        `json:"created_at"`
}

func TestGenerate(t *testing.T) {
	for _, n := range []int{0, 1, 800, 5003} {
		ids := map[string]bool{}
		perTopic := map[string]int{}
		var last time.Time
		count := 0
		err := Generate(Options{Events: n}, func(e Event) error {
			var g generated
			if err := json.Unmarshal(e.Value, &g); err != nil {
				t.Fatalf("event %d: %v", count, err)
			}
			if ids[g.ID] {
				t.Fatalf("event %d: id %s twice", count, g.ID)
			}
			ids[g.ID] = true
			if g.Type != e.Topic || g.CreatedAt.UnixMilli() != e.TimestampMillis {
				t.Fatalf("event %d: %+v is not %s at %d", count, g, e.Topic, e.TimestampMillis)
			}
			if h := g.CreatedAt.Hour(); h < 6 || h > 9 || g.CreatedAt.Before(last.Add(-30*time.Second)) {
				t.Fatalf("event %d at %v after %v: disorder beyond the watermark's 30 s", count, g.CreatedAt, last)
			}
			if g.CreatedAt.After(last) {
				last = g.CreatedAt
			}
			perTopic[e.Topic]++
			count++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if count != n {
			t.Errorf("made %d events of %d", count, n)
		}
		if n >= 800 && len(perTopic) != len(Topics) {
			t.Errorf("%d of %d topics have events", len(perTopic), len(Topics))
		}
	}
}

func TestGenerateSpoils(t *testing.T) {
	counts := map[Spoilt]int{}
	err := Generate(Options{Events: 4000, Spoil: true}, func(e Event) error {
		counts[e.Spoilt]++
		var g generated
		err := json.Unmarshal(e.Value, &g)
		switch e.Spoilt {
		case Broken:
			if err == nil {
				t.Errorf("a broken event parses: %s", e.Value)
			}
		case WrongType:
			if err != nil || g.Actor.ID != "unknown" {
				t.Errorf("a wrong type: %v, %v", g.Actor.ID, err)
			}
		case Late:
			if got := time.Duration(e.TimestampMillis-g.CreatedAt.UnixMilli()) * time.Millisecond; err != nil || got != 3*time.Hour {
				t.Errorf("a late event is %v late (%v)", got, err)
			}
		default:
			if err != nil {
				t.Errorf("a sound event: %v", err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Spoilt{Broken, WrongType, Late} {
		if counts[s] < 5 {
			t.Errorf("kind %d of fault came %d times", s, counts[s])
		}
	}
}

func TestGenerateIsDeterministic(t *testing.T) {
	var runs [2]bytes.Buffer
	for i := range runs {
		if err := Generate(Options{Events: 900, Spoil: true}, func(e Event) error {
			runs[i].WriteString(e.Topic)
			runs[i].Write(e.Value)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(runs[0].Bytes(), runs[1].Bytes()) {
		t.Error("two runs differ")
	}
}

func TestEveryTopicHasItsDDL(t *testing.T) {
	files, err := content.ReadDir("ddl")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		b, err := content.ReadFile("ddl/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	for _, topic := range Topics {
		if !strings.Contains(all.String(), "CREATE TABLE `"+topic+"`") {
			t.Errorf("no DDL for topic %s", topic)
		}
	}
	if len(files) != len(Topics) {
		t.Errorf("%d DDL files for %d topics", len(files), len(Topics))
	}
}
