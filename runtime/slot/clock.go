package slot

import (
	"sync"
	"time"
)

// Clock tells the time and calls back; the system's, or a test's.
type Clock interface {
	// Now is monotonic within a process.
	Now() time.Time
	// AfterFunc calls f once on its own goroutine, unless stopped before.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending call of AfterFunc.
type Timer interface{ Stop() bool }

// SystemClock is the machine's clock.
type SystemClock struct{}

// Now implements Clock.
func (SystemClock) Now() time.Time { return time.Now() }

// AfterFunc implements Clock.
func (SystemClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// ManualClock moves only when told to; for tests.
type ManualClock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*manualTimer]struct{}
}

type manualTimer struct {
	c  *ManualClock
	at time.Time
	f  func()
}

// NewManualClock returns a clock that stands at a time.
func NewManualClock(now time.Time) *ManualClock {
	return &ManualClock{now: now, timers: map[*manualTimer]struct{}{}}
}

// Now implements Clock.
func (c *ManualClock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

// AfterFunc implements Clock.
func (c *ManualClock) AfterFunc(d time.Duration, f func()) Timer {
	c.mu.Lock()
	t := &manualTimer{c: c, at: c.now.Add(d), f: f}
	if d > 0 {
		c.timers[t] = struct{}{}
		c.mu.Unlock()
		return t
	}
	c.mu.Unlock()
	go f()
	return t
}

// Stop implements Timer.
func (t *manualTimer) Stop() bool {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	_, ok := t.c.timers[t]
	delete(t.c.timers, t)
	return ok
}

// Advance moves the clock and calls what is due, each on its own goroutine.
func (c *ManualClock) Advance(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var due []*manualTimer
	for t := range c.timers {
		if !t.at.After(c.now) {
			due = append(due, t)
			delete(c.timers, t)
		}
	}
	c.mu.Unlock()
	for _, t := range due {
		go t.f()
	}
}

// Next is when the earliest timer is due; ok is false when there is none.
func (c *ManualClock) Next() (at time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for t := range c.timers {
		if !ok || t.at.Before(at) {
			at, ok = t.at, true
		}
	}
	return at, ok
}
