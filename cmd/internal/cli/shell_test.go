package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/sql/assist"
	"github.com/millrace/millrace/sql/compile"
)

// keyboard is a terminal whose keys are known beforehand.
type keyboard struct {
	keys   io.Reader
	screen bytes.Buffer
}

func (k *keyboard) Read(p []byte) (int, error)  { return k.keys.Read(p) }
func (k *keyboard) Write(p []byte) (int, error) { return k.screen.Write(p) }

func edited(t *testing.T, keys string, h *history, ddl string) (*editedLines, *keyboard, *int) {
	t.Helper()
	registry, err := connectors(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	k := &keyboard{keys: strings.NewReader(keys)}
	s := &shellState{ddl: []control.SQLFile{{Name: "typed-1", Text: ddl}}}
	depth := 0
	raw := func() (func() error, error) { depth++; return func() error { depth--; return nil }, nil }
	complete := func(line string, pos int) assist.Completion {
		return s.complete(compile.Options{Registry: registry}, line, pos)
	}
	return newEditedLines(k, 80, 24, raw, h, complete), k, &depth
}

func TestShellEditing(t *testing.T) {
	const ddl = "CREATE TABLE clicks (user_id BIGINT, user_name STRING) WITH ('connector' = 'log', 'topic' = 'clicks', 'format' = 'json');"
	const up, left = "\x1b[A", "\x1b[D"
	h := &history{lines: []string{"SELECT 7;"}}
	r, k, depth := edited(t, up+"\r"+"SELECT 12;"+left+"3\r"+"SELECT user\t FROM cli\t;\r"+"SELECT user_\tn\t FROM clicks;\r", h, ddl)
	for _, want := range []string{"SELECT 7;", "SELECT 123;", "SELECT user_ FROM clicks;", "SELECT user_name FROM clicks;"} {
		got, err := r.readLine("millrace> ")
		if err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
		if *depth != 0 {
			t.Error("the terminal stays raw")
		}
	}
	if !strings.Contains(k.screen.String(), "user_id  user_name") {
		t.Errorf("Tab lists nothing: %q", k.screen.String())
	}
	if _, err := r.readLine(""); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestShellHistoryIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "millrace", "sql_history")
	h := openHistory(path)
	for _, l := range []string{"SELECT 1;", "SELECT 1;", "  ", "SELECT 2;"} {
		h.Add(l)
	}
	if err := h.save(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	h = openHistory(path)
	if h.Len() != 2 || h.At(0) != "SELECT 2;" || h.At(1) != "SELECT 1;" {
		t.Errorf("%q", h.lines)
	}
}
