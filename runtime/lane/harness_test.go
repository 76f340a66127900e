package lane_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/lane/lanetest"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/slot"
)

// Columns of the topic: id, p names the table partition, ok is the WHERE, v a
// value that may be an error.
var topicSchema = lanetest.Schema("id", "BIGINT", "p", "STRING", "ok", "BOOLEAN", "v", "BIGINT")
var tableSchema = lanetest.Schema("id", "BIGINT", "p", "STRING", "v", "BIGINT")

func column(s *batch.Schema, i int) expr.Expr {
	return &expr.Column{Index: i, Name: s.Fields[i].Name, T: s.Fields[i].Type}
}

// setup is a topic, the job INSERT INTO t... SELECT id, p, v FROM topic WHERE
// ok for each table, and the sinks' options.
type setup struct {
	topic   *lanetest.Topic
	tables  []string
	sink    lanetest.SinkOptions
	source  lanetest.SourceOptions
	options lane.Options
	onError graph.ErrorPolicy
	notNull graph.ErrorPolicy
	// noWhere drops the WHERE: the edited job.
	noWhere bool
	// required makes column v of the tables NOT NULL.
	required bool
	clock    slot.Clock
	set      uint32 // number of the lane's set of partitions
	endsBy   uint64
	// more adds a branch that ends at a second sink node of the first table.
	more      func(*graph.Job) graph.NodeID
	openFiles int
	newEnds   bool
}

var scope = ledger.Scope{Job: connector.UUID{1, 2, 3}}

func (s *setup) job() *graph.Job {
	src := &graph.Source{Table: lanetest.Table("topic", topicSchema), Columns: []int{0, 1, 2, 3}}
	j := &graph.Job{Nodes: []*graph.Node{{Op: src, Schema: topicSchema, TimeColumn: -1}}}
	add := func(op graph.Op, schema *batch.Schema, inputs ...graph.NodeID) graph.NodeID {
		id := graph.NodeID(len(j.Nodes))
		j.Nodes = append(j.Nodes, &graph.Node{ID: id, Op: op, Inputs: inputs, Schema: schema, TimeColumn: -1})
		return id
	}
	for _, name := range s.tables {
		in := graph.NodeID(0)
		if !s.noWhere {
			in = add(&graph.Filter{Predicate: column(topicSchema, 2)}, topicSchema, in)
		}
		in = add(&graph.Project{Exprs: []expr.Expr{column(topicSchema, 0), column(topicSchema, 1), column(topicSchema, 3)}}, tableSchema, in)
		tab := lanetest.Table(name, tableSchema)
		tab.Columns[2].Type.Nullable = !s.required
		add(&graph.Sink{Table: tab}, tableSchema, in)
	}
	return j
}

// life is a lane in a process.
type life struct {
	*lane.Lane
	book    *ledger.Book
	process *lanetest.Process
	mu      sync.Mutex
	notices []string
}

// start opens the ledger as a process would and starts its lane.
func (s *setup) start(t *testing.T, p *lanetest.Process) *life {
	t.Helper()
	l, err := s.open(p)
	if err != nil {
		t.Fatal(err)
	}
	l.Start()
	return l
}

func (s *setup) open(p *lanetest.Process) (*life, error) {
	ctx := context.Background()
	led, err := ledger.OpenLedger(ctx, p.Store())
	if err != nil {
		return nil, err
	}
	l := &life{book: led.Book(scope), process: p}
	job := s.job()
	parts := s.topic.Partitions()
	fact := &ledger.Lane{ID: connector.LaneID{Topic: s.topic.ID, Set: s.set}, Topic: s.topic.Name, Source: "topic"}
	for _, x := range parts {
		fact.Partitions = append(fact.Partitions, x.ID)
	}
	cfg := lane.Config{Name: s.topic.Name, Fact: fact, Partitions: parts, Job: job, Sources: []graph.NodeID{0},
		Source: p.Source(s.topic, s.source), Book: l.book, EndsBy: s.endsBy, NewEnds: s.newEnds, DeadLetters: p.DeadLetters(),
		Slot: slot.New(slot.Options{Clock: s.clock, OpenFiles: s.openFiles}), Options: s.options,
		Notice: func(line string) { l.mu.Lock(); l.notices = append(l.notices, line); l.mu.Unlock() }}
	if cfg.Options.RestartMin == 0 {
		cfg.Options.RestartMin, cfg.Options.RestartMax = time.Millisecond, 4*time.Millisecond
	}
	if cfg.Options.Linger == 0 {
		cfg.Options.Linger = -1
	}
	for _, n := range slices.Clone(job.Nodes) {
		sink, ok := n.Op.(*graph.Sink)
		if !ok {
			continue
		}
		tab := &ledger.Table{Name: sink.Table.Name}
		copy(tab.ID[:], "table-"+sink.Table.Name)
		out := lane.OutputConfig{Table: tab, Nodes: []graph.NodeID{n.ID}, Sink: p.Sink(sink.Table.Name, s.sink),
			SinkTable: sink.Table, OnError: s.onError, NotNull: s.notNull}
		cfg.Outputs = append(cfg.Outputs, out)
	}
	if s.more != nil {
		cfg.Outputs[0].Nodes = append(cfg.Outputs[0].Nodes, s.more(job))
	}
	l.Lane, err = lane.New(cfg)
	return l, err
}

// await waits until the lane has ended or its process has crashed; then nothing
// of the process runs any more.
func (l *life) await(t *testing.T) {
	t.Helper()
	select {
	case <-l.Done():
	case <-l.process.Dying():
		l.Kill()
	case <-time.After(20 * time.Second):
		state, err := l.State()
		t.Fatalf("the lane is %s after 20 s: %v\n%+v", state, err, l.Status())
	}
}

// want is what must become of a topic's records.
type want struct {
	rows                        []string
	read, filtered, dead, empty int64
	letters                     []string
}

// expect works out the fates from the records, as SQL says: the row is written
// where ok is TRUE and v is no error, dead where ok is an error or v is one
// that is reached.
func expect(parts [][]lanetest.Record, noWhere bool) want {
	var w want
	for p, records := range parts {
		for o, r := range records {
			switch {
			case r.Note == batch.CodeEmpty:
				w.read++
				w.filtered++
			case r.Note != "":
				w.read++
				w.dead++
				w.letters = append(w.letters, fmt.Sprintf("%d/%d", p, o))
			}
			for i, row := range r.Rows {
				w.read++
				_, okBad := row[2].(lanetest.Bad)
				_, vBad := row[3].(lanetest.Bad)
				switch {
				case !noWhere && okBad, vBad && (noWhere || row[2] == true):
					w.dead++
					w.letters = append(w.letters, fmt.Sprintf("%d/%d/%d", p, o, i))
				case noWhere || row[2] == true:
					w.rows = append(w.rows, fmt.Sprintf("%v|%v|%s", row[0], row[1], cell(row[3])))
				default:
					w.filtered++
				}
			}
		}
	}
	slices.Sort(w.rows)
	slices.Sort(w.letters)
	return w
}

func cell(v any) string {
	if v == nil {
		return "NULL"
	}
	return fmt.Sprint(v)
}

// records makes random records: single rows, arrays over several partitions of
// the table, empty and malformed ones, errors, gaps.
func records(r *rand.Rand, n int, next *int64) []lanetest.Record {
	row := func() []any {
		*next++
		out := []any{*next, fmt.Sprintf("p%d", r.IntN(3)), r.IntN(4) > 0, int64(r.IntN(100))}
		switch r.IntN(12) {
		case 0:
			out[2] = lanetest.Bad{Code: batch.CodeTypeMismatch, Message: "not a boolean"}
		case 1:
			out[3] = lanetest.Bad{Code: batch.CodeOverflow, Message: "too large"}
		case 2:
			out[2] = nil
		case 3:
			out[3] = nil
		}
		return out
	}
	var out []lanetest.Record
	for range n {
		var rec lanetest.Record
		switch r.IntN(10) {
		case 0:
			rec.Note = batch.CodeMalformed
		case 1:
			rec.Note = batch.CodeEmpty
		case 2: // compacted away
		case 3, 4:
			for range 1 + r.IntN(4) {
				rec.Rows = append(rec.Rows, row())
			}
		default:
			rec.Rows = [][]any{row()}
		}
		out = append(out, rec)
	}
	return out
}

// verify compares a table of the world with what must be, by its rows, its
// dead letters and the equation of a ledger read anew.
func (s *setup) verify(t *testing.T, w *lanetest.World, table string, want want) {
	t.Helper()
	if got := w.Rows(table); !slices.Equal(got, want.rows) {
		t.Errorf("table %s has %d rows, want %d:%s", table, len(got), len(want.rows), diff(got, want.rows))
	}
	var letters []string
	for _, e := range w.Dead() {
		if e.TableName != table {
			continue
		}
		if e.Rows == nil {
			letters = append(letters, fmt.Sprintf("%d/%d", e.Partition, e.Offset))
		}
		for _, i := range e.Rows {
			letters = append(letters, fmt.Sprintf("%d/%d/%d", e.Partition, e.Offset, i))
		}
	}
	slices.Sort(letters)
	if !slices.Equal(letters, want.letters) {
		t.Errorf("table %s has dead letters%s", table, diff(letters, want.letters))
	}
	s.counts(t, w, table, want)
}

// counts compares the sums of a ledger read anew.
func (s *setup) counts(t *testing.T, w *lanetest.World, table string, want want) {
	t.Helper()
	book := s.equation(t, w)
	var sum ledger.Counts
	for _, r := range book.Rows() {
		if r.Table.ID == tableID(table) {
			sum.Add(&r.Counts)
			if end := s.topic.End(int(r.Partition)); r.Resume != end {
				t.Errorf("table %s: partition %d would resume at %d, not at the end %d", table, r.Partition, r.Resume, end)
			}
		}
	}
	if sum.Read != want.read || sum.Filtered.Sum() != want.filtered || sum.Dead.Sum() != want.dead || sum.Written != int64(len(want.rows)) {
		t.Errorf("table %s: ledger says read %d written %d filtered %d dead %d, want %d %d %d %d", table,
			sum.Read, sum.Written, sum.Filtered.Sum(), sum.Dead.Sum(), want.read, len(want.rows), want.filtered, want.dead)
	}
}

func tableID(name string) (id connector.UUID) {
	copy(id[:], "table-"+name)
	return id
}

// diff lists what one sorted list has more often than the other.
func diff(got, want []string) string {
	count := map[string]int{}
	for _, x := range got {
		count[x]++
	}
	for _, x := range want {
		count[x]--
	}
	out := ""
	for x, n := range count {
		if n != 0 {
			out += fmt.Sprintf(" %s(%+d)", x, n)
		}
	}
	return out
}

// equation checks the ledger alone.
func (s *setup) equation(t *testing.T, w *lanetest.World) *ledger.Book {
	t.Helper()
	led, err := ledger.OpenLedger(context.Background(), w.Store)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range led.Book(scope).Check() {
		t.Errorf("ledger: %s", v)
	}
	return led.Book(scope)
}
