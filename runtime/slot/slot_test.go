package slot

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestTokenIsFairByBytes: with batches of 1 MiB and of 64 KiB the members get
// the same bytes, not the same number of turns.
func TestTokenIsFairByBytes(t *testing.T) {
	s := New(Options{QuantumBytes: 64 << 10})
	ctx := context.Background()
	got := map[string]int64{}
	var mu sync.Mutex
	var ready, stop sync.WaitGroup
	gate := make(chan struct{})
	turns := 0
	worker := func(name string, size int64) *Member {
		var m *Member
		m = s.Join(name, func() {
			ready.Done()
			<-gate
			defer stop.Done()
			for kept := false; ; {
				if !kept {
					if err := m.Acquire(ctx); err != nil {
						t.Error(err)
						return
					}
				}
				mu.Lock()
				turns++
				done := turns > 3000
				if !done {
					got[name] += size
				}
				mu.Unlock()
				// Whoever holds the token waits until the other is in line, so
				// that the order is the line's alone.
				for !done {
					s.mu.Lock()
					n := len(s.line)
					s.mu.Unlock()
					if n == 1 {
						break
					}
				}
				if done {
					m.Release(size)
					return
				}
				kept = m.Yield(size)
			}
		})
		return m
	}
	ready.Add(2)
	stop.Add(2)
	worker("big", 1<<20).Wake()
	worker("small", 64<<10).Wake()
	ready.Wait()
	close(gate)
	stop.Wait()
	if r := float64(got["big"]) / float64(got["small"]); r < 0.8 || r > 1.25 {
		t.Errorf("bytes %v", got)
	}
}

func TestOneHolderAtATime(t *testing.T) {
	s := New(Options{})
	var mu sync.Mutex
	holders, most := 0, 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		var m *Member
		m = s.Join("m", func() {
			defer wg.Done()
			for range 50 {
				if err := m.Acquire(context.Background()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				holders++
				most = max(most, holders)
				holders--
				mu.Unlock()
				m.Release(1)
			}
		})
		m.Wake()
	}
	wg.Wait()
	if most != 1 {
		t.Errorf("%d at a time", most)
	}
}

func TestAcquireGivesUpWithItsContext(t *testing.T) {
	s := New(Options{})
	a, b, c := s.Join("a", nil), s.Join("b", nil), s.Join("c", nil)
	if err := a.Acquire(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.Acquire(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("acquire: %v", err)
	}
	a.Release(1)
	if err := c.Acquire(context.Background()); err != nil {
		t.Errorf("the token is lost: %v", err)
	}
}

func TestNoIOUnderTheToken(t *testing.T) {
	s := New(Options{})
	m := s.Join("m", nil)
	_ = m.Acquire(context.Background())
	if err := m.IO(context.Background(), func(context.Context) error { return nil }); !errors.Is(err, ErrHoldsToken) {
		t.Errorf("I/O under the token: %v", err)
	}
}

// TestHungIODoesNotHoldThePool: the only worker hangs; after a while another
// member's I/O runs.
func TestHungIODoesNotHoldThePool(t *testing.T) {
	clock := NewManualClock(time.Unix(0, 0))
	s := New(Options{IOWorkers: 1, Clock: clock})
	hung, free := s.Join("hung", nil), s.Join("free", nil)
	gate, entered := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		_ = hung.IO(context.Background(), func(context.Context) error { close(entered); <-gate; return nil })
	}()
	<-entered
	clock.Advance(hungAfter)
	if err := free.IO(context.Background(), func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	close(gate)
	wg.Wait()
	if len(s.io) != 0 {
		t.Errorf("%d places of the pool are taken", len(s.io))
	}
}

// TestWakeUps: a member runs once for any number of
// wake-ups while it runs, once more after, and not at all when it has left.
func TestWakeUps(t *testing.T) {
	s := New(Options{})
	runs, gate := make(chan int, 10), make(chan struct{})
	n := 0
	m := s.Join("m", func() { n++; runs <- n; <-gate })
	m.Wake()
	<-runs
	m.Wake()
	m.Wake()
	m.Wake()
	gate <- struct{}{}
	<-runs
	gate <- struct{}{}
	<-m.Idle()
	select {
	case <-runs:
		t.Error("it ran a third time")
	default:
	}
	<-m.Leave()
	m.Wake()
	if s.Members() != 0 {
		t.Error("it is still a member")
	}
}

func TestWakeAtKeepsTheEarliest(t *testing.T) {
	clock := NewManualClock(time.Unix(0, 0))
	s := New(Options{Clock: clock})
	runs := make(chan time.Time, 10)
	m := s.Join("m", func() { runs <- clock.Now() })
	m.WakeAt(time.Unix(5, 0))
	m.WakeAt(time.Unix(9, 0))
	m.WakeAt(time.Unix(3, 0))
	clock.Advance(3 * time.Second)
	if at := <-runs; at.Unix() != 3 {
		t.Errorf("ran at %d", at.Unix())
	}
	if _, ok := clock.Next(); ok {
		t.Error("a timer is left")
	}
}

func TestOpenFileBudget(t *testing.T) {
	s := New(Options{OpenFiles: 3})
	a, b := s.Join("a", nil), s.Join("b", nil)
	if a.SetOpenFiles(2) || !b.SetOpenFiles(2) || b.SetOpenFiles(1) {
		t.Error("budget of 3")
	}
	a.Leave()
	if b.SetOpenFiles(3) {
		t.Error("files of one that left count")
	}
}

func TestMoveBetweenSlots(t *testing.T) {
	a, b := New(Options{}), New(Options{OpenFiles: 1})
	m := a.Join("m", nil)
	m.SetOpenFiles(2)
	m.MoveTo(b)
	if err := m.Acquire(context.Background()); err != nil {
		t.Fatal(err)
	}
	m.Release(10)
	if a.Members() != 0 || b.Members() != 1 || !m.SetOpenFiles(2) || a.files != 0 {
		t.Errorf("members %d and %d, files %d and %d", a.Members(), b.Members(), a.files, b.files)
	}
}

func TestPack(t *testing.T) {
	hot := []Load{{"hot", 0.9, 1, -1}, {"a", 0.1, 1, -1}, {"b", 0.1, 1, -1}, {"c", 0.1, 1, -1}}
	got := Pack(hot, nil, PackOptions{Slots: 2})
	if got[1] == got[0] || got[2] == got[0] || got[3] == got[0] {
		t.Errorf("the hot lane shares its slot: %v", got)
	}
	// Settled: the same loads stay where they are, also with a little noise.
	noisy := slices.Clone(hot)
	noisy[1].Share, noisy[2].Share = 0.15, 0.05
	if again := Pack(noisy, got, PackOptions{Slots: 2}); !slices.Equal(again, got) {
		t.Errorf("moved from %v to %v", got, again)
	}
	even := []Load{{"a", 0.2, 0, -1}, {"b", 0.2, 0, -1}, {"c", 0.2, 0, -1}, {"d", 0.2, 0, -1}}
	got = Pack(even, nil, PackOptions{Slots: 2})
	n := 0
	for _, x := range got {
		n += x
	}
	if n != 2 {
		t.Errorf("four equal lanes on two slots: %v", got)
	}
	// All four on one slot is worth moving two.
	if got = Pack(even, []int{0, 0, 0, 0}, PackOptions{Slots: 2}); got[0]+got[1]+got[2]+got[3] == 0 {
		t.Errorf("nothing moved: %v", got)
	}
	pinned := []Load{{"a", 0.9, 0, 1}, {"b", 0.1, 0, 1}}
	if got = Pack(pinned, nil, PackOptions{Slots: 2}); !slices.Equal(got, []int{1, 1}) {
		t.Errorf("pinned to 1: %v", got)
	}
	files := []Load{{"a", 0.1, 80, -1}, {"b", 0.1, 80, -1}}
	if got = Pack(files, []int{0, 0}, PackOptions{Slots: 2, OpenFiles: 100}); got[0] == got[1] {
		t.Errorf("160 files in a slot of 100: %v", got)
	}
}
