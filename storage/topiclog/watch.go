package topiclog

import (
	"fmt"
	"sync"
)

// Watcher tells one reader which of many partitions have new records. Make one
// with Store.Watch.
type Watcher struct {
	s      *Store
	notify func()

	mu     sync.Mutex
	ready  []PartitionID
	marked map[PartitionID]bool // in ready
	parts  map[PartitionID]*partition
	closed bool
}

// Watch returns a watcher without partitions. notify is called, from any
// goroutine, when a partition becomes ready while none was; it must not block
// and must not call the store. Ready then says which.
func (s *Store) Watch(notify func()) *Watcher {
	return &Watcher{s: s, notify: notify, marked: map[PartitionID]bool{}, parts: map[PartitionID]*partition{}}
}

// Add watches a partition. It counts as ready at once, since there may be
// records already. A partition is watched once, however often it is added.
func (w *Watcher) Add(id PartitionID) error {
	p, err := w.s.partition(id)
	if err != nil {
		return err
	}
	sh := p.shard
	sh.mu.Lock()
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		sh.mu.Unlock()
		return fmt.Errorf("watching: %w", ErrClosed)
	}
	if w.parts[id] == nil {
		w.parts[id] = p
		p.watchers = append(p.watchers, w)
	}
	tell := w.mark(id)
	w.mu.Unlock()
	sh.mu.Unlock()
	if tell {
		w.notify()
	}
	return nil
}

// Remove stops watching a partition.
func (w *Watcher) Remove(id PartitionID) {
	w.mu.Lock()
	p := w.parts[id]
	delete(w.parts, id)
	w.mu.Unlock()
	if p == nil {
		return
	}
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	p.dropWatcher(w)
}

func (p *partition) dropWatcher(w *Watcher) {
	for i, x := range p.watchers {
		if x == w {
			p.watchers = append(p.watchers[:i], p.watchers[i+1:]...)
			return
		}
	}
}

// Close stops watching all partitions.
func (w *Watcher) Close() {
	w.mu.Lock()
	parts := w.parts
	w.parts, w.ready, w.closed = nil, nil, true
	w.mu.Unlock()
	for _, p := range parts {
		p.shard.mu.Lock()
		p.dropWatcher(w)
		p.shard.mu.Unlock()
	}
}

// Ready appends the partitions that may have new records since they were last
// returned, oldest first, and forgets them.
func (w *Watcher) Ready(dst []PartitionID) []PartitionID {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range w.ready {
		if w.parts[id] != nil {
			dst = append(dst, id)
		}
	}
	w.ready = w.ready[:0]
	clear(w.marked)
	return dst
}

// Mark makes a partition ready again, for a reader that did not read to its end.
func (w *Watcher) Mark(id PartitionID) {
	w.mu.Lock()
	tell := !w.closed && w.mark(id)
	w.mu.Unlock()
	if tell {
		w.notify()
	}
}

// mark says whether notify is due; w.mu is held.
func (w *Watcher) mark(id PartitionID) bool {
	if w.marked[id] {
		return false
	}
	w.marked[id] = true
	w.ready = append(w.ready, id)
	return len(w.ready) == 1
}

// signal notes that a partition has something new; sh.mu is held. notify calls
// the watchers without it. Both belong to the writer, except when the store is
// closed and nothing else runs.
func (sh *shard) signal(p *partition) {
	for _, w := range p.watchers {
		w.mu.Lock()
		if !w.closed && w.mark(p.id) {
			sh.signals = append(sh.signals, w)
		}
		w.mu.Unlock()
	}
}

func (sh *shard) notify() {
	for i, w := range sh.signals {
		w.notify()
		sh.signals[i] = nil
	}
	sh.signals = sh.signals[:0]
}

// wakeWatchers makes every watched partition ready, so that readers see that
// the store or the partition is gone.
func (sh *shard) wakeWatchers() {
	sh.s.mu.RLock()
	parts := append([]*partition(nil), sh.s.parts...)
	sh.s.mu.RUnlock()
	for _, p := range parts {
		if p != nil && p.shard == sh {
			p.wake()
		}
	}
}

// wake makes the partition ready for its watchers.
func (p *partition) wake() {
	p.shard.mu.Lock()
	ws := append([]*Watcher(nil), p.watchers...)
	p.shard.mu.Unlock()
	for _, w := range ws {
		w.Mark(p.id)
	}
}
