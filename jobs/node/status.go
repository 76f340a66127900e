package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
)

// Progress is a job at one moment.
type Progress struct {
	Job           string  `json:"job"`
	Seconds       float64 `json:"seconds"`
	RowsPerSecond float64 `json:"rows_per_second"`
	Read          int64   `json:"read"`
	Written       int64   `json:"written"`
	Folded        int64   `json:"folded"`
	Filtered      int64   `json:"filtered"`
	Dead          int64   `json:"dead"`
	Late          int64   `json:"late"`
	Open          int64   `json:"open"`
	// StateBytes is the state of keyed stages in memory, SpilledBytes what lies on
	// disk of it.
	StateBytes   int64         `json:"state_bytes"`
	SpilledBytes int64         `json:"spilled_bytes"`
	Lag          int64         `json:"lag_records"`
	NextFileIn   time.Duration `json:"next_file_in_ns"`
	Recovering   bool          `json:"recovering"`
	// Trouble names lanes that do not run, with why.
	Trouble []string `json:"trouble,omitempty"`
}

// Progress describes the job now. Numbers are rows of all tables: a record
// that goes to two tables counts twice. What replays did is not in them.
func (r *Running) Progress() Progress {
	s := r.run.Status()
	p := Progress{Job: r.record.Name, Seconds: time.Since(r.started).Seconds(), Recovering: s.Recovering}
	dead := DeadTopic(r.record.Name, r.graph)
	for i := range s.Rows {
		row := &s.Rows[i]
		if row.TopicName == dead {
			continue
		}
		p.Read += row.Counts.Read
		p.Written += row.Counts.Written
		p.Folded += row.Counts.Folded
		p.Filtered += row.Counts.Filtered.Sum()
		p.Dead += row.Counts.Dead.Sum()
		p.Late += row.Counts.Late
		p.Open += row.Open
	}
	for _, st := range s.Stages {
		p.StateBytes += st.StateBytes
		p.SpilledBytes += st.SpilledBytes
	}
	var next time.Time
	for _, t := range s.Tables {
		p.RowsPerSecond += t.RowsPerSecond
		if !t.NextFile.IsZero() && (next.IsZero() || t.NextFile.Before(next)) {
			next = t.NextFile
		}
	}
	if !next.IsZero() {
		p.NextFileIn = max(time.Until(next), 0)
	}
	for _, l := range s.Lanes {
		for _, x := range l.Partitions {
			p.Lag += x.Lag()
		}
		if l.Error != "" {
			p.Trouble = append(p.Trouble, fmt.Sprintf("%s is %s: %s", l.Name, l.State, l.Error))
		}
	}
	return p
}

// Report is `run --report`.
type Report struct {
	Job         string                `json:"job"`
	Seconds     float64               `json:"seconds"`
	CPUSeconds  float64               `json:"cpu_seconds"`
	MaxRSSBytes int64                 `json:"max_rss_bytes"`
	Tables      []TableReport         `json:"tables"`
	Ledger      []control.TableLedger `json:"ledger"`
}

// TableReport is what one table got.
type TableReport struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
	Files int64  `json:"files"`
}

// Report sums the run up.
func (r *Running) Report() Report {
	rep := Report{Job: r.record.Name, Seconds: time.Since(r.started).Seconds(), CPUSeconds: (cpuTime() - r.cpuStart).Seconds(), MaxRSSBytes: maxRSS(),
		Tables: r.node.tableReports(r.record), Ledger: r.node.tableLedgers(r.record, "")}
	return rep
}

// tableReports sums the committed artefacts of a job's tables.
func (n *Node) tableReports(rec jobRecord) []TableReport {
	book := n.ledger.Book(ledger.Scope{Job: rec.ID, Generation: rec.Generation})
	byName := map[string]*TableReport{}
	out := []TableReport{}
	for _, t := range book.Tables() {
		if !t.Exchange {
			byName[t.Name] = &TableReport{Table: t.Name}
		}
	}
	book.Intents(func(e *ledger.Entry) bool {
		if e.Result != ledger.Committed {
			return false
		}
		for i := range e.Artifacts {
			a := &e.Artifacts[i]
			t, ok := book.TableByID(a.Header.ID.Table)
			if !ok || byName[t.Name] == nil {
				continue
			}
			rep := byName[t.Name]
			rep.Rows += a.Header.Rows
			rep.Bytes += a.Bytes
			rep.Files++
		}
		return false
	})
	for _, t := range byName {
		out = append(out, *t)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Table < out[j].Table })
	return out
}

// Ledger implements control.API.
func (n *Node) Ledger(_ context.Context, table string) ([]control.TableLedger, error) {
	out := []control.TableLedger{}
	all := n.records.all()
	slices.SortFunc(all, func(a, b jobRecord) int { return strings.Compare(a.Name, b.Name) })
	for _, rec := range all {
		out = append(out, n.tableLedgers(rec, table)...)
	}
	return out, nil
}

// tableLedgers are the equations of a job by table and topic: those of the
// running lanes where the job runs, else what a restart would find.
func (n *Node) tableLedgers(rec jobRecord, only string) []control.TableLedger {
	book := n.ledger.Book(ledger.Scope{Job: rec.ID, Generation: rec.Generation})
	rows := book.Rows()
	n.mu.Lock()
	if r := n.running[rec.Name]; r != nil && r.run != nil {
		rows = r.run.Status().Rows
	}
	n.mu.Unlock()
	type key struct{ table, topic string }
	sums := map[key]*control.TableLedger{}
	var order []key
	replayed := map[string]int64{}
	for i := range rows {
		row := &rows[i]
		if row.TopicName == n.deadName(rec) {
			// A replay's own account: its rows stay dead in the first one.
			replayed[shownTable(row.Table)] += row.Counts.Written
			continue
		}
		k := key{shownTable(row.Table), row.TopicName}
		t := sums[k]
		if t == nil {
			t = &control.TableLedger{Table: k.table, Topic: k.topic, Job: rec.Name, FilteredBy: map[string]int64{}, DeadBy: map[string]int64{}}
			sums[k] = t
			order = append(order, k)
		}
		c := &row.Counts
		t.Records += c.Records
		t.Lost += c.Lost
		t.Read += c.Read
		t.Written += c.Written
		t.Folded += c.Folded
		t.Late += c.Late
		t.Open += row.Open
		for _, x := range c.Filtered {
			t.Filtered += x.Rows
			t.FilteredBy[x.Code] += x.Rows
		}
		for _, x := range c.Dead {
			t.Dead += x.Rows
			t.DeadBy[x.Code] += x.Rows
		}
	}
	sort.Slice(order, func(i, j int) bool {
		if order[i].table != order[j].table {
			return order[i].table < order[j].table
		}
		return order[i].topic < order[j].topic
	})
	emitted := map[string]int64{}
	for _, t := range book.Tables() {
		if e := book.Emitted(t.ID); e != nil {
			emitted[t.Name] = e.Rows
		}
	}
	out := []control.TableLedger{}
	seen := map[string]bool{}
	for _, k := range order {
		if only != "" && k.table != only {
			continue
		}
		t := sums[k]
		if !seen[k.table] {
			// Numbers of the table as a whole stand with its first topic.
			seen[k.table] = true
			t.Replayed, t.Emitted = replayed[k.table], emitted[k.table]
		}
		out = append(out, *t)
	}
	return out
}

// shownTable is the name under which people know an output: that of the sink
// table, for the hand-over to a keyed stage too.
func shownTable(t *ledger.Table) string {
	if t.Exchange && len(t.Feeds) > 0 {
		return strings.Join(t.Feeds, ", ")
	}
	return t.Name
}

// Jobs implements control.API.
func (n *Node) Jobs(context.Context) ([]control.Job, error) {
	all := n.records.all()
	slices.SortFunc(all, func(a, b jobRecord) int { return strings.Compare(a.Name, b.Name) })
	out := []control.Job{}
	for _, rec := range all {
		j := control.Job{Name: rec.Name, ID: rec.ID.String(), State: "stopped", Tables: []control.TableState{}, Lanes: []control.LaneState{}}
		if rec.Finished {
			j.State = "finished"
		}
		n.mu.Lock()
		r := n.running[rec.Name]
		n.mu.Unlock()
		if r != nil && r.run != nil {
			j.State, j.Started = "running", r.started
			describeRun(&j, r.run.Status())
		} else {
			j.Tables = n.tablesAtRest(rec)
		}
		out = append(out, j)
	}
	return out, nil
}

// tablesAtRest are the tables of a job that does not run, as the ledger has them.
func (n *Node) tablesAtRest(rec jobRecord) []control.TableState {
	out := []control.TableState{}
	for _, l := range n.tableLedgers(rec, "") { // sorted by table
		if len(out) == 0 || out[len(out)-1].Table != l.Table {
			out = append(out, control.TableState{Table: l.Table})
		}
		t := &out[len(out)-1]
		t.Written += l.Written
		t.Dead += l.Dead
		t.Late += l.Late
	}
	return out
}

func describeRun(j *control.Job, s engine.Status) {
	for _, t := range s.Tables {
		ts := control.TableState{Table: t.Name, OpenRows: t.Open, Written: t.Counts.Written, Dead: t.Counts.Dead.Sum(), Late: t.Counts.Late, Files: t.Files, AnnounceError: t.AnnounceError}
		if !t.NextFile.IsZero() {
			next := t.NextFile
			ts.NextFile = &next
		}
		j.Tables = append(j.Tables, ts)
	}
	for _, st := range s.Stages {
		j.Stages = append(j.Stages, control.StageState{Stage: st.Name, StateBytes: st.StateBytes, SpilledBytes: st.SpilledBytes, Emitted: st.Emitted, Checkpoint: st.Checkpoint})
	}
	for _, l := range s.Lanes {
		ls := control.LaneState{Lane: l.Name, Topic: l.Topic, State: l.State.String(), Error: l.Error}
		for _, p := range l.Partitions {
			ls.Lag += p.Lag()
		}
		waits := l.State == lane.Quarantined || l.State == lane.Stopped && l.Error != ""
		if waits && j.State == "running" {
			j.State = "degraded"
		}
		j.Lanes = append(j.Lanes, ls)
	}
}

// findRunning is a running job.
func (n *Node) findRunning(name string) (*Running, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r := n.running[name]; r != nil && r.run != nil {
		return r, nil
	}
	if _, ok := n.records.find(name); ok {
		return nil, inputError(fmt.Errorf("job %s is not running in this process", name))
	}
	var names []string
	for _, rec := range n.records.all() {
		names = append(names, rec.Name)
	}
	return nil, notFound("job", name, names)
}

// Roll implements control.API.
func (n *Node) Roll(ctx context.Context, name string) (control.Rolled, error) {
	r, err := n.findRunning(name)
	if err != nil {
		return control.Rolled{}, err
	}
	before := r.committed()
	waiting := map[string]int64{}
	for _, t := range r.run.Status().Tables {
		if t.OpenFiles > 0 {
			waiting[t.Name] = t.Files
		}
	}
	r.run.Roll("")
	tick := time.NewTicker(rollPoll)
	defer tick.Stop()
	for len(waiting) > 0 {
		select {
		case <-ctx.Done():
			return control.Rolled{}, ctx.Err()
		case <-r.run.Done():
			return control.Rolled{}, errors.Join(fmt.Errorf("job %s has ended", name), r.run.Err())
		case <-tick.C:
		}
		for _, t := range r.run.Status().Tables {
			if files, ok := waiting[t.Name]; ok && (t.OpenFiles == 0 || t.Files > files) {
				delete(waiting, t.Name)
			}
		}
	}
	after := r.committed()
	return control.Rolled{Job: name, Files: after.Files - before.Files, Rows: after.Rows - before.Rows}, nil
}

// rollPoll is how often Roll looks whether the files are committed.
const rollPoll = 20 * time.Millisecond

// committed sums the artefacts of this run.
func (r *Running) committed() (c control.Rolled) {
	for _, t := range r.run.Status().Tables {
		c.Files += t.Files
		c.Rows += t.Counts.Written
	}
	return c
}

// ResumeLane implements control.API.
func (n *Node) ResumeLane(_ context.Context, req control.ResumeLane) error {
	r, err := n.findRunning(req.Job)
	if err != nil {
		return err
	}
	return r.run.Resume(req.Lane, lane.ResumeOptions{SkipLost: req.SkipLost, Rebuild: req.Rebuild})
}

// deadName is the dead-letter topic of a job by its record.
func (n *Node) deadName(rec jobRecord) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r := n.running[rec.Name]; r != nil {
		return DeadTopic(rec.Name, r.graph)
	}
	if rec.Dead != "" {
		return rec.Dead
	}
	return rec.Name + ".dead"
}
