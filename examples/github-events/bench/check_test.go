package main

import (
	"slices"
	"strings"
	"testing"

	githubevents "github.com/millrace/millrace/examples/github-events"
)

// TestColumnsOf: the job's tables with their columns, as its SQL declares them.
func TestColumnsOf(t *testing.T) {
	_, job, err := jobText("127.0.0.1:9092")
	if err != nil {
		t.Fatal(err)
	}
	tables := columnsOf(job)
	if len(tables) != len(githubevents.Topics)+1 || strings.Count(job, "\nINSERT INTO ") != len(tables) {
		t.Errorf("%d tables", len(tables))
	}
	common := []string{"event_id", "actor_id", "actor_login", "repo_id", "repo_name", "org_login", "created_at", "dt", "hr"}
	for table, own := range map[string][]string{
		"push": {"push_id", "commits", "distinct_commits", "ref", "head", "first_message"}, "watch": {"action"}, "made_public": nil, "events": {"type"},
	} {
		if want := append(slices.Clone(common), own...); !slices.Equal(tables[table], want) {
			t.Errorf("%s has %v, want %v", table, tables[table], want)
		}
	}
}

// TestFlinkSQL: every variable is replaced, and one statement holds all INSERTs.
func TestFlinkSQL(t *testing.T) {
	sources, job, err := jobText("127.0.0.1:9092")
	if err != nil {
		t.Fatal(err)
	}
	statements := flinkSQL(sources, job, "hdfs://h/lake")
	// 15 topics, 16 tables and what they have in common, one job.
	if len(statements) != 33 {
		t.Errorf("%d statements", len(statements))
	}
	if last := statements[len(statements)-1]; strings.Count(last, "INSERT INTO ") != 16 || !strings.HasPrefix(last, "EXECUTE STATEMENT SET BEGIN") {
		t.Errorf("the last one is\n%s", last)
	}
	if all := strings.Join(statements, "\n"); strings.Contains(all, "${") || strings.Contains(all, "'log'") {
		t.Errorf("something is left in\n%s", all)
	}
}

// TestCompare: a table that differs by a value, and events that are missing in both.
func TestCompare(t *testing.T) {
	made := map[string]int{}
	for _, topic := range githubevents.Topics {
		made[topic] = 2
	}
	wrote := func(n, sum int64) map[string]contents {
		return map[string]contents{"events": {n, 7}, "push": {n, sum}}
	}
	for _, c := range []struct {
		ours, theirs map[string]contents
		want         string
	}{
		{wrote(30, 5), wrote(30, 5), ""},
		{wrote(30, 5), wrote(30, 6), "table push"},
		{wrote(29, 5), wrote(29, 5), "of 30 events"},
	} {
		err := compare(c.ours, c.theirs, made)
		if got := err != nil; got != (c.want != "") || got && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
