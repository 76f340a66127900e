package node

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/google/uuid"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/spec"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/storage/topiclog"
)

// A replay is a bounded run of the job's own lanes for one table, whose
// source is the dead-letter topic: position, artefacts and skip set are those
// of a lane, so that it is exactly once after any crash, and goes on where the
// last replay ended. Its account stands under the dead-letter topic: the rows
// it wrote are the table's `replayed`.

// Replay implements control.API.
func (n *Node) Replay(ctx context.Context, req control.Replay) (control.Replayed, error) {
	out := control.Replayed{Table: req.Table}
	rec, err := n.jobOfTable(req.Table, req.Job)
	if err != nil {
		return out, err
	}
	done, err := n.reserve(rec.Name)
	if err != nil {
		return out, err
	}
	defer done()
	dead, err := n.existingDead(ctx, rec)
	if err != nil {
		return out, err
	}
	if dead == nil {
		return out, nil
	}
	g, err := n.replayGraph(rec, req, dead)
	if err != nil {
		return out, err
	}
	before, err := n.replayCounts(rec, dead, req.Table)
	if err != nil {
		return out, err
	}
	manifest, err := n.manifestTopic(ctx, g.Options[manifestKey])
	if err != nil {
		return out, err
	}
	run, err := engine.Start(ctx, g, engine.Deps{
		Ledger: n.ledger, Scope: ledger.Scope{Job: rec.ID, Generation: rec.Generation},
		DataDirectory: n.records.directory, NewUUID: newUUID, DeadLetters: &replayDead{dead: dead},
		NewEnds: true,
		// Nobody else will close the partitions of a job that has ended.
		LeaveCloses: !rec.Finished,
		Manifest:    manifest,
		Readiness:   n.readinessTopic,
		Keyed:       n.keyedStages(checkpoint.NewMemStore().Handle(), 0), Log: n.opts.Log,
	})
	if err != nil {
		return out, err
	}
	err = run.Wait(ctx)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(err, run.Stop(context.Background()))
	}
	if err != nil {
		return out, err
	}
	after, err := n.replayCounts(rec, dead, req.Table)
	if err != nil {
		return out, err
	}
	out.Rows = after.Read - before.Read
	out.Written = after.Written - before.Written
	out.Dead = after.Dead.Sum() - before.Dead.Sum()
	out.Filtered = after.Filtered.Sum() - before.Filtered.Sum()
	return out, nil
}

// reserve keeps a job from being started or replayed twice, until done.
func (n *Node) reserve(job string) (done func(), err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.busy(job); err != nil {
		return nil, err
	}
	n.replaying[job] = true
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.replaying, job)
	}, nil
}

// busy is why a job can be neither started nor replayed now; mu is held.
func (n *Node) busy(job string) error {
	switch {
	case n.running[job] != nil:
		return &control.Error{Kind: "input", Message: fmt.Sprintf("job %s is running", job), Hint: "stop it first: a table has one writer"}
	case n.replaying[job]:
		return &control.Error{Kind: "input", Message: fmt.Sprintf("dead letters of job %s are being replayed", job), Hint: "wait for it: a table has one writer"}
	}
	return nil
}

// jobOfTable finds the job that writes a table.
func (n *Node) jobOfTable(table, job string) (jobRecord, error) {
	var found []jobRecord
	var tables, jobs []string
	for _, rec := range n.records.all() {
		jobs = append(jobs, rec.Name)
		if job != "" && rec.Name != job {
			continue
		}
		for _, t := range n.ledger.Book(ledger.Scope{Job: rec.ID, Generation: rec.Generation}).Tables() {
			if t.Exchange {
				continue
			}
			tables = append(tables, t.Name)
			if t.Name == table {
				found = append(found, rec)
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if job != "" && tables == nil {
			return jobRecord{}, notFound("job", job, jobs)
		}
		return jobRecord{}, notFound("table", table, tables)
	}
	return jobRecord{}, &control.Error{Kind: "input", Message: fmt.Sprintf("%d jobs have a table %s", len(found), table), Hint: "say which: --job"}
}

// replayCounts are the table's counts under the dead-letter topic.
func (n *Node) replayCounts(rec jobRecord, dead *deadTopic, table string) (ledger.Counts, error) {
	var out ledger.Counts
	for _, row := range n.ledger.Book(ledger.Scope{Job: rec.ID, Generation: rec.Generation}).Rows() {
		if row.Table.Name == table && row.TopicName == dead.topic.Name {
			out.Add(&row.Counts)
		}
	}
	return out, nil
}

// replaySource names what a replay reads for one topic: the dead letters of
// that topic's records. Each has positions of its own, as a table may be fed by
// many topics.
func replaySource(dead topiclog.UUID, topic string) connector.UUID {
	return connector.UUID(uuid.NewSHA1(uuid.UUID(dead), []byte(topic)))
}

// replayKey is a table and what a replay reads for it.
type replayKey struct{ table, source connector.UUID }

// replayDone are, by table and source, the ends of what replays have disposed
// of.
func (n *Node) replayDone(rec jobRecord) map[replayKey]int64 {
	out := map[replayKey]int64{}
	for _, c := range n.ledger.Book(ledger.Scope{Job: rec.ID, Generation: rec.Generation}).Cursors(connector.UUID{}) {
		out[replayKey{c.Output, c.Topic}] = c.Offset
	}
	return out
}

// replayGraph is the part of the job that leads to one table, with the
// dead-letter topic in place of the topics.
func (n *Node) replayGraph(rec jobRecord, req control.Replay, dead *deadTopic) (*graph.Job, error) {
	files, set := req.Files, merged(rec.Set, req.Set)
	if len(files) == 0 {
		files = rec.Files
	}
	c := spec.Compile(files, spec.Vars{Set: set, LookupEnv: os.LookupEnv, ReadFile: os.ReadFile},
		compile.Options{Registry: n.registry, Functions: n.opts.Functions.Extra(), Mode: compile.ModeRun, JobName: rec.Name})
	if err := c.Err(); err != nil {
		return nil, err
	}
	g := c.Unit.Job
	target := -1
	for _, node := range g.Nodes {
		if s, ok := node.Op.(*graph.Sink); ok && s.Table.Name == req.Table {
			target = int(node.ID)
		}
	}
	if target < 0 {
		return nil, notFound("table", req.Table, nil)
	}
	keep := make([]bool, len(g.Nodes))
	keep[target] = true
	for i := target; i >= 0; i-- {
		if !keep[i] {
			continue
		}
		if _, isExchange := g.Nodes[i].Op.(*graph.Exchange); isExchange {
			return nil, &control.Error{Kind: "input", Message: fmt.Sprintf(
				"not_yet: table %s is built by a keyed stage: its windows are closed, and a replay cannot add to them", req.Table)}
		}
		for _, in := range g.Nodes[i].Inputs {
			keep[in] = true
		}
	}
	out := &graph.Job{Name: g.Name, Bounded: true, Batch: g.Batch, Zone: g.Zone, Options: g.Options}
	renumber := map[graph.NodeID]graph.NodeID{}
	for i, node := range g.Nodes {
		if !keep[i] {
			continue
		}
		x := *node
		x.ID = graph.NodeID(len(out.Nodes))
		renumber[node.ID] = x.ID
		x.Inputs = nil
		for _, in := range node.Inputs {
			x.Inputs = append(x.Inputs, renumber[in])
		}
		if s, ok := node.Op.(*graph.Source); ok {
			r := *s
			r.Connector = &deadConnector{SourceConnector: s.Connector, dead: dead, table: req.Table, scope: ledger.Scope{Job: rec.ID, Generation: rec.Generation}}
			x.Op = &r
		}
		out.Nodes = append(out.Nodes, &x)
	}
	if err := out.Validate(); err != nil {
		return nil, fmt.Errorf("planning the replay: %w", err)
	}
	return out, nil
}

// replayDead takes what fails again: an entry with the first failure's
// coordinates and one attempt more, which says which entry it follows.
type replayDead struct{ dead *deadTopic }

var _ lane.DeadLetters = (*replayDead)(nil)

func (r *replayDead) Write(ctx context.Context, entries []lane.DeadEntry) error {
	out := make([]lane.DeadEntry, len(entries))
	of := make([]int64, len(entries))
	for i, e := range entries {
		first, err := r.dead.entry(ctx, e.Offset)
		if err != nil {
			return err
		}
		key, err := first.key()
		if err != nil {
			return err
		}
		of[i] = e.Offset
		e.TopicID, e.Topic, e.Partition, e.Offset = key.topic, first.Topic, first.Partition, first.Offset
		e.Attempts = first.Attempts + 1
		if e.Rows == nil {
			e.Rows = first.Rows // now the record as a whole, of which these are dead
		}
		e.Raw = first.raw()
		out[i] = e
	}
	return r.dead.write(ctx, out, of)
}

// Durable lists the entries of the dead-letter topic that have failed again.
func (r *replayDead) Durable(ctx context.Context, table, topic connector.UUID, from map[int32]int64) ([]lane.DeadRecord, error) {
	return r.dead.failedAgain(ctx, table, topic, from[0])
}
