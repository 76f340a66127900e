package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	githubevents "github.com/millrace/millrace/examples/github-events"
	"github.com/millrace/millrace/jobs/control"
)

// world is what one test works on: a data directory, the tables' folder, and
// job files beside them.
type world struct {
	// killed: its log was killed while it was written, and may have gaps.
	killed          bool
	t               testing.TB
	bin             string
	dir, data, lake string
	// env is added to each process's environment.
	env []string
	// out is where jobs write; "" is lake. fetch brings the tables from there to
	// lake, where they are compared.
	out   string
	fetch func()
}

// outPath is the value of the jobs' variable OUT.
func (w *world) outPath() string {
	if w.out != "" {
		return w.out
	}
	return w.lake
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "millrace-e2e-world-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("everything is left in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return &world{t: t, bin: millrace(t), dir: dir, data: filepath.Join(dir, "data"), lake: filepath.Join(dir, "lake")}
}

// file writes a file beside the data directory and gives its path.
func (w *world) file(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// ddl writes the shipped DDL of some topics and gives the folder.
func (w *world) ddl(topics ...string) string {
	w.t.Helper()
	files := githubevents.Files()
	wanted := map[string]bool{}
	for _, t := range topics {
		wanted[t] = true
	}
	err := fs.WalkDir(files, "ddl", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := files.ReadFile(p)
		if err != nil {
			return err
		}
		for t := range wanted {
			if strings.Contains(string(b), "CREATE TABLE `"+t+"`") {
				w.file(p, string(b))
				delete(wanted, t)
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(wanted) > 0 {
		w.t.Fatalf("no DDL for %v", wanted)
	}
	return filepath.Join(w.dir, "ddl")
}

// command is millrace with arguments, on this world's data directory.
func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(w.bin, args...)
	cmd.Dir = w.dir
	// A variable of the caller's shell must not decide what a test does.
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "MILLRACE_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(append(cmd.Env, "MILLRACE_DATA="+w.data), w.env...)
	return cmd
}

// start starts millrace and returns at once.
func (w *world) start(args ...string) *process {
	w.t.Helper()
	return launch(w.t, w.command(args...))
}

// run runs millrace to its end.
func (w *world) run(args ...string) result {
	w.t.Helper()
	return execute(w.t, w.command(args...), nil)
}

// feed runs millrace with stdin.
func (w *world) feed(stdin io.Reader, args ...string) result {
	w.t.Helper()
	return execute(w.t, w.command(args...), stdin)
}

// produce appends values, one a line, to a topic.
func (w *world) produce(topic string, values ...string) {
	w.t.Helper()
	w.feed(strings.NewReader(strings.Join(values, "\n")+"\n"), "topics", "produce", topic, "-i", "jsonl").must(w.t, 0)
}

// envelope is the frame of one-shot verbs with -o json.
type envelope struct {
	Command string          `json:"command"`
	OK      bool            `json:"ok"`
	Summary string          `json:"summary"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Hint    string `json:"hint"`
	} `json:"error"`
}

// ask runs a one-shot verb with -o json, wants exit code 0, and decodes its
// result into out.
func (w *world) ask(out any, args ...string) {
	w.t.Helper()
	r := w.run(append(args, "-o", "json")...).must(w.t, 0)
	var e envelope
	if err := json.Unmarshal([]byte(r.stdout), &e); err != nil {
		w.t.Fatalf("millrace %s -o json: %v\n%s", strings.Join(args, " "), err, r.stdout)
	}
	if err := json.Unmarshal(e.Result, out); err != nil {
		w.t.Fatalf("millrace %s -o json: result: %v\n%s", strings.Join(args, " "), err, e.Result)
	}
}

// dial connects to the owner of the data directory; nil while there is none.
func (w *world) dial() *control.Client {
	c, err := control.Dial(context.Background(), w.data)
	if err != nil {
		if !errors.Is(err, control.ErrNoOwner) {
			w.t.Fatal(err)
		}
		return nil
	}
	return c
}

// ledger asks a running process; nil while it does not answer.
func (w *world) ledger() []control.TableLedger {
	c := w.dial()
	if c == nil {
		return nil
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l, err := c.Ledger(ctx, "")
	if err != nil {
		return nil // it may have been killed meanwhile
	}
	return l
}

// jobs asks a running process; nil while it does not answer.
func (w *world) jobs() []control.Job {
	c := w.dial()
	if c == nil {
		return nil
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	jobs, err := c.Jobs(ctx)
	if err != nil {
		return nil
	}
	return jobs
}

// sums adds the ledger's lines of one table up.
func sums(l []control.TableLedger, table string) control.TableLedger {
	out := control.TableLedger{Table: table}
	for i := range l {
		t := &l[i]
		if t.Table != table {
			continue
		}
		out.Records += t.Records
		out.Read += t.Read
		out.Written += t.Written
		out.Folded += t.Folded
		out.Filtered += t.Filtered
		out.Dead += t.Dead
		out.Late += t.Late
		out.Open += t.Open
		out.Lost += t.Lost
	}
	return out
}

// untilLedger waits until the running process says of a table what ok wants.
func (w *world) untilLedger(p *process, table, what string, ok func(control.TableLedger) bool) control.TableLedger {
	w.t.Helper()
	var s control.TableLedger
	eventuallyOf(w.t, p, table+": "+what, func() (bool, string) {
		s = sums(w.ledger(), table)
		return ok(s), fmt.Sprintf("%+v", s)
	})
	return s
}
