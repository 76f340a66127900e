package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// logged is a record as it stands in the log.
type logged struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	Offset    int64   `json:"offset"`
	Value     *string `json:"value"`
	Base64    []byte  `json:"value_base64"`
	Key       *string `json:"key"`
}

// bytes is the record's value.
func (l *logged) bytes() []byte {
	if l.Value != nil {
		return []byte(*l.Value)
	}
	return l.Base64
}

// consume reads a whole topic by the command line, each partition in offset
// order, and checks that offsets have no gaps.
func (w *world) consume(topic string) []logged {
	w.t.Helper()
	r := w.run("topics", "consume", topic, "-o", "jsonl").must(w.t, 0)
	var out []logged
	next := map[int32]int64{}
	sc := bufio.NewScanner(strings.NewReader(r.stdout))
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		var l logged
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			w.t.Fatalf("topics consume %s: %v in %s", topic, err, sc.Text())
		}
		// A kill in the middle of a write leaves a torn group, whose offsets recovery
		// jumps over: they might have been acknowledged.
		if l.Offset < next[l.Partition] || l.Offset > next[l.Partition] && !w.killed {
			w.t.Fatalf("topic %s %d: offset %d follows %d", topic, l.Partition, l.Offset, next[l.Partition]-1)
		}
		next[l.Partition] = l.Offset + 1
		out = append(out, l)
	}
	if err := sc.Err(); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// event is a GitHub event as encoding/json reads it.
type event struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	RawActor  json.RawMessage `json:"actor"`
	Repo      struct{ Name *string }
	CreatedAt time.Time `json:"created_at"`
	Payload   struct {
		Size    *int64
		Commits []struct {
			Sha    string
			Author struct{ Name *string }
		}
		Comment struct{ ID *int64 }
	}

	logged
	// actor is NULL-free in the data; actorBad says that it is no number.
	actor    int64
	login    string
	actorBad bool
	// broken: no JSON at all; nothing else is set.
	broken bool
	// watermark is the partition's before this row, in ms; very small before
	// the first.
	watermark int64
}

const noWatermark = -1 << 62

// decode reads a topic's records, with the watermark of each partition before
// each row: the maximum of created_at - 30 s over all earlier rows.
func decode(t testing.TB, records []logged) []event {
	t.Helper()
	out := make([]event, 0, len(records))
	marks := map[int32]int64{}
	for _, l := range records {
		mark, ok := marks[l.Partition]
		if !ok {
			mark = noWatermark
		}
		e := event{logged: l, watermark: mark}
		if !json.Valid(l.bytes()) {
			e.broken = true
			out = append(out, e)
			continue
		}
		if err := json.Unmarshal(l.bytes(), &e); err != nil {
			t.Fatalf("topic %s %d:%d: %v", l.Topic, l.Partition, l.Offset, err)
		}
		var actor struct {
			ID    json.RawMessage
			Login string
		}
		if err := json.Unmarshal(e.RawActor, &actor); err != nil {
			t.Fatal(err)
		}
		e.login = actor.Login
		e.actorBad = json.Unmarshal(actor.ID, &e.actor) != nil
		marks[l.Partition] = max(mark, e.CreatedAt.UnixMilli()-30_000)
		out = append(out, e)
	}
	return out
}

// late reports whether the row comes too late for a window that ends at end.
func (e *event) late(end time.Time, lateness time.Duration) bool {
	return e.watermark >= end.UnixMilli()-1+lateness.Milliseconds()
}

// before is the order of FIRST_VALUE and LAST_VALUE within one branch: row
// time, partition, offset.
func (e *event) before(o *event) bool {
	if !e.CreatedAt.Equal(o.CreatedAt) {
		return e.CreatedAt.Before(o.CreatedAt)
	}
	if e.Partition != o.Partition {
		return e.Partition < o.Partition
	}
	return e.Offset < o.Offset
}

// id is the event's number as the SQL casts it.
func (e *event) id() string { return e.ID }

// text writes NULL for nil.
func text[T any](v *T) string {
	if v == nil {
		return "NULL"
	}
	return fmt.Sprint(*v)
}

func micros(t time.Time) int64 { return t.UnixMicro() }

// microsText gives the text of a timestamp as the oracle does, and other texts as they are.
func microsText(s string) string {
	if at, err := time.Parse("2006-01-02 15:04:05.999", s); err == nil {
		return fmt.Sprint(micros(at))
	}
	return s
}

// partitionOf is the hourly table partition of a time.
func partitionOf(t time.Time) string {
	return "dt=" + t.UTC().Format("2006-01-02") + " hr=" + t.UTC().Format("15")
}

// account is what must stand in the ledger and in the dead letters for one
// (table, topic).
type account struct {
	read, written, folded, filtered, dead, late int64
}

// place names a dead record: table, topic, partition, offset.
type place struct {
	table, topic string
	partition    int32
	offset       int64
}

// outcome is what must come out of a job.
type outcome struct {
	rows     map[string]multiset
	accounts map[string]map[string]*account // by table and topic
	dead     map[place]string               // reason
}

func newOutcome(tables ...string) *outcome {
	o := &outcome{rows: map[string]multiset{}, accounts: map[string]map[string]*account{}, dead: map[place]string{}}
	for _, t := range tables {
		o.rows[t] = multiset{}
		o.accounts[t] = map[string]*account{}
	}
	return o
}

func (o *outcome) account(table, topic string) *account {
	a := o.accounts[table][topic]
	if a == nil {
		a = &account{}
		o.accounts[table][topic] = a
	}
	a.read++
	return a
}

// kill marks a row as dead for a table.
func (o *outcome) kill(table string, e *event, reason string) {
	o.account(table, e.Topic).dead++
	o.dead[place{table, e.Topic, e.Partition, e.Offset}] = reason
}
