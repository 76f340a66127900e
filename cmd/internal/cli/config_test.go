package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/cmd/internal/exitcode"
)

// testEnv is an environment of its own; env are its variables.
func testEnv(env map[string]string) (*Env, *bytes.Buffer, *bytes.Buffer) {
	var out, errs bytes.Buffer
	return &Env{Version: "test", Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Now: time.Now,
		LookupEnv: func(k string) (string, bool) { v, ok := env[k]; return v, ok }}, &out, &errs
}

// TestPrecedence: flags > MILLRACE_* > file > defaults.
func TestPrecedence(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("millrace.yaml", "data: from-default-file\nrun:\n  max-dead: 7\n")
	write("other.yaml", "data: from-file\noutput: json\ntopics:\n  ls:\n    internal: true\n")
	for _, c := range []struct {
		name string
		args []string
		env  map[string]string
		data string
		out  string
	}{
		{"default file", nil, nil, "from-default-file", ""},
		{"named file", []string{"-c", "other.yaml"}, nil, "from-file", "json"},
		{"environment over file", []string{"-c", "other.yaml"}, map[string]string{"MILLRACE_DATA": "from-env"}, "from-env", "json"},
		{"flag over environment", []string{"--data", "from-flag"}, map[string]string{"MILLRACE_DATA": "from-env"}, "from-flag", ""},
		{"file by environment", nil, map[string]string{"MILLRACE_CONFIG": "other.yaml"}, "from-file", "json"},
	} {
		e, _, errs := testEnv(c.env)
		if code := Run(context.Background(), e, append([]string{"version"}, c.args...)); code != exitcode.OK {
			t.Fatalf("%s: exit %d: %s", c.name, code, errs)
		}
		if e.data != c.data || e.out != c.out {
			t.Errorf("%s: data %q, output %q; want %q, %q", c.name, e.data, e.out, c.data, c.out)
		}
	}
}

func TestConfigFaults(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for text, want := range map[string]string{
		"dat: x\n":                      `c.yaml:1:1: unknown key "dat"; did you mean "data"?`,
		"data: x\nrun:\n  max-ded: 3\n": `c.yaml:3:3: unknown key "max-ded"; did you mean "max-dead"?`,
		"ruun:\n  max-dead: 3\n":        `c.yaml:1:1: there is no command "ruun"`,
		"version:\n  data: [1]\n":       `c.yaml:2:3: data wants one value`,
		"- a\n":                         `c.yaml:1:1: want keys and values`,
		"data: [":                       `c.yaml: yaml:`,
	} {
		if err := os.WriteFile("c.yaml", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		e, _, errs := testEnv(nil)
		code := Run(context.Background(), e, []string{"version", "-c", "c.yaml"})
		if code != exitcode.Input || !strings.Contains(errs.String(), want) {
			t.Errorf("%q: exit %d: %s, want %s", text, code, errs, want)
		}
	}
	e, _, errs := testEnv(nil)
	if code := Run(context.Background(), e, []string{"version", "-c", "missing.yaml"}); code != exitcode.Input || !strings.Contains(errs.String(), "missing.yaml") {
		t.Errorf("a file that is not there: exit %d: %s", code, errs)
	}
}
