package e2e

import (
	"fmt"
	"testing"
	"time"
)

// killTopics are the topics of testdata/kill.sql with their partitions.
var killTopics = map[string]int{"PushEvent": 3, "CreateEvent": 2, "WatchEvent": 1, "IssueCommentEvent": 1}

// killTables are its tables.
var killTables = []string{"push", "star", "commit_of", "events", "push_minute", "actor_hour"}

// wideRow is a row of actor_hour while it is made.
type wideRow struct {
	pushes, refs, stars, comments int64
	commits, firstComment         *int64
	lastPush, firstRef            *event
}

type actorHour struct {
	actor int64
	hour  time.Time
}

type minuteRow struct {
	pushes, top int64
	commits     *int64
}

func addTo(sum **int64, v *int64) {
	if v == nil {
		return
	}
	if *sum == nil {
		*sum = new(int64)
	}
	**sum += *v
}

// killOutcome is what testdata/kill.sql makes of the log.
func killOutcome(t testing.TB, byTopic map[string][]logged) *outcome {
	o := newOutcome(killTables...)
	wide := map[actorHour]*wideRow{}
	minutes := map[time.Time]*minuteRow{}
	for topic, records := range byTopic {
		for _, e := range decode(t, records) {
			o.event(&e, topic)
			o.wide(&e, topic, wide)
			if topic == "PushEvent" {
				o.pushMinute(&e, minutes)
			}
		}
	}
	for k, r := range wide {
		o.rows["actor_hour"][r.text(k)]++
	}
	for start, r := range minutes {
		o.rows["push_minute"][fmt.Sprintf("window_start=%d window_end=%d pushes=%d commits=%s top_actor=%d",
			micros(start), micros(start.Add(time.Minute)), r.pushes, text(r.commits), r.top)]++
	}
	return o
}

// event is what lanes make of a record.
func (o *outcome) event(e *event, topic string) {
	tables := []string{"events"}
	switch topic {
	case "PushEvent":
		tables = append(tables, "push", "commit_of")
	case "WatchEvent":
		tables = append(tables, "star")
	}
	for _, table := range tables {
		switch {
		case e.broken:
			o.kill(table, e, "malformed_record")
		case e.actorBad && table != "commit_of":
			o.kill(table, e, "type_mismatch")
		default:
			a := o.account(table, topic)
			rows := o.tableRows(table, e)
			for _, r := range rows {
				o.rows[table][r]++
			}
			if len(rows) > 0 {
				a.written++
			} else {
				a.filtered++
			}
		}
	}
}

func (o *outcome) tableRows(table string, e *event) []row {
	switch table {
	case "events":
		return []row{fmt.Sprintf("event_id=%s type=%s actor_id=%d actor_login=%s", e.id(), e.Type, e.actor, e.login)}
	case "push":
		return []row{fmt.Sprintf("event_id=%s actor_id=%d repo_name=%s commits=%s created_at=%d %s",
			e.id(), e.actor, text(e.Repo.Name), text(e.Payload.Size), micros(e.CreatedAt), partitionOf(e.CreatedAt))}
	case "star":
		if e.actor%3 == 0 {
			return nil
		}
		return []row{fmt.Sprintf("event_id=%s actor_id=%d repo_name=%s", e.id(), e.actor, text(e.Repo.Name))}
	}
	var rows []row
	for _, c := range e.Payload.Commits {
		rows = append(rows, fmt.Sprintf("event_id=%s sha=%s author=%s", e.id(), c.Sha, text(c.Author.Name)))
	}
	return rows
}

// wide merges a record into its actor's hour.
func (o *outcome) wide(e *event, topic string, wide map[actorHour]*wideRow) {
	const table = "actor_hour"
	hour := e.CreatedAt.UTC().Truncate(time.Hour)
	switch {
	case e.broken:
		o.kill(table, e, "malformed_record")
		return
	case e.actorBad:
		o.kill(table, e, "type_mismatch")
		return
	case e.late(hour.Add(time.Hour), 10*time.Minute):
		o.account(table, topic).late++
		o.dead[place{table, topic, e.Partition, e.Offset}] = "late"
		return
	}
	o.account(table, topic).folded++
	k := actorHour{e.actor, hour}
	r := wide[k]
	if r == nil {
		r = &wideRow{}
		wide[k] = r
	}
	x := *e
	switch topic {
	case "PushEvent":
		r.pushes++
		addTo(&r.commits, e.Payload.Size)
		if e.Repo.Name != nil && (r.lastPush == nil || r.lastPush.before(e)) {
			r.lastPush = &x
		}
	case "CreateEvent":
		r.refs++
		if e.Repo.Name != nil && (r.firstRef == nil || e.before(r.firstRef)) {
			r.firstRef = &x
		}
	case "WatchEvent":
		r.stars++
	case "IssueCommentEvent":
		r.comments++
		if id := e.Payload.Comment.ID; id != nil && (r.firstComment == nil || *id < *r.firstComment) {
			r.firstComment = id
		}
	}
}

// text is the row in the file. The counts of a branch without rows are NULL.
func (r *wideRow) text(k actorHour) row {
	count := func(n int64) string {
		if n == 0 {
			return "NULL"
		}
		return fmt.Sprint(n)
	}
	repo := func(e *event) string {
		if e == nil {
			return "NULL"
		}
		return text(e.Repo.Name)
	}
	return fmt.Sprintf("actor_id=%d window_start=%d window_end=%d pushes=%s commits=%s last_push_repo=%s refs_made=%s first_ref_repo=%s stars=%s comments=%s first_comment=%s %s",
		k.actor, micros(k.hour), micros(k.hour.Add(time.Hour)), count(r.pushes), text(r.commits), repo(r.lastPush), count(r.refs), repo(r.firstRef),
		count(r.stars), count(r.comments), text(r.firstComment), partitionOf(k.hour))
}

// pushMinute adds a push to its minute.
func (o *outcome) pushMinute(e *event, minutes map[time.Time]*minuteRow) {
	const table = "push_minute"
	start := e.CreatedAt.UTC().Truncate(time.Minute)
	switch {
	case e.broken:
		o.kill(table, e, "malformed_record")
	case e.late(start.Add(time.Minute), 0):
		o.account(table, e.Topic).late++
		o.dead[place{table, e.Topic, e.Partition, e.Offset}] = "late"
	case e.actorBad:
		o.kill(table, e, "type_mismatch")
	default:
		o.account(table, e.Topic).folded++
		r := minutes[start]
		if r == nil {
			r = &minuteRow{}
			minutes[start] = r
		}
		r.pushes++
		addTo(&r.commits, e.Payload.Size)
		r.top = max(r.top, e.actor)
	}
}
