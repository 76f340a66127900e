package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/connectors/format/rawfmt"
	"github.com/millrace/millrace/connectors/kafka"
	"github.com/millrace/millrace/connectors/logtopic"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/spec"
	"github.com/millrace/millrace/jobs/userfunc"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/client"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// world is a data directory and tables that outlive nodes. The files are in
// memory; the directory on disk holds the socket alone.
type world struct {
	t   *testing.T
	dir string
	mem *vfs.MemFS
	fs  vfs.FS // what the next node gets

	functions *userfunc.Set
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), mem: vfs.NewMem()}
	w.fs = w.mem
	return w
}

// ctx ends a test that hangs.
func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	w.t.Cleanup(cancel)
	return ctx
}

func connectors(log *client.Client, fsys vfs.FS) (*connector.Registry, error) {
	return connector.NewRegistry(logtopic.New(log, jsonfmt.Format{}), filesystem.New(fsys, nil, jsonfmt.Format{}),
		kafka.New(jsonfmt.Format{}, rawfmt.Format{}), kafka.NewUpsert(jsonfmt.Format{}, rawfmt.Format{}))
}

// open opens a node that is closed with the test.
func (w *world) open() *Node {
	w.t.Helper()
	n, err := w.tryOpen()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = n.Close() })
	return n
}

func (w *world) tryOpen() (*Node, error) {
	return Open(w.ctx(), Options{Dir: w.dir, FS: w.fs, Connectors: connectors, Version: "test", Command: "test", Functions: w.functions,
		Store: topiclog.Options{GroupDelay: time.Microsecond, RetentionInterval: -1, Shards: 1, ReserveBytes: -1}})
}

func (w *world) close(n *Node) {
	w.t.Helper()
	if err := n.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) topic(n *Node, name string, partitions int, config ...string) {
	w.t.Helper()
	c := map[string]string{}
	for i := 0; i < len(config); i += 2 {
		c[config[i]] = config[i+1]
	}
	if _, err := n.CreateTopic(w.ctx(), control.CreateTopic{Name: name, Partitions: partitions, Config: c}); err != nil {
		w.t.Fatal(err)
	}
}

// produce writes values into partition 0.
func (w *world) produce(n *Node, topic string, values ...string) {
	w.t.Helper()
	p, err := n.Produce(w.ctx(), topic, func(r *control.Record) error {
		if len(values) == 0 {
			return io.EOF
		}
		*r = control.Record{Value: []byte(values[0])}
		values = values[1:]
		return nil
	})
	if err != nil || p.Records == 0 {
		w.t.Fatalf("produced %+v: %v", p, err)
	}
}

// source and sink are the DDL of a topic and of a table of rows (id, x).
func source(name, topic string) string {
	return fmt.Sprintf("CREATE TABLE %s (id BIGINT, a BIGINT, b BIGINT) WITH ('connector'='log', 'topic'='%s', "+
		"'scan.startup.mode'='earliest-offset', 'scan.bounded.mode'='latest-offset', 'format'='json');\n", name, topic)
}

func (w *world) sink(name string) string {
	return fmt.Sprintf("CREATE TABLE `%s` (id BIGINT, x BIGINT) WITH ('connector'='filesystem', 'path'='%s', 'format'='json');\n",
		name, filepath.Join(w.dir, name))
}

func (w *world) options(job, sql string) RunOptions {
	return RunOptions{Files: []control.SQLFile{{Name: job + ".sql", Text: sql}}, Vars: spec.Vars{}, Path: "/jobs/" + job + ".sql", MaxDead: -1}
}

// run runs a bounded job to its end.
func (w *world) run(n *Node, o RunOptions) *Running {
	w.t.Helper()
	r, err := n.Start(w.ctx(), o)
	if err == nil {
		err = r.Wait(w.ctx())
	}
	if err != nil {
		w.t.Fatal(explain(err))
	}
	return r
}

// explain is an error with what was found in the files.
func explain(err error) string {
	var e *control.Error
	if errors.As(err, &e) && e.Rendered != "" {
		return e.Rendered
	}
	return err.Error()
}

func (w *world) replay(n *Node, table, sql string) control.Replayed {
	w.t.Helper()
	out, err := n.Replay(w.ctx(), control.Replay{Table: table, Files: []control.SQLFile{{Name: "job.sql", Text: sql}}})
	if err != nil {
		w.t.Fatal(explain(err))
	}
	return out
}

// rows are the lines of a table's files, sorted.
func (w *world) rows(table string) []string {
	w.t.Helper()
	dir := filepath.Join(w.dir, table)
	names, err := w.mem.List(dir)
	if errors.Is(err, vfs.ErrNotExist) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, name := range names {
		if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
			continue
		}
		f, err := w.mem.Open(filepath.Join(dir, name))
		if err != nil {
			w.t.Fatal(err)
		}
		b, err := io.ReadAll(f)
		if err != nil {
			w.t.Fatal(err)
		}
		f.Close()
		out = append(out, strings.Fields(string(b))...)
	}
	slices.Sort(out)
	return out
}

func (w *world) wantRows(table string, want ...string) {
	w.t.Helper()
	slices.Sort(want)
	if got := w.rows(table); !slices.Equal(got, want) {
		w.t.Errorf("table %s holds\n%s\nwant\n%s", table, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func row(id, x int64) string { return fmt.Sprintf(`{"id":%d,"x":%d}`, id, x) }

// letters are the dead letters as "table topic offset rows reason attempts".
func (w *world) letters(n *Node, q control.DeadQuery) []string {
	w.t.Helper()
	out := []string{}
	err := n.Dead(w.ctx(), q, func(r *control.DeadRecord) error {
		s := fmt.Sprintf("%s %s %d %v %s %d", r.Table, r.Topic, r.Offset, r.Rows, r.Reason, r.Attempts)
		if r.Replayed {
			s += " replayed"
		}
		out = append(out, s)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) wantLetters(n *Node, want ...string) {
	w.t.Helper()
	// Lanes write side by side: letters of two topics have no order.
	got := slices.Sorted(slices.Values(w.letters(n, control.DeadQuery{})))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.t.Errorf("dead letters\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// ledger is the equation of a table's first topic, which must hold.
func (w *world) ledger(n *Node, table string) control.TableLedger {
	w.t.Helper()
	all, err := n.Ledger(w.ctx(), table)
	if err != nil || len(all) == 0 {
		w.t.Fatalf("the ledger of %s: %v, %v", table, all, err)
	}
	for i := range all {
		if !all[i].Balanced() {
			w.t.Errorf("the equation does not hold: %+v", all[i])
		}
	}
	for _, s := range n.ledger.Scopes() {
		for _, v := range n.ledger.Book(s).Check() {
			w.t.Errorf("ledger: %s", v)
		}
	}
	return all[0]
}

// result collects the results of a query.
type result struct {
	columns []string
	rows    []string
	done    []string
}

func (r *result) Begin(cs []control.Column) error {
	for _, c := range cs {
		r.columns = append(r.columns, c.Name)
	}
	return nil
}
func (r *result) Row(o json.RawMessage) error { r.rows = append(r.rows, string(o)); return nil }
func (r *result) Done(s string) error         { r.done = append(r.done, s); return nil }

// wantInput checks that an error is the user's to mend and says a text.
func wantInput(t *testing.T, err error, text string) {
	t.Helper()
	var e *control.Error
	if !errors.As(err, &e) || e.Kind != "input" && e.Kind != "not_found" || !strings.Contains(e.Message, text) {
		t.Errorf("got %v, want an input error about %q", err, text)
	}
}

// awaitRead waits until a table's lanes have read rows records in all.
func (w *world) awaitRead(n *Node, table string, rows int64) {
	w.t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for ctx := w.ctx(); ; {
		all, err := n.Ledger(ctx, table)
		if err != nil {
			w.t.Fatal(err)
		}
		read := int64(0)
		for _, topic := range all {
			read += topic.Read
		}
		if read >= rows {
			return
		}
		select {
		case <-ctx.Done():
			w.t.Fatalf("the job has read %d rows, want %d", read, rows)
		case <-again.C:
		}
	}
}
