package slot

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Options configure a slot; the zero value works.
type Options struct {
	// Clock; nil is the system's.
	Clock Clock
	// IOWorkers bounds the seals and publishes in flight; 0: 16. They wait for
	// disks and networks most of the time, and share the ledger's group commits.
	IOWorkers int
	// MemoryBytes is what the writers of all members may hold; 0: 64 MiB.
	MemoryBytes int64
	// OpenFiles bounds the open files of all members; 0: 512.
	OpenFiles int
	// QuantumBytes is what a member may compute a turn; 0: 256 KiB.
	QuantumBytes int64
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = SystemClock{}
	}
	if o.IOWorkers == 0 {
		o.IOWorkers = 16
	}
	if o.MemoryBytes == 0 {
		o.MemoryBytes = 64 << 20
	}
	if o.OpenFiles == 0 {
		o.OpenFiles = 512
	}
	if o.QuantumBytes == 0 {
		o.QuantumBytes = 256 << 10
	}
	return o
}

// Slot is shared by its members.
type Slot struct {
	o  Options
	io chan struct{}

	mu      sync.Mutex
	members map[*Member]struct{}
	holder  *Member
	line    []*waiter
	files   int
}

type waiter struct {
	m     *Member
	ready chan struct{}
}

// New returns a slot without members.
func New(o Options) *Slot {
	o = o.withDefaults()
	return &Slot{o: o, io: make(chan struct{}, o.IOWorkers), members: map[*Member]struct{}{}}
}

// Member is a lane in a slot.
type Member struct {
	name string
	run  func()

	mu       sync.Mutex
	slot     *Slot
	next     *Slot // where to move at the next Acquire
	running  bool
	again    bool
	left     bool
	timer    Timer
	timerAt  time.Time
	idle     chan struct{} // closed while not running
	deficit  int64         // guarded by slot.mu
	files    int           // guarded by slot.mu
	holds    bool
	bytes    int64 // traffic since the last Traffic call
	computed time.Duration
	since    time.Time
}

// Join makes a lane a member. run is called on a goroutine of its own whenever
// the member is awake, never twice at a time, and returns when there is nothing
// to do now.
func (s *Slot) Join(name string, run func()) *Member {
	m := &Member{name: name, run: run, slot: s, idle: make(chan struct{})}
	close(m.idle)
	s.mu.Lock()
	s.members[m] = struct{}{}
	s.mu.Unlock()
	return m
}

// Members is the number of members.
func (s *Slot) Members() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.members) }

// MemoryShare is what one of the members may hold.
func (s *Slot) MemoryShare() int64 {
	return max(s.o.MemoryBytes/int64(max(s.Members(), 1)), 256<<10)
}

// Clock is the slot's clock.
func (s *Slot) Clock() Clock { return s.o.Clock }

// Wake makes the member run, now or once more after it returns. It never
// blocks and may be called from anywhere.
func (m *Member) Wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wake()
}

func (m *Member) wake() {
	if m.left {
		return
	}
	if m.running {
		m.again = true
		return
	}
	m.running = true
	m.idle = make(chan struct{})
	go m.loop()
}

func (m *Member) loop() {
	for {
		m.run()
		m.mu.Lock()
		if !m.again || m.left {
			m.running = false
			// Nobody saves up turns by being idle.
			s := m.slot
			s.mu.Lock()
			m.deficit = min(m.deficit, 0)
			s.mu.Unlock()
			close(m.idle)
			m.mu.Unlock()
			return
		}
		m.again = false
		m.mu.Unlock()
	}
}

// WakeAt makes the member run at a time; the earliest one asked for counts
// until it has fired.
func (m *Member) WakeAt(at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left || m.timer != nil && !at.Before(m.timerAt) {
		return
	}
	if m.timer != nil {
		m.timer.Stop()
	}
	clock := m.slot.o.Clock
	m.timerAt = at
	m.timer = clock.AfterFunc(at.Sub(clock.Now()), func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.timerAt.Equal(at) {
			m.timer = nil
		}
		m.wake()
	})
}

// Leave ends the membership: the member runs no more. It does not wait for a
// run that is under way; the returned channel is closed when that has ended.
func (m *Member) Leave() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = true
	if m.timer != nil {
		m.timer.Stop()
		m.timer = nil
	}
	s := m.slot
	s.mu.Lock()
	delete(s.members, m)
	s.files -= m.files
	m.files = 0
	s.mu.Unlock()
	return m.idle
}

// Acquire waits for the run token.
func (m *Member) Acquire(ctx context.Context) error {
	m.mu.Lock()
	if to := m.next; to != nil {
		m.moveTo(to)
	}
	s := m.slot
	m.mu.Unlock()
	s.mu.Lock()
	if s.holder == nil && len(s.line) == 0 {
		s.holder = m
		s.mu.Unlock()
		m.begin()
		return nil
	}
	w := &waiter{m, make(chan struct{})}
	s.line = append(s.line, w)
	s.mu.Unlock()
	select {
	case <-w.ready:
		m.begin()
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.line, w); i >= 0 {
		s.line = slices.Delete(s.line, i, i+1)
	} else {
		s.pass(nil) // it was given meanwhile
	}
	return ctx.Err()
}

func (m *Member) begin() {
	m.holds = true
	m.since = m.slot.o.Clock.Now()
}

// Release gives the token back; bytes is what the turn has computed.
func (m *Member) Release(bytes int64) {
	s := m.slot
	m.holds = false
	m.mu.Lock()
	m.bytes += bytes
	m.computed += s.o.Clock.Now().Sub(m.since)
	m.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	m.deficit -= bytes
	s.pass(m)
}

// Yield ends a batch of the turn: the member keeps the token, and goes on at
// once, while nobody waits or its credit lasts; else it is given back as by
// Release.
func (m *Member) Yield(bytes int64) (kept bool) {
	s := m.slot
	s.mu.Lock()
	keep := len(s.line) == 0 || m.deficit-bytes > 0
	if keep {
		m.deficit = max(m.deficit-bytes, -s.o.QuantumBytes)
	}
	s.mu.Unlock()
	if !keep {
		m.Release(bytes)
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.next != nil {
		// It is to move: the next Acquire does that.
		m.mu.Unlock()
		m.Release(0)
		m.mu.Lock()
		return false
	}
	m.bytes += bytes
	return true
}

// pass gives the token to the next in line: the first whose deficit is not
// used up. When all are in debt, all get as many quanta as the least indebted
// one needs; so does the member that gives the token back, which is not in
// line but may be on its way: its credit is for its next turn.
func (s *Slot) pass(from *Member) {
	s.holder = nil
	if len(s.line) == 0 {
		return
	}
	least := s.line[0]
	pick := -1
	for i, w := range s.line {
		if w.m.deficit >= 0 {
			pick = i
			break
		}
		if w.m.deficit > least.m.deficit {
			least = w
		}
	}
	if pick < 0 {
		rounds := (-least.m.deficit + s.o.QuantumBytes - 1) / s.o.QuantumBytes
		if from != nil {
			from.deficit += rounds * s.o.QuantumBytes
		}
		for i, w := range s.line {
			w.m.deficit += rounds * s.o.QuantumBytes
			if pick < 0 && w.m.deficit >= 0 {
				pick = i
			}
		}
	}
	w := s.line[pick]
	s.line = slices.Delete(s.line, pick, pick+1)
	s.holder = w.m
	close(w.ready)
}

// ErrHoldsToken is a programming error: I/O under the run token.
var ErrHoldsToken = errors.New("BUG: I/O while holding the run token")

// hungAfter is how long I/O may take before its place in the pool is given to
// others: a system that hangs must not stop the lanes that do not use it.
const hungAfter = 2 * time.Second

// IO runs f in the slot's I/O pool: at most IOWorkers at a time, those that
// hang not counted.
func (m *Member) IO(ctx context.Context, f func(context.Context) error) error {
	if m.holds {
		return ErrHoldsToken
	}
	io := m.slot.io
	select {
	case io <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	var once sync.Once
	free := func() { once.Do(func() { <-io }) }
	hung := m.slot.o.Clock.AfterFunc(hungAfter, free)
	defer free()
	defer hung.Stop()
	return f(ctx)
}

// SetOpenFiles says how many files the member has open and reports whether the
// slot's budget is exceeded: then the member must close one of its own.
func (m *Member) SetOpenFiles(n int) (over bool) {
	s := m.slot
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files += n - m.files
	m.files = n
	return s.files > s.o.OpenFiles
}

// MemoryShare is what the member may hold.
func (m *Member) MemoryShare() int64 { return m.slot.MemoryShare() }

// Traffic returns the bytes and the time computed since the last call.
func (m *Member) Traffic() (bytes int64, computed time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	bytes, computed = m.bytes, m.computed
	m.bytes, m.computed = 0, 0
	return bytes, computed
}

// MoveTo moves the member to another slot when it next asks for the token.
func (m *Member) MoveTo(to *Slot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next = to
}

// moveTo is called with m.mu held, without the token.
func (m *Member) moveTo(to *Slot) {
	m.next = nil
	from := m.slot
	if from == to {
		return
	}
	from.mu.Lock()
	delete(from.members, m)
	files := m.files
	from.files -= files
	m.deficit = 0
	from.mu.Unlock()
	to.mu.Lock()
	to.members[m] = struct{}{}
	to.files += files
	to.mu.Unlock()
	m.slot = to
}

// Idle is closed once the member does not run.
func (m *Member) Idle() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.idle
}
