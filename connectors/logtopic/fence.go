package logtopic

import (
	"context"
	"fmt"
	"sync"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/topiclog"
)

// registry is what a process knows about who writes to the topics of its log.
// After a restart it is empty: fences are for goroutines that are still alive,
// and the ledger knows every epoch.
type registry struct {
	mu     sync.Mutex
	jobs   map[jobKey]uint64 // highest job epoch
	writes map[writeKey]*laneState
}

type jobKey struct {
	topic topiclog.UUID
	job   connector.UUID
}

type writeKey struct {
	topic topiclog.UUID
	lane  laneKey
}

// claim makes a job's epoch known; a lower one than before has lost.
func (g *registry) claim(topic topiclog.UUID, name string, o connector.Owner) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := jobKey{topic, o.Job}
	if high := g.jobs[k]; o.JobEpoch < high {
		return &connector.OwnedError{Location: "topic " + name, Owner: fmt.Sprintf("epoch %d of the same job, this is epoch %d", high, o.JobEpoch)}
	}
	if g.jobs == nil {
		g.jobs = map[jobKey]uint64{}
	}
	g.jobs[k] = o.JobEpoch
	return nil
}

// fenced reports whether a later run of the job has claimed the topic.
func (g *registry) fenced(topic topiclog.UUID, o connector.Owner) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if high := g.jobs[jobKey{topic, o.Job}]; o.JobEpoch < high {
		return fmt.Errorf("job epoch %d, now %d: %w", o.JobEpoch, high, connector.ErrFenced)
	}
	return nil
}

// lane is the state of a writer, made when it is first asked for.
func (g *registry) lane(topic topiclog.UUID, k laneKey) *laneState {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.writes == nil {
		g.writes = map[writeKey]*laneState{}
	}
	s := g.writes[writeKey{topic, k}]
	if s == nil {
		s = &laneState{key: k.noteKey(), sem: make(chan struct{}, 1), sealed: map[point]*payload{}, discarded: map[point]bool{},
			doubtful: map[point]error{}, notes: map[topiclog.PartitionID]*noteList{}}
		g.writes[writeKey{topic, k}] = s
	}
	return s
}

// maxEpoch is the highest epoch that a lane of the job has opened.
func (g *registry) maxEpoch(ctx context.Context, topic topiclog.UUID, job connector.UUID, lane connector.LaneID) (uint64, error) {
	g.mu.Lock()
	var of []*laneState
	for k, s := range g.writes {
		if k.topic == topic && k.lane.job == job && k.lane.lane == lane && !k.lane.keyed {
			of = append(of, s)
		}
	}
	g.mu.Unlock()
	high := uint64(0)
	for _, s := range of {
		if err := s.lock(ctx); err != nil {
			return 0, err
		}
		high = max(high, s.high.epoch)
		s.unlock()
	}
	return high, nil
}

// laneState is one writer's. Whoever holds sem may append for it or look what is
// there: so nobody looks while an append is under way.
type laneState struct {
	key string // of its notes
	sem chan struct{}

	opened   bool
	high     point // epoch of the newest attempt
	previous point // the one before
	settled  point // what is before it is never asked for again
	// sealed are artefacts that were not published yet.
	sealed    map[point]*payload
	discarded map[point]bool
	// doubtful are those whose append ended without an answer.
	doubtful map[point]error
	notes    map[topiclog.PartitionID]*noteList
}

func (s *laneState) lock(ctx context.Context) error {
	select {
	case s.sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *laneState) unlock() { <-s.sem }

// noteList is the notes of one writer in one partition, as the log has them.
type noteList struct {
	at    map[point]int64 // last offset of the append
	order []point
}

func (l *noteList) add(p point, last int64) {
	l.at[p] = last
	l.order = append(l.order, p)
}

// trimEvery is how many notes go at a time: each trim is an entry of the log's
// manifest.
const trimEvery = 64

// trim forgets the notes of settled artefacts and gives the offset below which
// the log may do so, or 0 while there are too few.
func (l *noteList) trim(settled point) int64 {
	n := 0
	for n < len(l.order) && l.order[n].before(settled) {
		n++
	}
	if n < trimEvery {
		return 0
	}
	below := l.at[l.order[n-1]] + 1
	for _, p := range l.order[:n] {
		delete(l.at, p)
	}
	l.order = append([]point(nil), l.order[n:]...)
	return below
}

// notesOf loads the notes of a partition; s is locked. From then on the list is
// kept by what this process appends: nobody else writes under the key.
func (s *laneState) notesOf(store *topiclog.Store, id topiclog.PartitionID) (*noteList, error) {
	if l := s.notes[id]; l != nil {
		return l, nil
	}
	notes, err := store.Notes(id, s.key)
	if err != nil {
		return nil, fmt.Errorf("reading the notes of partition %d: %w", id, err)
	}
	l := &noteList{at: make(map[point]int64, len(notes))}
	for _, n := range notes {
		p, _, err := decodeNote(n.Data)
		if err != nil {
			return nil, err
		}
		l.add(p, n.LastOffset)
	}
	s.notes[id] = l
	return l, nil
}
