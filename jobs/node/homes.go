package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/spec"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/sql/compile"
)

// Homes implements control.API.
func (n *Node) Homes(context.Context) ([]control.TableHome, error) {
	out := []control.TableHome{}
	for _, rec := range n.records.all() {
		live := map[string]*engine.HomeStatus{}
		n.mu.Lock()
		r := n.running[rec.Name]
		n.mu.Unlock()
		if r != nil && r.run != nil {
			for _, t := range r.run.Status().Tables {
				live[t.Name] = t.Home
			}
		}
		book := n.ledger.Book(ledger.Scope{Job: rec.ID, Generation: rec.Generation})
		for _, t := range book.Tables() {
			if !t.Exchange {
				out = append(out, homeOf(rec, book, t, live[t.Name]))
			}
		}
	}
	slices.SortFunc(out, func(a, b control.TableHome) int { return strings.Compare(a.Table+"\x00"+a.Job, b.Table+"\x00"+b.Job) })
	return out, nil
}

// homeOf is a table as the ledger has it, with what a run knows of it.
func homeOf(rec jobRecord, book *ledger.Book, t *ledger.Table, live *engine.HomeStatus) control.TableHome {
	active, number := book.ActiveHome(t.ID)
	h := control.TableHome{Table: t.Name, Job: rec.Name, Home: connector.HomeName(active), Switches: number, Standby: number > 0 || live != nil}
	if live != nil {
		h.Place = live.Place
		if !live.FailingSince.IsZero() {
			since := live.FailingSince
			h.FailingSince, h.Why = &since, live.Why
		}
	}
	if !h.Standby {
		return h
	}
	for _, m := range book.Moves(t.ID, nil) {
		if !m.Done() {
			h.Moving = append(h.Moving, m.TablePartition)
		}
	}
	for _, rows := range book.Moving(t.ID) {
		h.MovingRows += rows
	}
	for tp, home := range book.Settled(t.ID) {
		c := book.Close(ledger.CloseKey{Table: t.ID, TablePartition: tp})
		h.Partitions = append(h.Partitions, control.PartitionHome{Partition: tp, Home: connector.HomeName(home), Announced: c != nil && c.Step == ledger.Announced})
	}
	slices.SortFunc(h.Partitions, func(a, b control.PartitionHome) int { return strings.Compare(a.Partition, b.Partition) })
	return h
}

// SwitchTable implements control.API: by the run of its job, or in the ledger alone
// when it does not run; the next run then begins at the other home.
func (n *Node) SwitchTable(ctx context.Context, req control.SwitchTable) (control.Switched, error) {
	var none control.Switched
	to := connector.MainHome
	switch req.To {
	case connector.HomeName(connector.MainHome):
	case connector.HomeName(connector.StandbyHome):
		to = connector.StandbyHome
	default:
		return none, inputError(fmt.Errorf("a table moves to main or to standby, not to %q", req.To))
	}
	if req.Reason == "" {
		req.Reason = "by hand"
	}
	rec, err := n.jobOfTable(req.Table, req.Job)
	if err != nil {
		return none, err
	}
	book := n.ledger.Book(ledger.Scope{Job: rec.ID, Generation: rec.Generation})
	fact, _ := book.Table(req.Table)
	active, _ := book.ActiveHome(fact.ID)
	out := control.Switched{Table: req.Table, Job: rec.Name, Home: req.To, Already: active == to, Moved: []string{}}
	n.mu.Lock()
	r := n.running[rec.Name]
	n.mu.Unlock()
	var done ledger.Switched
	if r != nil && r.run != nil {
		out.Running = true
		done, err = r.run.Switch(ctx, engine.SwitchRequest{Table: req.Table, To: to, Edge: req.Edge, Reason: req.Reason})
	} else {
		done, err = n.switchLater(ctx, rec, book, fact, to, req)
	}
	if errors.Is(err, engine.ErrNoStandby) {
		return none, noStandby(req.Table)
	}
	if err != nil {
		return none, err
	}
	out.Number, out.Rows, out.Stayed = done.Number, done.Rows, done.Stayed
	out.Moved = append(out.Moved, done.Moved...)
	return out, nil
}

// switchLater records the switch of a table whose job does not run.
func (n *Node) switchLater(ctx context.Context, rec jobRecord, book *ledger.Book, fact *ledger.Table, to uint8, req control.SwitchTable) (ledger.Switched, error) {
	var none ledger.Switched
	done, err := n.reserve(rec.Name)
	if err != nil {
		return none, err
	}
	defer done()
	if err := n.hasStandby(rec, req.Table); err != nil {
		return none, err
	}
	s, err := book.Switch(ctx, ledger.SwitchOptions{Table: fact.ID, To: to, Edge: req.Edge, TimeMillis: n.opts.Now().UnixMilli(), Reason: req.Reason})
	if err != nil {
		return none, fmt.Errorf("recording the switch of table %s: %w", req.Table, err)
	}
	for _, rows := range book.Moving(fact.ID) {
		s.Rows += rows
	}
	return s, nil
}

// hasStandby is nil if a job, as it was run last, names a standby for a table.
func (n *Node) hasStandby(rec jobRecord, table string) error {
	vars := spec.Vars{Set: rec.Set, LookupEnv: os.LookupEnv, ReadFile: os.ReadFile}
	c := spec.Compile(rec.Files, vars, compile.Options{Registry: n.registry, Functions: n.opts.Functions.Extra(), Mode: compile.ModeRun, JobName: rec.Name})
	if err := c.Err(); err != nil {
		return err
	}
	for _, s := range sinks(c.Unit.Job) {
		if s.Table.Name != table {
			continue
		}
		sc, ok := s.Connector.(connector.StandbyConnector)
		if !ok {
			break
		}
		sb, err := sc.Standby(s.Table)
		if err != nil {
			return inputError(err)
		}
		if sb != nil {
			return nil
		}
	}
	return noStandby(table)
}

func noStandby(table string) error {
	return &control.Error{Kind: "input", Message: fmt.Sprintf("table %s has no standby", table), Hint: "name one in its WITH clause: 'hdfs.standby' = 'hdfs://...'"}
}
