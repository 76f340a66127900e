package logictest

import (
	"context"
	"slices"
	"strings"
	"testing"

	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/plan"
	"github.com/millrace/millrace/sql/sqltest"
)

// TestLookupIsTriedAgain: a table that does not answer for a while costs no row and
// gives none twice, also when the process crashes meanwhile.
func TestLookupIsTriedAgain(t *testing.T) {
	given, out := sqltest.NewGiven(), sqltest.NewCollect()
	session := compile.NewSession()
	e := &Engine{}
	run := func(sql string, o RunOptions) {
		t.Helper()
		u, ds := compile.Compile([]compile.Source{{Name: "job", Text: sql}}, compile.Options{Registry: sqltest.Registry(given),
			Mode: compile.ModeSQL, ResultSink: out, Session: session})
		if ds.HasErrors() {
			t.Fatal(diag.Renderer{}.String(ds))
		}
		for _, s := range u.Statements {
			if s.Job == nil {
				continue
			}
			if _, err := e.Run(context.Background(), s.Job, o); err != nil {
				t.Fatal(err)
			}
		}
	}
	run("CREATE TABLE o (id INT, proc AS PROCTIME()) WITH ('connector' = 'given', 'partitions' = '3')", RunOptions{})
	run("CREATE TABLE d (id INT, name STRING) WITH ('connector' = 'given')", RunOptions{})
	run("CREATE TABLE t (id INT, name STRING) WITH ('connector' = 'given')", RunOptions{})
	var rows, dim, want []string
	for _, id := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		rows, dim = append(rows, "("+id+")"), append(dim, "("+id+", 'n"+id+"')")
		want = append(want, id+"|n"+id)
	}
	run("INSERT INTO o VALUES "+strings.Join(rows, ", "), RunOptions{})
	run("INSERT INTO d VALUES "+strings.Join(dim, ", "), RunOptions{})
	for _, restart := range []bool{false, true} {
		given.Clear("t")
		given.FailLookups(7)
		run("INSERT INTO t SELECT o.id, d.name FROM o JOIN d FOR SYSTEM_TIME AS OF o.proc AS d ON o.id = d.id", RunOptions{BatchRows: 1, Restart: restart})
		got := given.Rows("t").Text(rt.UTC())
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("restart %v: %v, want %v", restart, got, want)
		}
		if left := given.FailLookups(0); left != 0 {
			t.Errorf("restart %v: %d lookups did not fail", restart, left)
		}
	}
}

// TestExplainLookup: EXPLAIN says that the answer depends on the time.
func TestExplainLookup(t *testing.T) {
	b, _, err := sqltest.Binder(`CREATE TABLE o (id INT, k INT, proc AS PROCTIME()) WITH ('connector' = 'given');
		CREATE TABLE d (k INT, kind STRING, lo INT, name STRING) WITH ('connector' = 'given')`)
	if err != nil {
		t.Fatal(err)
	}
	out, err := sqltest.Query(b, "SELECT o.id, d.name FROM o LEFT JOIN d FOR SYSTEM_TIME AS OF o.proc AS d ON o.k = d.k AND d.kind = 'x' AND d.lo < o.id")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	plan.Print(&text, out.Node)
	const want = "Lookup(LEFT, table=d, keys=[k = k, kind = 'x'], condition=lo < id, columns=[k, kind, lo, name], as of processing: another run may find other rows)"
	if !strings.Contains(text.String(), want) {
		t.Errorf("%s\nhas no %s", text.String(), want)
	}
}

// TestLookupNamesConnectors: what connectors can be looked up is said where one cannot.
func TestLookupNamesConnectors(t *testing.T) {
	_, ds := compile.Compile([]compile.Source{{Name: "job", Text: `CREATE TABLE o (id INT, proc AS PROCTIME()) WITH ('connector' = 'given');
		CREATE TABLE g (id INT) WITH ('connector' = 'datagen');
		SELECT o.id FROM o JOIN g FOR SYSTEM_TIME AS OF o.proc AS d ON o.id = d.id`}}, compile.Options{
		Registry: sqltest.Registry(sqltest.NewGiven()), Mode: compile.ModeSQL, ResultSink: sqltest.NewCollect(), Session: compile.NewSession()})
	if got := (diag.Renderer{}).String(ds); !strings.Contains(got, `tables of connector "datagen" cannot be looked up by key`) || !strings.Contains(got, "those of given can") {
		t.Error(got)
	}
}
