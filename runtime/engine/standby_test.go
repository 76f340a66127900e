package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/lane/lanetest"
	"github.com/millrace/millrace/runtime/ledger"
)

// homesConnector opens table "t" at "main" or at "standby".
type homesConnector struct {
	*lanetest.Connector
	rule connector.Standby
}

func (c *homesConnector) Standby(*connector.Table) (*connector.Standby, error) {
	sb := c.rule
	sb.Table, sb.Main, sb.Standby = lanetest.Table("standby", schema, 1), "here", "there"
	return &sb, nil
}

func (c *homesConnector) OpenSink(ctx context.Context, t *connector.Table, _ connector.Owner) (connector.Sink, error) {
	name := t.Name
	if name != "standby" {
		name = "main"
	}
	s := c.Sinks[name].(*lanetest.Sink)
	return s, s.Probe(ctx)
}

// twoHomes is a job that writes topics a and b into one table with two homes.
type twoHomes struct {
	*world
	t    *testing.T
	rule connector.Standby
	want map[string]bool
}

func newTwoHomes(t *testing.T) *twoHomes {
	w := &twoHomes{world: newWorld("a", "b"), t: t, want: map[string]bool{}}
	w.bounded = false
	w.options["start.retry-timeout"] = "10 ms"
	return w
}

// feed appends an event in an hour to a topic.
func (w *twoHomes) feed(topic string, id, hr int64) {
	w.topics[topic].Append(0, event(id, hr*hour+id))
	w.want[fmt.Sprintf("%d|%d", id, hr)] = true
}

func (w *twoHomes) launch(p *lanetest.Process) (*engine.Run, *ledger.Book, error) {
	led, err := ledger.OpenLedger(context.Background(), p.Store())
	if err != nil {
		w.t.Fatal(err)
	}
	c := &homesConnector{rule: w.rule, Connector: &lanetest.Connector{Sources: map[string]connector.Source{},
		Sinks: map[string]connector.Sink{"main": p.Sink("main", w.sink), "standby": p.Sink("standby", w.sink)}}}
	j := &graph.Job{Name: "job", Options: w.options}
	var inputs []graph.NodeID
	for _, n := range []string{"a", "b"} {
		c.Sources["src_"+n] = p.Source(w.topics[n], lanetest.SourceOptions{MaxRecords: 5})
		id := graph.NodeID(len(j.Nodes))
		j.Nodes = append(j.Nodes, &graph.Node{ID: id, Schema: schema, TimeColumn: 2, Op: &graph.Source{Table: lanetest.Table("src_"+n, schema), Connector: c,
			Columns: []int{0, 1, 2}, Watermark: &expr.Column{Index: 2, Name: "ts", T: schema.Fields[2].Type}}})
		inputs = append(inputs, id)
	}
	union := graph.NodeID(len(j.Nodes))
	j.Nodes = append(j.Nodes, &graph.Node{ID: union, Op: &graph.Union{}, Inputs: inputs, Schema: schema, TimeColumn: 2})
	j.Nodes = append(j.Nodes, &graph.Node{ID: union + 1, Inputs: []graph.NodeID{union}, Schema: schema, TimeColumn: 2,
		Op: &graph.Sink{Table: lanetest.Table("t", schema, 1), Connector: c}})
	book := led.Book(ledger.Scope{Job: connector.UUID{9}})
	r, err := engine.Start(context.Background(), j, engine.Deps{Ledger: led, Scope: book.Scope(), DeadLetters: p.DeadLetters()})
	return r, book, err
}

func (w *twoHomes) begin(p *lanetest.Process) (*engine.Run, *ledger.Book) {
	w.t.Helper()
	r, b, err := w.launch(p)
	if err != nil {
		w.t.Fatal(err)
	}
	return r, b
}

// written waits until so many rows are committed, unless the process crashes.
func (w *twoHomes) written(r *engine.Run, p *lanetest.Process, n int64) {
	w.t.Helper()
	w.wait(r, p, fmt.Sprintf("%d rows", n), func(s engine.Status) bool {
		r.Roll("")
		return s.Tables[0].Counts.Written == n
	})
}

func (w *twoHomes) wait(r *engine.Run, p *lanetest.Process, what string, ok func(engine.Status) bool) {
	w.t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if s := r.Status(); ok(s) {
			for _, row := range s.Rows {
				if row.Counts.Open() != row.Open {
					w.t.Fatalf("the equation does not hold: %+v", row)
				}
			}
			return
		}
		select {
		case <-tick.C:
		case <-p.Dying():
			return
		case <-deadline:
			w.t.Fatalf("no %s after 30 s: %+v", what, r.Status())
		}
	}
}

// rows are what readers see who know each partition's home: of both homes, without
// what is void. Each must be there once.
func (w *twoHomes) verify(b *ledger.Book, table string) (atMain, atStandby []string) {
	w.t.Helper()
	fact, _ := b.Table(table)
	p := w.Process()
	for h, name := range map[uint8]string{connector.MainHome: "main", connector.StandbyHome: "standby"} {
		void := b.VoidArtifacts(fact.ID, h, func(*ledger.Moved) bool { return true })
		if err := p.Sink(name, w.sink).Retract(context.Background(), void); err != nil {
			w.t.Fatal(err)
		}
	}
	atMain, atStandby = w.Rows("main"), w.Rows("standby")
	seen := map[string]int{}
	for _, row := range slices.Concat(atMain, atStandby) {
		seen[row[:strings.LastIndexByte(row, '|')]]++
	}
	for row := range w.want {
		if seen[row] != 1 {
			w.t.Errorf("row %s is there %d times", row, seen[row])
		}
	}
	for row := range seen {
		if !w.want[row] {
			w.t.Errorf("row %s was never fed", row)
		}
	}
	for _, v := range b.Check() {
		w.t.Errorf("ledger: %s", v)
	}
	return atMain, atStandby
}

func hours(rows []string) []string {
	var out []string
	for _, r := range rows {
		out = append(out, strings.Split(r, "|")[1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestSwitchByHand: what is announced stays at the main home; every other partition
// moves with all its rows, also those below the resume position, which stays.
func TestSwitchByHand(t *testing.T) {
	w := newTwoHomes(t)
	p := w.Process()
	r, book := w.begin(p)
	for i := range int64(12) {
		w.feed("a", i, i/3) // hours 0 to 3
		w.feed("b", 100+i, i/3)
	}
	w.written(r, p, 24)
	// The watermark is in hour 3 and the delay one hour: 0, 1 and 2 are complete.
	w.wait(r, p, "announcements", func(s engine.Status) bool { return s.Tables[0].Announced == 3 })
	fact, _ := book.Table("t")
	before := book.Cursors(fact.ID)
	done, err := r.Switch(t.Context(), engine.SwitchRequest{Table: "t", To: connector.StandbyHome, Reason: "by hand"})
	if err != nil || done.Number != 1 || !slices.Equal(done.Moved, []string{"hr=3"}) || done.Rows != 6 {
		t.Fatalf("switched: %+v, %v", done, err)
	}
	for _, c := range before {
		if now, _ := book.Cursor(ledger.CursorKey{Output: c.Output, Topic: c.Topic, Partition: c.Partition}); now.Offset < c.Offset {
			t.Errorf("the resume position went back from %d to %d", c.Offset, now.Offset)
		}
	}
	for i := range int64(6) {
		w.feed("a", 200+i, 3+i/3)
		w.feed("b", 300+i, 3+i/3)
	}
	w.written(r, p, 36)
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	atMain, atStandby := w.verify(book, "t")
	if got := hours(atMain); !slices.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("hours at the main home: %v", got)
	}
	if got := hours(atStandby); !slices.Equal(got, []string{"3", "4"}) {
		t.Errorf("hours at the standby: %v", got)
	}
}

// TestSwitchWhileTheHomeIsAway: publishes hang in the air, and nobody can be asked;
// the rule moves the table by itself.
func TestSwitchWhileTheHomeIsAway(t *testing.T) {
	w := newTwoHomes(t)
	w.rule = connector.Standby{Auto: true, After: 60 * time.Millisecond}
	p := w.Process()
	r, book := w.begin(p)
	for i := range int64(9) {
		w.feed("a", i, 0)
		w.feed("b", 100+i, 0)
	}
	w.written(r, p, 18)
	// Published, and the answer is lost; from then on nothing answers.
	p.SetFault(func(op string) (error, bool, <-chan struct{}) {
		if op == "publish" {
			p.SetAway("main", true)
			return &lanetest.AwayError{Table: "main"}, true, nil
		}
		return nil, true, nil
	})
	for i := range int64(9) {
		w.feed("a", 200+i, 0)
		w.feed("b", 300+i, 0)
	}
	w.wait(r, p, "loss of the home", func(s engine.Status) bool {
		r.Roll("")
		return s.Tables[0].Home.Switches > 0 || !s.Tables[0].Home.FailingSince.IsZero()
	})
	p.SetFault(nil)
	w.written(r, p, 36)
	if s := r.Status().Tables[0].Home; s.Home != "standby" || s.Switches != 1 || s.MovingRows != 0 {
		t.Errorf("home: %+v", s)
	}
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if atMain, _ := w.verify(book, "t"); len(atMain) > 0 {
		t.Errorf("at the main home: %v", atMain)
	}

	// The next run starts at the standby while the other home is still away.
	p = w.Process()
	p.SetAway("main", true)
	r, book = w.begin(p)
	w.feed("a", 400, 0)
	w.written(r, p, 37)
	// By hand back: the partition has not ended, so it moves back as well, over the
	// void files that it has there.
	p.SetAway("main", false)
	if _, err := r.Switch(t.Context(), engine.SwitchRequest{Table: "t", To: connector.MainHome, Reason: "by hand"}); err != nil {
		t.Fatal(err)
	}
	w.feed("a", 401, 0)
	w.written(r, p, 38)
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, atStandby := w.verify(book, "t"); len(atStandby) > 0 {
		t.Errorf("at the standby: %v", atStandby)
	}
}

// TestStartWithoutTheHome: by the rule the start itself moves the table; without it
// the start says how.
func TestStartWithoutTheHome(t *testing.T) {
	w := newTwoHomes(t)
	p := w.Process()
	p.SetAway("main", true)
	if _, _, err := w.launch(p); err == nil || !strings.Contains(err.Error(), "millrace tables switch t --to standby") {
		t.Fatalf("started without its home: %v", err)
	}
	w.rule = connector.Standby{Auto: true, After: time.Hour}
	p = w.Process()
	p.SetAway("main", true)
	r, book := w.begin(p)
	w.feed("a", 1, 0)
	w.written(r, p, 1)
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.verify(book, "t")
}

// TestSwitchAtAnEdge: partitions that have begun stay where they are and get their
// later rows there; new ones begin at the other home.
func TestSwitchAtAnEdge(t *testing.T) {
	w := newTwoHomes(t)
	p := w.Process()
	r, book := w.begin(p)
	for i := range int64(6) {
		w.feed("a", i, i/3)
		w.feed("b", 100+i, i/3)
	}
	w.written(r, p, 12)
	done, err := r.Switch(t.Context(), engine.SwitchRequest{Table: "t", To: connector.StandbyHome, Edge: true, Reason: "by hand"})
	if err != nil || len(done.Moved) > 0 {
		t.Fatalf("switched: %+v, %v", done, err)
	}
	for i := range int64(9) {
		w.feed("a", 200+i, 1+i/3)
		w.feed("b", 300+i, 1+i/3)
	}
	w.written(r, p, 30)
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	atMain, atStandby := w.verify(book, "t")
	if got := hours(atMain); !slices.Equal(got, []string{"0", "1"}) {
		t.Errorf("hours at the main home: %v", got)
	}
	if got := hours(atStandby); !slices.Equal(got, []string{"2", "3"}) {
		t.Errorf("hours at the standby: %v", got)
	}
}

// TestSwitchOfAChangedJob: rows that do not come out of the log again stop the lane
// by name, and the partition is not announced.
func TestSwitchOfAChangedJob(t *testing.T) {
	w := newTwoHomes(t)
	p := w.Process()
	r, _ := w.begin(p)
	for i := range int64(5) {
		w.feed("a", i, 0)
	}
	w.written(r, p, 5)
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.sink.Refuse = func(row string) bool { return strings.HasPrefix(row, "3|") }
	p = w.Process()
	r, _ = w.begin(p)
	w.wait(r, p, "lanes", func(s engine.Status) bool { return !s.Recovering })
	if _, err := r.Switch(t.Context(), engine.SwitchRequest{Table: "t", To: connector.StandbyHome, Reason: "by hand"}); err != nil {
		t.Fatal(err)
	}
	w.wait(r, p, "stop", func(s engine.Status) bool {
		return slices.ContainsFunc(s.Lanes, func(l lane.Status) bool {
			return l.State == lane.Stopped && strings.Contains(l.Error, "partition hr=0") && strings.Contains(l.Error, "1 records give no row")
		})
	})
	r.Kill()
}

// TestSwitchBehindRetention: a partition whose records the log does not have any more
// keeps what it has where it is; what comes later is at the other home. So it is when
// the job runs, and when the switch was made while nothing ran.
func TestSwitchBehindRetention(t *testing.T) {
	for _, running := range []bool{true, false} {
		w := newTwoHomes(t)
		p := w.Process()
		r, book := w.begin(p)
		for i := range int64(6) {
			w.feed("a", i, 0)
		}
		w.written(r, p, 6)
		w.topics["a"].Truncate(0, 4)
		if !running {
			if err := r.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			fact, _ := book.Table("t")
			if _, err := book.Switch(t.Context(), ledger.SwitchOptions{Table: fact.ID, To: connector.StandbyHome, Reason: "by hand"}); err != nil {
				t.Fatal(err)
			}
			p = w.Process()
			r, book = w.begin(p)
		} else {
			done, err := r.Switch(t.Context(), engine.SwitchRequest{Table: "t", To: connector.StandbyHome, Reason: "by hand"})
			if err != nil || !slices.Equal(done.Stayed, []string{"hr=0"}) || done.Rows != 0 {
				t.Fatalf("switched: %+v, %v", done, err)
			}
		}
		for i := range int64(6) {
			w.feed("a", 100+i, 0)
		}
		w.written(r, p, 12)
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if atMain, atStandby := w.verify(book, "t"); len(atMain) != 6 || len(atStandby) != 6 {
			t.Errorf("running %v: %d rows at the main home, %d at the standby", running, len(atMain), len(atStandby))
		}
	}
}

// switchScript is what a process does in the crash tests, until it crashes: some rows,
// the switch, more rows. lost: the home goes away in the middle of a publish before
// the switch, so that nobody knows what became of its files.
func switchScript(w *twoHomes, p *lanetest.Process, lost bool) (*engine.Run, *ledger.Book) {
	r, book, err := w.launch(p)
	if err != nil {
		if p.Crashed() {
			return nil, nil
		}
		w.t.Fatal(err)
	}
	w.written(r, p, 12)
	if lost && !p.Crashed() {
		gone := make(chan struct{})
		p.SetFault(func(op string) (error, bool, <-chan struct{}) {
			if op == "publish" {
				p.SetAway("main", true)
				p.SetFault(nil)
				close(gone)
				return &lanetest.AwayError{Table: "main"}, true, nil
			}
			return nil, true, nil
		})
		w.feedMore()
		for waiting := true; waiting; {
			r.Roll("")
			select {
			case <-gone:
				waiting = false
			case <-p.Dying():
				waiting = false
			case <-time.After(time.Millisecond):
			}
		}
	}
	if !p.Crashed() {
		_, err := r.Switch(w.t.Context(), engine.SwitchRequest{Table: "t", To: connector.StandbyHome, Reason: "by hand"})
		if err != nil && !p.Crashed() {
			w.t.Fatal(err)
		}
	}
	w.feedMore()
	if !p.Crashed() {
		w.written(r, p, 20)
	}
	return r, book
}

// feedMore feeds the second half of the crash tests' rows, once.
func (w *twoHomes) feedMore() {
	if len(w.want) == 12 {
		for i := range int64(4) {
			w.feed("a", 200+i, 1+i/2)
			w.feed("b", 300+i, 1+i/2)
		}
	}
}

// TestCrashAtEveryStepOfASwitch crashes the process at each of its operations, from
// the first file to the last one after the switch. The next one starts without the
// main home; if the switch was not recorded, it is made while nothing runs. Then every
// row is there once, and none at the main home but those of announced partitions.
func TestCrashAtEveryStepOfASwitch(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("home lost %v", lost), func(t *testing.T) {
			fill := func() *twoHomes {
				w := newTwoHomes(t)
				for i := range int64(6) {
					w.feed("a", i, i/3)
					w.feed("b", 100+i, i/3)
				}
				return w
			}
			calm := fill()
			p := calm.Process()
			r, book := switchScript(calm, p, lost)
			if err := r.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			calm.verify(book, "t")
			n := len(p.Operations())
			step := 1
			if testing.Short() {
				step = 7
			}
			for at := 1; at <= n; at += step {
				for _, after := range []bool{false, true} {
					w := fill()
					p := w.Process()
					p.CrashAt(at, after)
					if r, _ := switchScript(w, p, lost); r != nil {
						r.Kill()
					}
					w.feedMore()
					w.recover()
					if t.Failed() {
						t.Fatalf("crash at operation %d of %d, after=%v", at, n, after)
					}
				}
			}
		})
	}
}

func (w *twoHomes) recover() {
	w.t.Helper()
	p := w.Process()
	p.SetAway("main", true)
	led, err := ledger.OpenLedger(context.Background(), p.Store())
	if err != nil {
		w.t.Fatal(err)
	}
	book := led.Book(ledger.Scope{Job: connector.UUID{9}})
	if fact, ok := book.Table("t"); ok {
		if _, err := book.Switch(context.Background(), ledger.SwitchOptions{Table: fact.ID, To: connector.StandbyHome, Reason: "by hand"}); err != nil {
			w.t.Fatal(err)
		}
	} else {
		p.SetAway("main", false) // nothing was ever written
	}
	r, book := w.begin(p)
	w.written(r, p, 20)
	if err := r.Stop(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	fact, _ := book.Table("t")
	if active, _ := book.ActiveHome(fact.ID); active == connector.MainHome {
		w.verify(book, "t")
		return
	}
	atMain, _ := w.verify(book, "t")
	for _, h := range hours(atMain) {
		if !slices.Contains(w.Announced("main"), "hr="+h) {
			w.t.Errorf("hour %s is at the main home and was not announced there", h)
		}
	}
}
