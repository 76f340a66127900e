package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/syntax"
)

// jobStatement answers what the shell says about jobs and groups.
func (n *Node) jobStatement(ctx context.Context, s *compile.Statement, out control.QueryResult) error {
	switch ast := s.AST.(type) {
	case *syntax.StopJob:
		return n.stopJob(ctx, ast.ID.Value, out)
	case *syntax.Describe:
		if ast.Kind == syntax.KindGroup {
			return n.describeGroup(ctx, ast.Name.String(), out)
		}
		rec, err := n.jobRecord(ast.ID.Value)
		if err != nil {
			return err
		}
		return n.listJobs(ctx, func(name string) bool { return name == rec.Name }, out)
	case *syntax.Show:
		if ast.Kind == syntax.ShowGroups {
			return n.listGroups(ctx, s.Keep, out)
		}
		return n.listJobs(ctx, s.Keep, out)
	}
	return fmt.Errorf("no way to answer %T", s.AST)
}

// jobRecord is a job by its name or its id.
func (n *Node) jobRecord(id string) (jobRecord, error) {
	if rec, ok := n.records.find(id); ok {
		return rec, nil
	}
	var names []string
	for _, rec := range n.records.all() {
		if rec.ID.String() == id {
			return rec, nil
		}
		names = append(names, rec.Name)
	}
	return jobRecord{}, notFound("job", id, names)
}

// stopJob ends a job as a signal to its process does, and returns when all that it had
// open is committed.
func (n *Node) stopJob(ctx context.Context, id string, out control.QueryResult) error {
	rec, err := n.jobRecord(id)
	if err != nil {
		return err
	}
	r, err := n.findRunning(rec.Name)
	if err != nil {
		return err
	}
	if err := r.Stop(ctx); err != nil {
		return errors.Join(fmt.Errorf("stopping job %s", rec.Name), err)
	}
	return out.Done(fmt.Sprintf("job %s is stopped; run again, it goes on where it was", rec.Name))
}

// listJobs gives the jobs whose names are kept, with Flink's columns.
func (n *Node) listJobs(ctx context.Context, keep func(string) bool, out control.QueryResult) error {
	jobs, err := n.Jobs(ctx)
	if err != nil {
		return err
	}
	rows := [][]string{}
	for _, j := range jobs {
		if !keep(j.Name) {
			continue
		}
		started := ""
		if !j.Started.IsZero() {
			started = j.Started.UTC().Format(time.RFC3339)
		}
		rows = append(rows, []string{j.ID, j.Name, j.State, started})
	}
	return texts(out, []string{"job id", "job name", "status", "start time"}, rows)
}

func (n *Node) listGroups(ctx context.Context, keep func(string) bool, out control.QueryResult) error {
	groups, err := n.Groups(ctx)
	if err != nil {
		return err
	}
	rows := [][]string{}
	for _, g := range groups {
		if keep(g.Name) {
			rows = append(rows, []string{g.Name, g.Type, g.State, strconv.Itoa(g.Members), strconv.FormatInt(g.Lag, 10), g.Owner})
		}
	}
	return texts(out, []string{"group", "type", "state", "members", "lag", "owner"}, rows)
}

// describeGroup gives the positions of a group.
func (n *Node) describeGroup(ctx context.Context, name string, out control.QueryResult) error {
	g, err := n.Group(ctx, name)
	if err != nil {
		return err
	}
	rows := make([][]string, 0, len(g.Positions))
	for _, p := range g.Positions {
		rows = append(rows, []string{p.Topic, strconv.Itoa(int(p.Partition)), positionText(p.Offset), strconv.FormatInt(p.Latest, 10), positionText(p.Lag), p.Member})
	}
	return texts(out, []string{"topic", "partition", "offset", "latest", "lag", "member"}, rows)
}

// positionText is a position, or nothing where there is none yet.
func positionText(v int64) string {
	if v < 0 {
		return ""
	}
	return strconv.FormatInt(v, 10)
}
