package filesystem

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/lane/lanetest"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/slot"
	"github.com/millrace/millrace/storage/vfs"
)

// crashFS cuts a process off at a filesystem operation: from then on neither
// its files nor its ledger change any more.
type crashFS struct {
	process *lanetest.Process
	mu      sync.Mutex
	left    int
}

func (c *crashFS) Inject(vfs.Op) error {
	c.mu.Lock()
	c.left--
	crash := c.left < 0
	c.mu.Unlock()
	if crash {
		c.process.Crash()
	}
	if c.process.Crashed() {
		return syscall.EIO
	}
	return nil
}

// TestLaneUnderCrashes runs a real lane into a real table directory and cuts
// the power again and again at random filesystem operations, with a random part
// of what was not synced surviving. In the end every row is there once.
func TestLaneUnderCrashes(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 8
	}
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		for _, f := range []string{"parquet", "json"} {
			t.Run(fmt.Sprintf("%s seed=%d", f, seed), func(t *testing.T) { laneUnderCrashes(t, seed, f, compressionNone) })
		}
		if compression := []string{compressionGzip, compressionZstd}[seed%2]; seed <= 16 {
			t.Run(fmt.Sprintf("json %s seed=%d", compression, seed), func(t *testing.T) { laneUnderCrashes(t, seed, "json", compression) })
		}
	}
}

func laneUnderCrashes(t *testing.T, seed uint64, format, compression string) {
	r := rand.New(rand.NewPCG(seed, 5))
	schema := lanetest.Schema("id", "BIGINT", "p", "STRING")
	topic := lanetest.NewTopic("clicks", schema, 2)
	total := int64(0)
	for part := range 2 {
		for range 60 {
			var rec lanetest.Record
			for range 1 + r.IntN(3) {
				rec.Rows = append(rec.Rows, []any{total, fmt.Sprintf("p%d", r.IntN(3))})
				total++
			}
			topic.Append(part, rec)
		}
	}
	cols := []connector.Column{{Field: schema.Fields[0]}, {Field: schema.Fields[1]}}
	with := map[string]string{"path": "/lake/t", "format": format, keyPolicy: "success-file", keyCompression: compression, keyFileSize: fmt.Sprint(100 + r.IntN(500))}
	world, mem := lanetest.NewWorld(), vfs.NewMem()
	lives := 0
	for finished := false; !finished; lives++ {
		if lives == 200 {
			t.Fatal("the lane does not come through 200 lives")
		}
		p := world.Process()
		crash := &crashFS{process: p, left: 5 + r.IntN(60) + lives*3}
		c := newConnector(vfs.NewFault(mem, crash))
		finished = laneLife(t, p, c, topic, tableOf(c, cols, []int{1}, with), uint64(lives+1))
		if !finished {
			mem = mem.CrashClone(vfs.CrashOptions{UnsyncedPercent: r.IntN(101), Rand: r})
		}
	}
	c := newConnector(mem)
	var ids []int64
	for _, b := range readTable(t, c, tableOf(c, cols, []int{1}, with), nil) {
		ids = append(ids, b.Cols[0].I64[:b.Len]...)
	}
	slices.Sort(ids)
	if int64(len(ids)) != total || ids[0] != 0 || ids[len(ids)-1] != total-1 || len(slices.Compact(ids)) != int(total) {
		t.Fatalf("%d rows, want %d, after %d lives", len(ids), total, lives)
	}
	t.Logf("%d rows after %d lives", len(ids), lives)
	led, err := ledger.OpenLedger(context.Background(), world.Store)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range led.Book(ledger.Scope{Job: conntest.UUID(1)}).Check() {
		t.Errorf("ledger: %s", v)
	}
}

// laneLife runs the lane until it has finished or its process has crashed.
func laneLife(t *testing.T, p *lanetest.Process, c *Connector, topic *lanetest.Topic, table *connector.Table, epoch uint64) bool {
	ctx := context.Background()
	led, err := ledger.OpenLedger(ctx, p.Store())
	if err != nil {
		t.Fatal(err)
	}
	sink, err := c.OpenSink(ctx, table, conntest.OwnerOf(1, epoch))
	if err != nil {
		if p.Crashed() {
			return false
		}
		t.Fatal(err)
	}
	defer sink.Close()
	source := &graph.Source{Table: lanetest.Table("topic", topic.Schema), Columns: []int{0, 1}}
	job := &graph.Job{Nodes: []*graph.Node{
		{Op: source, Schema: topic.Schema, TimeColumn: -1},
		{ID: 1, Op: &graph.Sink{Table: table}, Inputs: []graph.NodeID{0}, Schema: topic.Schema, TimeColumn: -1},
	}}
	fact := &ledger.Lane{ID: connector.LaneID{Topic: topic.ID}, Topic: topic.Name, Source: "topic"}
	parts := topic.Partitions()
	for _, x := range parts {
		fact.Partitions = append(fact.Partitions, x.ID)
	}
	l, err := lane.New(lane.Config{
		Name: topic.Name, Fact: fact, Partitions: parts, Job: job, Sources: []graph.NodeID{0},
		Source:  p.Source(topic, lanetest.SourceOptions{Bounded: true, MaxRecords: 9}),
		Outputs: []lane.OutputConfig{{Table: &ledger.Table{Name: "t", ID: conntest.UUID(9)}, Nodes: []graph.NodeID{1}, Sink: sink, SinkTable: table}},
		Book:    led.Book(ledger.Scope{Job: conntest.UUID(1)}), DeadLetters: p.DeadLetters(), Slot: slot.New(slot.Options{}),
		Notice:  func(string) {},
		Options: lane.Options{Linger: -1, RestartMin: time.Millisecond, RestartMax: 4 * time.Millisecond},
	})
	if err != nil {
		if p.Crashed() {
			return false
		}
		t.Fatal(err)
	}
	l.Start()
	select {
	case <-l.Done():
	case <-p.Dying():
		l.Kill()
		return false
	case <-time.After(30 * time.Second):
		state, err := l.State()
		t.Fatalf("the lane is %s after 30 s: %v", state, err)
	}
	state, err := l.State()
	if p.Crashed() {
		return false
	}
	if state != lane.Finished || err != nil {
		t.Fatalf("the lane is %s: %v", state, err)
	}
	return true
}
