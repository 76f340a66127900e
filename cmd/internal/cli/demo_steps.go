package cli

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
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/millrace/millrace/cmd/internal/output"
	githubevents "github.com/millrace/millrace/examples/github-events"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/node"
	"github.com/millrace/millrace/sql/compile"
)

// demoPartitions is the number of partitions of a topic: as its traffic asks.
func demoPartitions(topic string) int {
	switch topic {
	case "PushEvent":
		return 3
	case "CreateEvent", "PullRequestEvent":
		return 2
	}
	return 1
}

// produce makes the topics and appends the events, each acknowledged after
// its fsync.
func (d *demoRun) produce(ctx context.Context) (err error) {
	n, err := d.e.open(ctx, "demo")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	for _, t := range githubevents.Topics {
		if _, err := n.CreateTopic(ctx, control.CreateTopic{Name: t, Partitions: demoPartitions(t)}); err != nil {
			return err
		}
	}
	start := time.Now()
	byTopic := map[string]*demoFeed{}
	var failed = make(chan error, len(githubevents.Topics))
	var bytes int64
	err = githubevents.Generate(githubevents.Options{Events: d.events, Spoil: true}, func(ev githubevents.Event) error {
		f := byTopic[ev.Topic]
		if f == nil {
			f = newDemoFeed()
			byTopic[ev.Topic] = f
			go func(topic string) {
				_, err := n.Produce(ctx, topic, f.next)
				f.stop()
				failed <- err
			}(ev.Topic)
		}
		if ev.Spoilt != githubevents.Sound {
			d.spoilt[ev.Spoilt]++
		}
		bytes += int64(len(ev.Value))
		return f.put(ev)
	})
	for _, f := range byTopic {
		close(f.records)
	}
	for range byTopic {
		err = errors.Join(err, <-failed)
	}
	if err != nil {
		return err
	}
	took := time.Since(start)
	d.say("%d topics, %s records, %s, on disk (fsync) in %s", len(githubevents.Topics), output.Thousands(int64(d.events)), output.Size(bytes), seconds(took))
	d.say("spoilt on purpose: %d broken JSON, %d of a wrong type, %d late by three hours",
		d.spoilt[githubevents.Broken], d.spoilt[githubevents.WrongType], d.spoilt[githubevents.Late])
	return nil
}

// demoFeed carries the events of one topic to its producer.
type demoFeed struct {
	records chan control.Record
	stopped chan struct{}
}

func newDemoFeed() *demoFeed {
	return &demoFeed{records: make(chan control.Record, 256), stopped: make(chan struct{})}
}

var errProducerGone = errors.New("the producer has ended")

func (f *demoFeed) put(ev githubevents.Event) error {
	r := control.Record{Value: slices.Clone(ev.Value), TimestampMillis: ev.TimestampMillis, AnyPartition: true}
	select {
	case f.records <- r:
		return nil
	case <-f.stopped:
		return errProducerGone
	}
}

func (f *demoFeed) next(r *control.Record) error {
	x, ok := <-f.records
	if !ok {
		return io.EOF
	}
	*r = x
	return nil
}

func (f *demoFeed) stop() { close(f.stopped) }

func (d *demoRun) check(context.Context) error {
	start := time.Now()
	job := jobFlags{ddl: []string{d.ddl}, set: []string{"OUT=" + d.lake}}
	c, err := d.e.compileOffline(&job, []string{d.job}, compile.Options{Mode: compile.ModeRun})
	if err != nil {
		return err
	}
	if err := c.Err(); err != nil {
		return err
	}
	d.say("%s", d.command("check", d.job, "-f", d.ddl))
	d.say("%s: %s, %s, compiled in %s", c.Summary(), output.Count(len(c.Unit.Explain.Lanes), "lane"), output.Count(len(c.Unit.Explain.State), "keyed stage"), seconds(time.Since(start)))
	return nil
}

// child starts the job in a process of its own.
func (d *demoRun) child(ctx context.Context, report string) (*exec.Cmd, *strings.Builder, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	args := []string{"run", d.job, "-f", d.ddl, "--data", d.data, "--set", "OUT=" + d.lake, "--set", "BOUNDED=latest-offset", "--progress", "none"}
	if report != "" {
		args = append(args, "--report", report)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	return cmd, &stderr, cmd.Start()
}

// runAndKill runs the job, kills it with SIGKILL when about half is read, and
// runs it again to its end.
func (d *demoRun) runAndKill(ctx context.Context) error {
	start := time.Now()
	cmd, stderr, err := d.child(ctx, "")
	if err != nil {
		return err
	}
	d.say("%s", d.command("run", d.job, "-f", d.ddl))
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	first, at, err := d.watchUntil(ctx, exited, start, func(p demoProgress) bool { return p.read >= d.halfOfAllRows() })
	if err != nil {
		return fmt.Errorf("%w\n%s", err, stderr)
	}
	if at == nil {
		d.say("the job ended before it could be killed: give it more --events")
	} else {
		if err := cmd.Process.Kill(); err != nil {
			return err
		}
		<-exited
		d.say("first rows read after %s; killed (SIGKILL) after %s with %s rows read, %s of them in open files",
			seconds(first), seconds(time.Since(start)), output.Thousands(at.read), output.Thousands(at.open))
	}
	report := filepath.Join(d.dir, "report.json")
	restart := time.Now()
	cmd, stderr, err = d.child(ctx, report)
	if err != nil {
		return err
	}
	exited = make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	recovered, _, err := d.watchUntil(ctx, exited, restart, func(demoProgress) bool { return false })
	if err != nil {
		return fmt.Errorf("%w\n%s", err, stderr)
	}
	if recovered > 0 {
		d.say("started again: reading on after %s", seconds(recovered))
	}
	b, err := os.ReadFile(report)
	if err != nil {
		return err
	}
	var r node.Report
	if err := json.Unmarshal(b, &r); err != nil {
		return err
	}
	d.say("ended by itself after %s more: %.2f CPU seconds, %s of memory at most", seconds(time.Since(restart)), r.CPUSeconds, output.Size(r.MaxRSSBytes))
	return nil
}

// halfOfAllRows is about half of what the job reads: every event goes to its
// own table and to the table of all events, and most go to the wide table.
func (d *demoRun) halfOfAllRows() int64 { return int64(d.events) * 14 / 10 }

// demoProgress is what the running job says, in rows of all tables.
type demoProgress struct{ read, open int64 }

// watchUntil asks the running job what it does until stop says so (then at is
// what it was) or the process has ended (at is nil). first is how long the
// first row took.
func (d *demoRun) watchUntil(ctx context.Context, exited chan error, start time.Time, stop func(demoProgress) bool) (first time.Duration, at *demoProgress, err error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var shown time.Time
	defer d.e.noBar()
	for {
		select {
		case err := <-exited:
			return first, nil, err
		case <-ctx.Done():
			return first, nil, ctx.Err()
		case <-tick.C:
		}
		p, line, ok := d.ask(ctx)
		if !ok {
			continue
		}
		if first == 0 && p.read > 0 {
			first = time.Since(start)
		}
		if d.e.StderrTerminal && time.Since(shown) > 200*time.Millisecond {
			shown = time.Now()
			d.e.bar("   " + line)
		}
		if stop(p) {
			return first, &p, nil
		}
	}
}

// ask asks the job's process; it may not be there yet, or not any more.
func (d *demoRun) ask(ctx context.Context) (p demoProgress, line string, ok bool) {
	c, err := control.Dial(ctx, d.data)
	if err != nil {
		return p, "", false
	}
	defer c.Close()
	jobs, err := c.Jobs(ctx)
	if err != nil || len(jobs) == 0 || jobs[0].State == "stopped" {
		return p, "", false
	}
	tables, err := c.Ledger(ctx, "")
	if err != nil {
		return p, "", false
	}
	var dead, late, lag int64
	for _, t := range tables {
		p.read += t.Read
		p.open += t.Open
		dead += t.Dead
		late += t.Late
	}
	for _, l := range jobs[0].Lanes {
		lag += l.Lag
	}
	return p, fmt.Sprintf("%s rows read, lag %s records, open %s, dead %d, late %d",
		output.Thousands(p.read), output.Thousands(lag), output.Thousands(p.open), dead, late), true
}

// demoTable is a table as it lies on disk.
type demoTable struct {
	files, partitions, announced int
	bytes                        int64
}

func (d *demoRun) tableOnDisk(name string) (t demoTable, err error) {
	err = filepath.WalkDir(filepath.Join(d.lake, name), func(p string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case entry.IsDir() && strings.HasPrefix(entry.Name(), "hr="):
			t.partitions++
		case entry.Name() == "_SUCCESS":
			t.announced++
		case strings.HasSuffix(entry.Name(), ".parquet"):
			info, err := entry.Info()
			if err != nil {
				return err
			}
			t.files++
			t.bytes += info.Size()
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return t, err
}

func (d *demoRun) written(ctx context.Context) (err error) {
	var r node.Report
	b, err := os.ReadFile(filepath.Join(d.dir, "report.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return err
	}
	rows := output.NewRows(indented{d.e.Stdout}, output.Table, 0, "TABLE", "ROWS", "FILES", "PARTITIONS", "ANNOUNCED", "SIZE")
	sort.Slice(r.Tables, func(i, j int) bool { return r.Tables[i].Rows > r.Tables[j].Rows })
	for _, t := range r.Tables {
		disk, err := d.tableOnDisk(t.Table)
		if err != nil {
			return err
		}
		if err := rows.Write(output.Text(t.Table), output.Number(t.Rows), output.Number(disk.files), output.Number(disk.partitions), output.Number(disk.announced), output.Bytes(disk.bytes)); err != nil {
			return err
		}
	}
	if err := rows.Close(); err != nil {
		return err
	}
	n, err := d.e.open(ctx, "demo")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	const q = "SELECT actor_id, dt, hr, pushes, commits, refs_made, pull_requests, stars, seen_in FROM actor_hour ORDER BY pushes DESC, actor_id LIMIT 5"
	fmt.Fprintln(d.e.Stdout)
	d.say("%s", q)
	p := &demoTablePrinter{w: indented{d.e.Stdout}}
	return n.Query(ctx, control.Query{Job: "github-events", Files: []control.SQLFile{{Name: "query", Text: q}}}, p)
}

// demoTablePrinter prints a result as a table, whatever -o says.
type demoTablePrinter struct {
	w    io.Writer
	cols []control.Column
	rows *output.Rows
}

func (p *demoTablePrinter) Begin(cols []control.Column) error {
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = c.Name
	}
	p.cols, p.rows = cols, output.NewRows(p.w, output.Table, 0, names...)
	return nil
}

func (p *demoTablePrinter) Row(object json.RawMessage) error {
	cells, err := cellsOf(object, p.cols)
	if err != nil {
		return err
	}
	return p.rows.Write(cells...)
}

func (p *demoTablePrinter) Done(string) error { return p.rows.Close() }

// indented puts three blanks before each line.
type indented struct{ w io.Writer }

func (i indented) Write(b []byte) (int, error) {
	text := strings.TrimSuffix(string(b), "\n")
	_, err := io.WriteString(i.w, "   "+strings.ReplaceAll(text, "\n", "\n   ")+"\n")
	return len(b), err
}

func (d *demoRun) proof(ctx context.Context) (err error) {
	n, err := d.e.open(ctx, "demo")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	tables, err := n.Ledger(ctx, "")
	if err != nil {
		return err
	}
	sums := map[string]*control.TableLedger{}
	var names []string
	for i := range tables {
		t := &tables[i]
		if !t.Balanced() {
			return fmt.Errorf("the equation does not hold for table %s, topic %s: %+v", t.Table, t.Topic, *t)
		}
		s := sums[t.Table]
		if s == nil {
			s = &control.TableLedger{Table: t.Table}
			sums[t.Table] = s
			names = append(names, t.Table)
		}
		s.Read += t.Read
		s.Written += t.Written
		s.Folded += t.Folded
		s.Filtered += t.Filtered
		s.Dead += t.Dead
		s.Late += t.Late
		s.Open += t.Open
	}
	sort.Slice(names, func(i, j int) bool { return sums[names[i]].Read > sums[names[j]].Read })
	d.say("read = written + folded + filtered + dead + late + open, for every table and topic:")
	rows := output.NewRows(indented{d.e.Stdout}, output.Table, 0, "TABLE", "READ", "WRITTEN", "FOLDED", "FILTERED", "DEAD", "LATE", "OPEN")
	for _, name := range names {
		t := sums[name]
		if err := rows.Write(output.Text(name), output.Number(t.Read), output.Number(t.Written), output.Number(t.Folded), output.Number(t.Filtered), output.Number(t.Dead), output.Number(t.Late), output.Number(t.Open)); err != nil {
			return err
		}
	}
	if err := rows.Close(); err != nil {
		return err
	}
	return d.deadLetters(ctx, n)
}

// deadLetters shows the reasons and one example.
func (d *demoRun) deadLetters(ctx context.Context, api control.API) error {
	reasons := map[string]int{}
	var example *control.DeadRecord
	if err := api.Dead(ctx, control.DeadQuery{}, func(r *control.DeadRecord) error {
		reasons[r.Reason]++
		if example == nil || example.Column == "" && r.Column != "" {
			x := *r
			example = &x
		}
		return nil
	}); err != nil {
		return err
	}
	var list []string
	for r, n := range reasons {
		list = append(list, fmt.Sprintf("%s %d", r, n))
	}
	sort.Strings(list)
	fmt.Fprintln(d.e.Stdout)
	d.say("dead letters by reason: %s", strings.Join(list, ", "))
	if example != nil {
		where := fmt.Sprintf("table %s, topic %s, partition %d, offset %d", example.Table, example.Topic, example.Partition, example.Offset)
		if example.Column != "" {
			where += ", column " + example.Column
		}
		d.say("for example %s: %s (%s)", where, example.Message, example.Reason)
	}
	return nil
}

// next says what to try.
func (d *demoRun) next(kept bool) {
	data := "DIR/data"
	if kept {
		data = d.data
	}
	fmt.Fprintln(d.e.Stdout, "Next:")
	if !kept {
		fmt.Fprintln(d.e.Stdout, "   millrace demo --keep DIR          the same, and everything stays in DIR")
		fmt.Fprintln(d.e.Stdout, "   millrace sql --data DIR/data --job github-events -e 'SELECT COUNT(*) FROM events'")
		fmt.Fprintln(d.e.Stdout, "   millrace dead ls push --data DIR/data")
		return
	}
	fmt.Fprintf(d.e.Stdout, "   %s\n", d.command("sql", "--data", data, "--job", "github-events", "-e", "'SELECT COUNT(*) FROM events'"))
	fmt.Fprintf(d.e.Stdout, "   %s\n", d.command("dead", "ls", "push", "--data", data))
	fmt.Fprintf(d.e.Stdout, "   %s\n", d.command("file", "verify", d.lake))
}
