package node

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

// errEnough ends a scan.
var errEnough = errors.New("enough")

// Dead implements control.API. Entries of one record are merged, a failed
// replay supersedes the entry it replayed.
func (n *Node) Dead(ctx context.Context, req control.DeadQuery, f func(*control.DeadRecord) error) error {
	if req.Job != "" {
		if _, ok := n.records.find(req.Job); !ok {
			var names []string
			for _, r := range n.records.all() {
				names = append(names, r.Name)
			}
			return notFound("job", req.Job, names)
		}
	}
	all := n.records.all()
	slices.SortFunc(all, func(a, b jobRecord) int { return strings.Compare(a.Name, b.Name) })
	if req.Table != "" {
		if err := n.checkTable(all, req.Table); err != nil {
			return err
		}
	}
	left := req.Limit
	for _, rec := range all {
		if req.Job != "" && rec.Name != req.Job {
			continue
		}
		d, err := n.existingDead(ctx, rec)
		if err != nil {
			return err
		}
		if d == nil {
			continue
		}
		list, err := n.deadRecords(ctx, rec, d)
		if err != nil {
			return err
		}
		for i := range list {
			r := &list[i]
			if req.Table != "" && r.Table != req.Table || req.Reason != "" && r.Reason != req.Reason {
				continue
			}
			if err := f(r); err != nil {
				return err
			}
			if left--; req.Limit > 0 && left <= 0 {
				return nil
			}
		}
	}
	return nil
}

// checkTable is nil if one of the jobs has the table.
func (n *Node) checkTable(jobs []jobRecord, table string) error {
	var names []string
	for _, rec := range jobs {
		for _, t := range n.ledger.Book(ledger.Scope{Job: rec.ID, Generation: rec.Generation}).Tables() {
			if name := shownTable(t); name == table {
				return nil
			} else if !t.Exchange {
				names = append(names, name)
			}
		}
	}
	return notFound("table", table, names)
}

// existingDead is the dead-letter topic of a job, nil when it has none yet.
func (n *Node) existingDead(ctx context.Context, rec jobRecord) (*deadTopic, error) {
	name := n.deadName(rec)
	if _, err := n.store.Topic(name); errors.Is(err, topiclog.ErrTopicNotFound) {
		return nil, nil
	}
	return n.deadLetters(ctx, name)
}

// deadIdentity is a dead record of a table.
type deadIdentity struct {
	table, topic string
	partition    int32
	offset       int64
}

// deadRecords are the merged dead letters of a job, in the order in which they
// first came.
func (n *Node) deadRecords(ctx context.Context, rec jobRecord, d *deadTopic) ([]control.DeadRecord, error) {
	done := n.replayDone(rec)
	scope := ledger.Scope{Job: rec.ID, Generation: rec.Generation}
	book := n.ledger.Book(scope)
	shown := map[string]string{} // by table id
	for _, t := range book.Tables() {
		shown[t.ID.String()] = shownTable(t)
	}
	at := map[deadIdentity]int{}
	var out []control.DeadRecord
	err := d.each(ctx, func(r *record.Record, v *deadValue) error {
		if !v.of(scope) {
			return nil // the topic may be shared, and outlives generations
		}
		key, err := v.key()
		if err != nil {
			return err
		}
		id := deadIdentity{v.TableID, v.TopicID, v.Partition, v.Offset}
		i, seen := at[id]
		if !seen {
			i = len(out)
			at[id] = i
			table := v.Table
			if name, ok := shown[v.TableID]; ok {
				table = name
			}
			out = append(out, control.DeadRecord{Table: table, Topic: v.Topic, Partition: v.Partition, Offset: v.Offset})
		}
		x := &out[i]
		if !seen || v.Attempts > x.Attempts {
			x.Reason, x.Column, x.Message, x.Attempts, x.Time = v.Reason, v.Column, v.Message, v.Attempts, time.UnixMilli(r.Timestamp)
			x.Value, x.Rows = v.Value, slices.Clone(v.Rows)
		} else {
			for _, row := range v.Rows {
				if at, found := slices.BinarySearch(x.Rows, row); !found {
					x.Rows = slices.Insert(x.Rows, at, row)
				}
			}
		}
		// A failed replay has an entry behind the one that it disposed of.
		x.Replayed = r.Offset < done[replayKey{key.table, replaySource(d.topic.ID, v.Topic)}]
		return nil
	})
	return out, err
}
