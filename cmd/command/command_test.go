package command_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/cmd/command"
	"github.com/millrace/millrace/jobs/userfunc"
)

// asProgram makes the test binary a program with functions of its own.
const asProgram = "MILLRACE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	set, err := userfunc.NewSet(userfunc.Scalar1("SHOUT", func(s string) (string, error) { return strings.ToUpper(s) + "!", nil }, userfunc.Options{Version: "4"}))
	if err != nil {
		panic(err)
	}
	os.Exit(command.Main(command.Options{Version: "7.7", Functions: set}, os.Args[1:]))
}

// TestCommandsKnowTheFunctions runs the commands that compile SQL.
func TestCommandsKnowTheFunctions(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("in.ndjson", `{"s":"ab"}`+"\n")
	write("job.sql", `CREATE TABLE a (s STRING) WITH ('connector' = 'filesystem', 'path' = '`+dir+`/in.ndjson', 'format' = 'json');
CREATE TABLE b (s STRING) WITH ('connector' = 'filesystem', 'path' = '`+dir+`/out', 'format' = 'json');
INSERT INTO b SELECT shout(s) FROM a;
`)
	write("job.test.yaml", `tests:
  - name: it shouts
    given:
      a: [{s: x}]
    want:
      b: [{s: X!}]
`)
	write("wrong.sql", "CREATE TABLE b (s STRING) WITH ('connector' = 'print');\nINSERT INTO b SELECT SHOT('x');\n")
	millrace := func(want int, args ...string) string {
		t.Helper()
		cmd := exec.Command(os.Args[0], append(args, "--data", filepath.Join(dir, "data"), "--progress", "none")...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), asProgram+"=1")
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
			t.Fatalf("%v: %v, want exit code %d\n%s%s", args, err, want, out.String(), errs.String())
		}
		return out.String() + errs.String()
	}
	millrace(0, "check", "job.sql")
	for _, c := range []struct {
		want string
		code int
		args []string
	}{
		{"7.7", 0, []string{"version"}},
		{"SHOUT (version 4)", 0, []string{"explain", "job.sql"}},
		{"it shouts", 0, []string{"test", "job.test.yaml"}},
		{`"AB!"`, 0, []string{"preview", "job.sql", "-o", "jsonl"}},
		{`did you mean "SHOUT"?`, 2, []string{"check", "wrong.sql"}},
		{"SHOUT", 0, []string{"sql", "-e", "SHOW USER FUNCTIONS"}},
		{`"q!"`, 0, []string{"sql", "-o", "jsonl", "-e", "SELECT LOWER(SHOUT('q')) AS x"}},
	} {
		if got := millrace(c.code, c.args...); !strings.Contains(got, c.want) {
			t.Errorf("%v printed\n%s\nwant %s", c.args, got, c.want)
		}
	}
	millrace(0, "run", "job.sql")
	out, err := filepath.Glob(filepath.Join(dir, "out", "[^._]*"))
	if err != nil || len(out) != 1 {
		t.Fatalf("files %v, %v", out, err)
	}
	b, err := os.ReadFile(out[0])
	var row struct{ S string }
	if err != nil || json.Unmarshal(b, &row) != nil || row.S != "AB!" {
		t.Errorf("the table holds %s, %v", b, err)
	}
}
