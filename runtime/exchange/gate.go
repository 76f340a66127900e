package exchange

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
)

// GateConfig of a Gate.
type GateConfig struct {
	// Bounded: every source ends. Batch: nothing is late, so nothing fires before
	// the end.
	Bounded, Batch bool
	// Lanes are the lanes that the job has; a stage's watermark waits for all of
	// those that read its sources.
	Lanes func() []*ledger.Lane
	// Restored are the hand-over positions that the checkpoint holds.
	Restored []ledger.Cursor
}

// StageConfig is a stage as the Gate sees it.
type StageConfig struct {
	Name string
	// Inboxes of the stage's tasks; the Gate writes their channel 0.
	Inboxes []*Inbox
	// Watermark that the stage was restored with.
	Watermark int64
	Entrances []EntranceConfig
}

// EntranceConfig is an exchange node that lanes feed.
type EntranceConfig struct {
	Node  graph.NodeID
	Input int
	Keys  []int
	// Output is the exchange's table id in the ledger.
	Output connector.UUID
	// Sources are the names of the tables that reach it.
	Sources []string
}

// Gate is where lanes enter the keyed stages of a job.
type Gate struct {
	cfg GateConfig

	mu        sync.Mutex
	stages    []*gateStage
	entrances map[graph.NodeID]*Entrance
	expected  map[connector.LaneID]bool // nil: not told
	shut      error
	done      chan struct{} // closed with shut
	ended     bool          // every stage is done: there are only positions
	changes   uint64        // hand-overs, watermarks, attachments so far
	barrier   uint64        // of them, before the last barrier
}

type gateStage struct {
	StageConfig
	entrances []*Entrance
	pushed    int64
}

// NewGate returns a gate without stages.
func NewGate(cfg GateConfig) *Gate {
	return &Gate{cfg: cfg, entrances: map[graph.NodeID]*Entrance{}, done: make(chan struct{}), changes: 1}
}

// AddStage adds a stage, before Start; the number says which one it is.
func (g *Gate) AddStage(cfg StageConfig) int {
	s := &gateStage{StageConfig: cfg, pushed: cfg.Watermark}
	for _, e := range cfg.Entrances {
		en := &Entrance{gate: g, stage: s, cfg: e, lanes: map[connector.LaneID]*laneState{}, cursors: map[partition]ledger.Cursor{}}
		for _, c := range g.cfg.Restored {
			if c.Output == e.Output {
				en.cursors[partition{c.Topic, c.Partition}] = c
			}
		}
		s.entrances = append(s.entrances, en)
		g.entrances[e.Node] = en
	}
	g.stages = append(g.stages, s)
	return len(g.stages) - 1
}

// Start tells the tasks what their stages were restored with. A stage without
// entrances has all its input now.
func (g *Gate) Start() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.stages {
		s.advance(g)
		if s.pushed != batch.NoWatermark {
			s.push(Message{Kind: Watermark, Time: s.pushed})
		}
	}
}

// Expect names all lanes that there are at the start. Without it a stage waits
// for at least one lane of each of its sources and all that the ledger knows.
func (g *Gate) Expect(lanes []connector.LaneID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expected = map[connector.LaneID]bool{}
	for _, l := range lanes {
		g.expected[l] = true
	}
	for _, s := range g.stages {
		s.advance(g)
	}
}

// Entrance is the entrance of an exchange node.
func (g *Gate) Entrance(node graph.NodeID) (*Entrance, bool) {
	e, ok := g.entrances[node]
	return e, ok
}

// Barrier puts a barrier into the channels of all stages and gives the positions
// it stands at, by output, topic and partition.
func (g *Gate) Barrier(n uint64) []ledger.Cursor {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dropRetired()
	g.barrier = g.changes
	var out []ledger.Cursor
	for _, s := range g.stages {
		s.push(Message{Kind: Barrier, Checkpoint: n})
		for _, e := range s.entrances {
			for _, c := range e.cursors {
				c.Counts = c.Counts.Clone()
				out = append(out, c)
			}
		}
	}
	slices.SortFunc(out, func(x, y ledger.Cursor) int {
		return cmp.Or(slices.Compare(x.Output[:], y.Output[:]), slices.Compare(x.Topic[:], y.Topic[:]), cmp.Compare(x.Partition, y.Partition))
	})
	return out
}

// dropRetired forgets lanes whose topic is gone for good, so that they hold no
// watermark; their positions stay.
func (g *Gate) dropRetired() {
	retired := map[connector.LaneID]bool{}
	for _, l := range g.cfg.Lanes() {
		if l.Retired {
			retired[l.ID] = true
		}
	}
	if len(retired) == 0 {
		return
	}
	for _, s := range g.stages {
		for _, e := range s.entrances {
			for id := range e.lanes {
				if retired[id] {
					delete(e.lanes, id)
				}
			}
		}
		s.advance(g)
	}
}

// Quiet reports that nothing has entered since the last barrier, so that another
// checkpoint would be the same.
func (g *Gate) Quiet() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.barrier == g.changes
}

// Shut ends all hand-overs with err. Barriers still enter.
func (g *Gate) Shut(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = err
		close(g.done)
	}
}

// End says that all stages are done. Lanes that come back, of a run that ended
// before they did, find everything handed over.
func (g *Gate) End() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
}

// Holds says what holds a stage's watermark, for people.
func (g *Gate) Holds(stage int) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.stages[stage]
	if s.pushed == batch.MaxWatermark {
		return nil
	}
	var out []string
	for _, e := range s.entrances {
		if m := e.missing(); m != "" {
			out = append(out, m)
		}
	}
	if len(out) > 0 {
		return out
	}
	low := batch.MaxWatermark
	for _, e := range s.entrances {
		for _, l := range e.lanes {
			for i := range l.parts {
				p := &l.parts[i]
				if p.idle || p.time > low {
					continue
				}
				if p.time < low {
					low, out = p.time, out[:0]
				}
				out = append(out, fmt.Sprintf("topic %s partition %d", l.topic, p.id.partition))
			}
		}
	}
	slices.Sort(out)
	return out
}

func (s *gateStage) push(m Message) {
	for _, in := range s.Inboxes {
		in.put(0, m)
	}
}

// advance puts the stage's watermark into the channels when it has risen.
func (s *gateStage) advance(g *Gate) {
	if t := s.combined(g); t > s.pushed {
		g.changes++
		s.pushed = t
		s.push(Message{Kind: Watermark, Time: t})
	}
}

// combined is the minimum over all partitions that are not idle. When all are,
// those count that ever had a watermark: whether a silent one became idle before
// or together with the others makes no difference, and what the others have said
// last does not move.
func (s *gateStage) combined(g *Gate) int64 {
	t, idle, active, parts := batch.MaxWatermark, batch.MaxWatermark, false, 0
	for _, e := range s.entrances {
		if e.missing() != "" {
			return batch.NoWatermark
		}
		for _, l := range e.lanes {
			parts += len(l.parts)
			for i := range l.parts {
				switch p := &l.parts[i]; {
				case !p.idle:
					active = true
					t = min(t, p.time)
				case p.time != batch.NoWatermark:
					idle = min(idle, p.time)
				}
			}
		}
	}
	switch {
	case active && g.cfg.Batch && t < batch.MaxWatermark:
		return batch.NoWatermark
	case active, len(s.entrances) == 0:
		return t
	case parts == 0 && g.cfg.Bounded:
		return batch.MaxWatermark // no partition at all: the input is empty
	case idle < batch.MaxWatermark && !g.cfg.Batch:
		return idle
	}
	return batch.NoWatermark
}
