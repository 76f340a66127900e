package cli

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/cmd/internal/exitcode"
)

const dotJob = `CREATE TABLE a (k STRING, v INT) WITH ('connector'='log', 'topic'='a', 'format'='json');
CREATE TABLE b (k STRING, w INT) WITH ('connector'='log', 'topic'='b', 'format'='json');
CREATE TABLE o (k STRING, v INT, w INT) WITH ('connector'='print');
INSERT INTO o SELECT a.k, v, w FROM a JOIN b ON a.k = b.k WHERE REGEXP(a.k, '"\d');
`

// TestExplainDot: the graph with each lane in a frame, the exchanges between lanes and
// the stage, the join's state; quotes and backslashes of an expression do not end the
// text. What is wanted was drawn by hand from the job.
func TestExplainDot(t *testing.T) {
	job := write(t, filepath.Join(t.TempDir(), "job.sql"), dotJob)
	want := `digraph "job" {
  rankdir=LR;
  node [shape=box, fontname="sans-serif", fontsize=10];
  subgraph cluster_0 {
    label="lane a";
    style=dashed;
    n0 [label="Source\na", shape=cylinder];
  }
  subgraph cluster_1 {
    label="lane b";
    style=dashed;
    n1 [label="Source\nb", shape=cylinder];
  }
  n2 [label="Exchange\nby k, parallelism 1", shape=ellipse];
  n3 [label="Exchange\nby k, parallelism 1", shape=ellipse];
  n4 [label="Join\nINNER, k = k", penwidth=2, tooltip="o/a+b/join[INNER; k=k]"];
  n5 [label="Filter\nREGEXP(k, '\"\\d')"];
  n6 [label="Project\nk\nv\nw"];
  n7 [label="Sink\no", shape=cylinder];
  n0 -> n2;
  n1 -> n3;
  n2 -> n4;
  n3 -> n4;
  n4 -> n5;
  n5 -> n6;
  n6 -> n7;
}
`
	code, out, errs := command(t, "", "explain", job, "-o", "dot")
	if code != exitcode.OK || out != want {
		t.Errorf("exit code %d\n%s\nwant\n%s%s", code, out, want, errs)
	}

	code, out, _ = command(t, "", "explain", job, "-o", "json")
	var env struct {
		Result struct {
			Graph []struct {
				ID              int
				Op, Lane, State string
				Inputs          []int
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &env); err != nil || code != exitcode.OK {
		t.Fatalf("exit code %d, %v\n%s", code, err, out)
	}
	g := env.Result.Graph
	if len(g) != 8 || g[4].Op != "Join" || g[4].State == "" || g[4].Lane != "" || len(g[4].Inputs) != 2 || g[0].Lane != "a" {
		t.Errorf("graph %+v", g)
	}

	if code, _, errs := command(t, "", "check", job, "-o", "dot"); code != exitcode.Input || errs == "" {
		t.Errorf("check -o dot: exit code %d, %q", code, errs)
	}
	bad := write(t, filepath.Join(t.TempDir(), "bad.sql"), "SELEC 1;")
	if code, out, errs := command(t, "", "explain", bad, "-o", "dot"); code != exitcode.Input || out != "" || errs == "" {
		t.Errorf("a faulty file: exit code %d, %q, %q", code, out, errs)
	}
}
