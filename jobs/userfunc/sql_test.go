package userfunc_test

import (
	"flag"
	"strings"
	"testing"

	"github.com/millrace/millrace/jobs/userfunc"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/assist"
	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
)

var update = flag.Bool("update", false, "write testdata/sql.txt")

// program has functions of each kind.
func program(t *testing.T) *userfunc.Set {
	t.Helper()
	set, err := userfunc.NewSet(
		userfunc.Scalar1("MASK", func(s string) (string, error) { return s[:1] + "***", nil }, userfunc.Options{Version: "7", Doc: "Hides a name."}),
		userfunc.Scalar1("DICE", func(sides int64) (int64, error) { return sides, nil }, userfunc.Options{NonDeterministic: true}),
		userfunc.Vector("WORDS", userfunc.Signature{Params: []types.Type{types.NewString()}, Return: types.NewArray(types.NewString())}, words, userfunc.Options{}),
		userfunc.Aggregate1("SPREAD", spreadFold, userfunc.Options{Version: "2"}),
		userfunc.Table1("PAIRS", []string{"key", "value"}, pairs, userfunc.Options{Version: "3", Doc: "The a=1 of a text."}),
		userfunc.Table2("RANDOM_ROWS", []string{"x"}, func(n int64, _ userfunc.Null[string], out *userfunc.Emit1[int64]) error {
			out.Row(n)
			return nil
		}, userfunc.Options{NonDeterministic: true}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// words gives the words of a text.
func words(r *userfunc.Rows) {
	for _, i := range r.Sel {
		r.Out.BeginList(int(i))
		for _, w := range strings.Fields(string(r.Args[0].Bytes(r.Args[0].Index(int(i))))) {
			elems := r.Out.Children[0]
			elems.Grow(1)
			elems.PutString(elems.Len-1, w)
			elems.PadOffsets()
		}
		r.Out.EndList()
	}
}

const tables = `CREATE TABLE clicks (uid BIGINT, name STRING, n BIGINT, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'log', 'topic' = 'clicks');
CREATE TABLE others (uid BIGINT, n BIGINT) WITH ('connector' = 'log', 'topic' = 'others');
CREATE TABLE lake (name STRING, n BIGINT, dt STRING) PARTITIONED BY (dt) WITH ('connector' = 'filesystem', 'path' = '/x', 'format' = 'json');
CREATE TABLE p (name STRING, n BIGINT) WITH ('connector' = 'print');
`

// TestSQL compares what is found in SQL with user functions, or its plan where all is
// well, with testdata/sql.txt: blocks of SQL, "----" and the answer, between "====".
func TestSQL(t *testing.T) {
	sqltest.Blocks(t, "testdata/sql.txt", *update, func(sql string) string {
		u, ds := compile.Compile([]compile.Source{{Name: "ddl.sql", Text: tables}, {Name: "job.sql", Text: sql}},
			compile.Options{Registry: sqltest.Registry(), Functions: program(t).Extra()})
		if ds.HasErrors() {
			return diag.Renderer{}.String(ds)
		}
		_, plan, _ := strings.Cut(u.Explain.Text, "== Optimized plan ==\n")
		return plan
	})
}

// TestVectorOfArrays: for UNNEST.
func TestVectorOfArrays(t *testing.T) {
	lib := library(t, userfunc.Vector("WORDS", userfunc.Signature{Params: []types.Type{types.NewString()}, Return: types.NewArray(types.NewString())}, words, userfunc.Options{}))
	want(t, call(t, lib, "WORDS", batchOf(texts("a b", "-", "", "c")), nil), "[a, b]", "NULL", "[]", "[c]")
	want(t, call(t, lib, "WORDS", batchOf(texts("a b", "-", "", "c")), batch.Sel{1, 3}), "NULL", "[c]")
}

// TestEditor: completion and hover know the functions.
func TestEditor(t *testing.T) {
	sql := "INSERT INTO p SELECT MASK(name), n FROM clicks;"
	files := []compile.Source{{Name: "ddl.sql", Text: tables}, {Name: "job.sql", Text: sql}}
	o := compile.Options{Registry: sqltest.Registry(), Functions: program(t).Extra()}
	c, err := assist.Complete(files, "job.sql", strings.Index(sql, "MASK")+3, o)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, item := range c.Items {
		found = found || item.Label == "MASK"
	}
	if !found {
		t.Errorf("completion of MAS has no MASK: %+v", c.Items)
	}
	a, err := assist.Analyze(files, "job.sql", o)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Findings) > 0 {
		t.Errorf("%v", a.Findings)
	}
}
