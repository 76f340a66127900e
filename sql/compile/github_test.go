package compile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
	"github.com/millrace/millrace/sql/syntax"
)

// TestMainExample compiles the job that the project ships.
func TestMainExample(t *testing.T) {
	dir := filepath.Join("..", "..", "examples", "github-events")
	ddl, err := filepath.Glob(filepath.Join(dir, "ddl", "*.sql"))
	if err != nil || len(ddl) == 0 {
		t.Fatalf("no DDL files in %s: %v", dir, err)
	}
	var files []Source
	for _, f := range append(ddl, filepath.Join(dir, "job.sql")) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, Source{Name: filepath.Base(f), Text: string(text)})
	}
	u, ds := Compile(files, Options{Registry: sqltest.Registry(), Vars: syntax.MapVars{}})
	if len(ds) > 0 {
		t.Error(diag.Renderer{}.String(ds))
	}
	if u.Job == nil {
		t.Fatal("no job")
	}
	if testing.Verbose() {
		os.Stdout.WriteString(u.Explain.Text)
	}
	if u.Name != "github-events" || !u.NameSet {
		t.Errorf("job %q", u.Name)
	}
	count := map[string]int{}
	for _, n := range u.Job.Nodes {
		count[graph.OpName(n.Op)]++
	}
	if count["Source"] != 15 || count["Sink"] != 17 || count["WideMerge"] != 1 || count["Exchange"] != 7 || count["Union"] != 1 {
		t.Errorf("nodes: %v", count)
	}
}
