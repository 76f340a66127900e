package kafkaproto

import (
	"container/list"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// A fetch session (KIP-227) remembers what a client fetches, so that its requests
// name only what changes and answers leave out partitions with nothing new.
//
// Sessions are a saving and nothing depends on them: a client whose session is
// gone is told so (error 70) and asks in full. Their number and their partitions
// together are bounded; a new one takes the place of the one that was idle for
// longest, if that was idle for evictAfter, and is refused else, which the client
// sees by session id 0 and goes on without.

// Bounds of the sessions; the first and the last are Kafka's defaults.
const (
	maxFetchSessions     = 1000
	maxSessionPartitions = 500_000
	evictAfter           = 2 * time.Minute
)

// Epochs of a request with a meaning of their own.
const (
	initialEpoch int32 = 0
	finalEpoch   int32 = -1
)

// fetchKey is a partition in a session.
type fetchKey struct {
	topicRef
	index int32
}

// sessionPartition is what the client wants of a partition and what it was told.
type sessionPartition struct {
	fetchKey
	want                fetchPartition
	high, stable, start int64 // -1: not told yet, or an error was
}

type fetchSession struct {
	id, epoch int32
	byID      bool
	// parts are in the order of reading: what gave records goes to the end, so that
	// the bound of an answer starves none.
	parts *list.List // of *sessionPartition
	byKey map[fetchKey]*list.Element
	used  time.Time
	place *list.Element // in the cache, oldest use first
}

// fetchSessions is the cache; its mutex guards the sessions too.
type fetchSessions struct {
	now func() time.Time

	mu         sync.Mutex
	byID       map[int32]*fetchSession
	order      *list.List // of *fetchSession
	partitions int
}

func newFetchSessions() *fetchSessions {
	return &fetchSessions{now: time.Now, byID: map[int32]*fetchSession{}, order: list.New()}
}

func (c *fetchSessions) remove(s *fetchSession) {
	delete(c.byID, s.id)
	c.order.Remove(s.place)
	c.partitions -= len(s.byKey)
}

// begin looks up or makes the session of a request, changes what it holds and puts
// all of its partitions into the request. The code, if not 0, is the answer.
func (c *fetchSessions) begin(f *fetchRequest) int16 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.epoch == initialEpoch || f.epoch == finalEpoch {
		// In full. A session that it names is over.
		if old := c.byID[f.session]; old != nil {
			c.remove(old)
		}
		if f.session = 0; f.epoch == initialEpoch {
			c.create(f)
		}
		return codeNone
	}
	s := c.byID[f.session]
	switch {
	case s == nil:
		return codeSessionIDNotFound
	case s.epoch != f.epoch:
		return codeInvalidSessionEpoch
	case s.byID != f.byID:
		return codeFetchSessionTopicID
	}
	c.update(s, f)
	if len(s.byKey) == 0 {
		// Nothing left to remember.
		c.remove(s)
		f.session, f.topics = 0, nil
		return codeNone
	}
	s.epoch = nextEpoch(s.epoch)
	s.used = c.now()
	c.order.MoveToBack(s.place)
	f.incremental, f.topics = true, s.request()
	return codeNone
}

func nextEpoch(e int32) int32 {
	if e == math.MaxInt32 {
		return 1
	}
	return e + 1
}

// create makes a session of a request in full, if there is room.
func (c *fetchSessions) create(f *fetchRequest) {
	n := 0
	for i := range f.topics {
		n += len(f.topics[i].partitions)
	}
	now := c.now()
	for len(c.byID) >= maxFetchSessions || c.partitions+n > maxSessionPartitions {
		oldest := c.order.Front()
		if oldest == nil || now.Sub(oldest.Value.(*fetchSession).used) < evictAfter {
			return
		}
		c.remove(oldest.Value.(*fetchSession))
	}
	s := &fetchSession{epoch: 1, byID: f.byID, parts: list.New(), byKey: make(map[fetchKey]*list.Element, n), used: now}
	for s.id == 0 || c.byID[s.id] != nil {
		s.id = rand.Int32() // never negative
	}
	c.byID[s.id], s.place = s, c.order.PushBack(s)
	c.update(s, f)
	f.session = s.id
}

// update puts the request's partitions into a session and takes the forgotten
// out.
func (c *fetchSessions) update(s *fetchSession, f *fetchRequest) {
	for i := range f.topics {
		t := &f.topics[i]
		for _, p := range t.partitions {
			k := fetchKey{t.topicRef, p.index}
			if e := s.byKey[k]; e != nil {
				e.Value.(*sessionPartition).want = p
				continue
			}
			if c.partitions >= maxSessionPartitions {
				continue // fetched this time when in full; the client asks again for what it misses
			}
			s.byKey[k] = s.parts.PushBack(&sessionPartition{fetchKey: k, want: p, high: -1, stable: -1, start: -1})
			c.partitions++
		}
	}
	for _, k := range f.forgotten {
		if e := s.byKey[k]; e != nil {
			s.parts.Remove(e)
			delete(s.byKey, k)
			c.partitions--
		}
	}
}

// request lists a session's partitions as a request in full would.
func (s *fetchSession) request() []fetchTopic {
	var out []fetchTopic
	for e := s.parts.Front(); e != nil; e = e.Next() {
		p := e.Value.(*sessionPartition)
		if n := len(out); n == 0 || out[n-1].topicRef != p.topicRef {
			out = append(out, fetchTopic{topicRef: p.topicRef})
		}
		t := &out[len(out)-1]
		t.partitions = append(t.partitions, p.want)
	}
	return out
}

// end remembers what an answer tells the client and takes out of it what the
// client knows already.
func (c *fetchSessions) end(f *fetchRequest) {
	if f.session == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.byID[f.session]
	if s == nil {
		return // evicted meanwhile: the answer is in full, the next request learns of it
	}
	topics := f.topics[:0]
	for _, t := range f.topics {
		kept := t.partitions[:0]
		for _, p := range t.partitions {
			if s.told(fetchKey{t.topicRef, p.index}, &p) || !f.incremental {
				kept = append(kept, p)
			} else {
				p.giveBack()
			}
		}
		if t.partitions = kept; len(kept) > 0 || !f.incremental {
			topics = append(topics, t)
		}
	}
	f.topics = topics
}

// told says whether a partition's answer has something new, and notes it.
func (s *fetchSession) told(k fetchKey, p *fetchPartition) bool {
	e := s.byKey[k]
	if e == nil {
		return true
	}
	sp := e.Value.(*sessionPartition)
	if p.code != codeNone {
		// An error is told each time, and everything after it.
		sp.high, sp.stable, sp.start = -1, -1, -1
		return true
	}
	high, stable, start := p.bounds()
	fresh := high != sp.high || stable != sp.stable || start != sp.start
	sp.high, sp.stable, sp.start = high, stable, start
	if p.lease != nil && p.lease.Bytes > 0 {
		s.parts.MoveToBack(e)
		return true
	}
	return fresh
}
