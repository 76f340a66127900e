package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestKill kills the real binary with SIGKILL at random moments of a continuous
// load, restarts it each time, and then compares every table with the log.
func TestKill(t *testing.T) { killRun(t, 20, 30_000) }

// TestKillTorture is TestKill for longer; its outcome can be kept.
func TestKillTorture(t *testing.T) {
	if !torture() {
		t.Skip("set MILLRACE_TORTURE=1")
	}
	killRun(t, 300, 400_000)
}

// killRun gives the world as the kills left it, and what must be in its tables.
func killRun(t *testing.T, kills, events int) (*world, *outcome) {
	t.Helper()
	return killRunOf(t, killRunOptions{kills: kills, events: events})
}

// killRunOptions are a killRun on other systems.
type killRunOptions struct {
	kills, events int
	// life is how long a process lives at most before it is killed; 0: 2.2 s.
	life time.Duration
	// prepare is given the new world.
	prepare func(w *world)
	// sql changes the job's text; during does something to other systems while
	// the job runs, before it is killed for the i-th time.
	sql    func(string) string
	during func(w *world, p *process, i int)
	// calm takes back what during has left, before the process that is left alone: one
	// that cannot commit when it is stopped rightly ends with 1.
	calm func()
	// verify compares what is left with what must be; nil: world.verify.
	verify func(w *world, want *outcome)
}

func killRunOf(t *testing.T, o killRunOptions) (*world, *outcome) {
	t.Helper()
	kills, events := o.kills, o.events
	if o.life == 0 {
		o.life = 2200 * time.Millisecond
	}
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	began := time.Now()

	w := newWorld(t)
	if o.prepare != nil {
		o.prepare(w)
	}
	var topics []string
	for topic, n := range killTopics {
		topics = append(topics, topic)
		w.run("topics", "create", topic, "--partitions", fmt.Sprint(n)).must(t, 0)
	}
	ddl := w.ddl(topics...)
	sql, err := os.ReadFile("testdata/kill.sql")
	if err != nil {
		t.Fatal(err)
	}
	text := string(sql)
	if o.sql != nil {
		text = o.sql(text)
	}
	job := w.file("kill.sql", text)
	args := []string{"run", job, "-f", ddl, "--set", "OUT=" + w.outPath(), "--progress", "none"}

	l, err := newLoad(events, killTopics, 40)
	if err != nil {
		t.Fatal(err)
	}
	f := newFeeder(w, l, 20*time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	var producers sync.WaitGroup
	producers.Add(1)
	go func() { defer producers.Done(); f.run(ctx) }()
	defer func() { cancel(); producers.Wait() }()

	between := 0
	for i := range kills {
		f.allow(len(l.batches) * (i + 1) / kills)
		p := w.start(args...)
		if o.during != nil {
			o.during(w, p, i)
		}
		// Anywhere from the middle of the recovery to seconds of work.
		life := time.NewTimer(50*time.Millisecond + time.Duration(rng.Int64N(int64(o.life))))
		select {
		case <-life.C:
		case <-p.ended:
			t.Fatalf("after %d kills the process ended by itself with %d\n%s", i, p.state.ExitCode(), p.stderr.String())
		}
		p.kill()
		if rng.IntN(4) == 0 {
			between += w.produceWhileDown(f, rng)
		}
	}
	// The rest of the load, by a process that is left alone, and the end.
	f.allow(len(l.batches))
	if o.calm != nil {
		o.calm()
	}
	p := w.start(args...)
	eventuallyOf(t, p, "the whole load is appended", func() (bool, string) {
		return f.left() == 0 && w.jobs() != nil, fmt.Sprintf("%d batches are left", f.left())
	})
	cancel()
	producers.Wait()
	if err := f.refusals(); err != nil {
		t.Errorf("appending: %v", err)
	}
	p.terminate()
	if code := p.wait(); code != 0 {
		t.Fatalf("after SIGTERM: exit code %d\n%s", code, p.stderr.String())
	}
	last := w.run(append(args, "--set", "BOUNDED=latest-offset")...).must(t, 0)
	t.Logf("the last run said:\n%s", last.stderr)

	w.killed = true
	byTopic := map[string][]logged{}
	records := 0
	for _, topic := range topics {
		byTopic[topic] = w.consume(topic)
		records += len(byTopic[topic])
	}
	checkLog(t, l, byTopic)
	want := killOutcome(t, byTopic)
	if w.fetch != nil {
		w.fetch()
	}
	if o.verify == nil {
		o.verify = (*world).verify
	}
	o.verify(w, want)

	how := "every row exactly once"
	if t.Failed() {
		how = "FAILED"
	}
	t.Logf("%d kills, %d records (%d by a producer while the job was down), %v", kills, records, between, time.Since(began).Round(time.Second))
	keepOutcome(t, fmt.Sprintf("| %s | %s | %d | %d | %d | %v | %s |",
		time.Now().UTC().Format("2006-01-02"), commit(), seed, kills, records, time.Since(began).Round(time.Second), how))
	return w, want
}

// produceWhileDown lets a process of its own append a batch, which owns the
// data directory meanwhile, and sometimes kills that one, too. It returns the
// number of records.
func (w *world) produceWhileDown(f *feeder, rng *rand.Rand) int {
	w.t.Helper()
	b, _ := f.take(true)
	if b == nil {
		return 0
	}
	var lines bytes.Buffer
	for _, v := range b.values {
		fmt.Fprintf(&lines, `{"partition":%d,"value_base64":"%s"}`+"\n", b.partition, base64.StdEncoding.EncodeToString(v))
	}
	cmd := w.command("topics", "produce", b.topic, "-i", "json-envelope")
	cmd.Stdin = &lines
	p := launch(w.t, cmd)
	if rng.IntN(3) == 0 {
		life := time.NewTimer(time.Duration(rng.IntN(60)) * time.Millisecond)
		select {
		case <-life.C:
		case <-p.ended:
		}
		p.kill()
	}
	if code := p.wait(); code == 0 {
		b.acknowledged = true
	} else if code > 0 {
		w.t.Errorf("producing while the job is down: exit code %d\n%s", code, p.stderr.String())
	}
	return len(b.values)
}

// checkLog compares the log with what was appended: every acknowledged record
// is there once, in its order, and nothing that nobody sent.
func checkLog(t *testing.T, l *load, byTopic map[string][]logged) {
	t.Helper()
	in := map[string]int{}
	for topic, records := range byTopic {
		for i := range records {
			in[fmt.Sprintf("%s %d %s", topic, records[i].Partition, records[i].bytes())]++
		}
	}
	missing, acknowledged := 0, 0
	for _, b := range l.batches {
		for _, v := range b.values {
			k := fmt.Sprintf("%s %d %s", b.topic, b.partition, v)
			if b.acknowledged {
				acknowledged++
				if in[k] == 0 {
					missing++
				}
			}
			if in[k] > 0 {
				in[k]--
			}
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d acknowledged records are not in the log", missing, acknowledged)
	}
	for k, n := range in {
		if n > 0 {
			t.Errorf("the log has %d times what nobody sent: %.80s", n, k)
		}
	}
}

// commit is the commit that the tests were built from, as git says.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// keepOutcome appends a line of a table to the file of -torture.log.
func keepOutcome(t *testing.T, line string) {
	t.Helper()
	if *tortureLog == "" {
		return
	}
	path, err := filepath.Abs(*tortureLog)
	if err != nil {
		t.Fatal(err)
	}
	const head = "| date | commit | seed | kills | records | took | outcome |\n|---|---|---|---|---|---|---|\n"
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if !bytes.Contains(old, []byte(head)) {
		line = "\n## Kill runs\n\n" + head + line
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString(line + "\n")
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
