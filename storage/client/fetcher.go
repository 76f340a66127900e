package client

import (
	"context"
	"fmt"
	"sync"

	"github.com/millrace/millrace/storage/topiclog"
)

// FetcherOptions tune a fetch session. The zero value works.
type FetcherOptions struct {
	// Notify, if set, is called from any goroutine when Poll may have something
	// after it returned nothing. It must not block and must not call the
	// fetcher or the store. Without it, Next waits.
	Notify func()
	// MaxBytes bounds one lease, except that it holds at least one batch; 0
	// means 256 KiB.
	MaxBytes int
	// CreditBytes bounds the unreleased leases together; 0 means 16 MiB. The
	// last lease may pass it.
	CreditBytes int64
	// Durable reads os topics only up to their durable end.
	Durable bool
}

// PartitionError is an error of one partition. The fetcher leaves the partition
// alone until Seek; the others go on.
type PartitionError struct {
	Partition topiclog.PartitionID
	Err       error
}

// Error names the partition.
func (e *PartitionError) Error() string {
	return fmt.Sprintf("fetching partition %d: %v", e.Partition, e.Err)
}

// Unwrap returns what went wrong, such as *topiclog.OffsetError or
// *topiclog.CorruptError.
func (e *PartitionError) Unwrap() error { return e.Err }

// Fetcher is a fetch session over many partitions.
type Fetcher struct {
	store *topiclog.Store
	opts  FetcherOptions
	watch *topiclog.Watcher
	wake  chan struct{}

	mu      sync.Mutex
	parts   map[topiclog.PartitionID]*fetchPart
	queue   []topiclog.PartitionID // perhaps with data, oldest first
	credit  int64
	starved bool // something waits for credit
	closed  bool
}

type fetchPart struct {
	next   int64
	gen    int // raised by Seek: an older lease's end says nothing
	leased bool
	paused bool
	failed bool
	queued bool
	again  bool // came up while it was being read
}

// Fetched is a lease of one partition's batches.
type Fetched struct {
	*topiclog.Lease
	f    *Fetcher
	once sync.Once
	size int64
}

// NewFetcher returns a session without partitions.
func (c *Client) NewFetcher(o FetcherOptions) *Fetcher {
	if o.MaxBytes <= 0 {
		o.MaxBytes = 256 << 10
	}
	if o.CreditBytes <= 0 {
		o.CreditBytes = 16 << 20
	}
	f := &Fetcher{store: c.store, opts: o, wake: make(chan struct{}, 1), parts: map[topiclog.PartitionID]*fetchPart{}, credit: o.CreditBytes}
	f.watch = c.store.Watch(f.notify)
	return f
}

func (f *Fetcher) notify() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
	if f.opts.Notify != nil {
		f.opts.Notify()
	}
}

// Add reads a partition from an offset on. One that is read already is moved
// there.
func (f *Fetcher) Add(id topiclog.PartitionID, offset int64) error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return ErrClosed
	}
	p := f.parts[id]
	if p == nil {
		p = &fetchPart{}
		f.parts[id] = p
	}
	p.next, p.failed = offset, false
	p.gen++
	f.mu.Unlock()
	if err := f.watch.Add(id); err != nil {
		f.mu.Lock()
		delete(f.parts, id)
		f.mu.Unlock()
		return err
	}
	f.watch.Mark(id)
	return nil
}

// Remove stops reading a partition. A lease of it stays valid.
func (f *Fetcher) Remove(id topiclog.PartitionID) {
	f.mu.Lock()
	delete(f.parts, id)
	f.mu.Unlock()
	f.watch.Remove(id)
}

// Seek goes on reading a partition at an offset, also after an error.
func (f *Fetcher) Seek(id topiclog.PartitionID, offset int64) error {
	f.mu.Lock()
	p := f.parts[id]
	if p != nil {
		p.next, p.failed = offset, false
		p.gen++
	}
	f.mu.Unlock()
	if p == nil {
		return fmt.Errorf("seeking partition %d: %w", id, topiclog.ErrPartitionNotFound)
	}
	f.watch.Mark(id)
	return nil
}

// Pause leaves a partition alone until Resume.
func (f *Fetcher) Pause(id topiclog.PartitionID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.parts[id]; p != nil {
		p.paused = true
	}
}

// Resume ends Pause.
func (f *Fetcher) Resume(id topiclog.PartitionID) {
	f.mu.Lock()
	p := f.parts[id]
	if p != nil {
		p.paused = false
	}
	f.mu.Unlock()
	if p != nil {
		f.watch.Mark(id)
	}
}

// Position is the next offset that will be fetched of a partition.
func (f *Fetcher) Position(id topiclog.PartitionID) (int64, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.parts[id]; p != nil {
		return p.next, true
	}
	return 0, false
}

// collect moves what the watcher has into the queue, which arms the watcher
// again; mu is held.
func (f *Fetcher) collect() {
	n := len(f.queue)
	f.queue = f.watch.Ready(f.queue)
	kept := f.queue[:n]
	for _, id := range f.queue[n:] {
		if p := f.parts[id]; p != nil && !p.queued {
			p.queued = true
			kept = append(kept, id)
		}
	}
	f.queue = kept
}

// Poll returns a lease of the partition that has waited longest, or nil if no
// partition has data or there is no credit; Notify will come. A *PartitionError
// concerns one partition only.
func (f *Fetcher) Poll() (*Fetched, error) {
	f.mu.Lock()
	f.collect()
	for len(f.queue) > 0 {
		if f.credit <= 0 {
			f.starved = true
			break
		}
		id := f.queue[0]
		f.queue = f.queue[1:]
		p := f.parts[id]
		if p == nil {
			continue
		}
		p.queued = false
		f.mu.Unlock()
		got, err := f.fetch(id)
		if got != nil || err != nil {
			return got, err
		}
		f.mu.Lock()
		f.collect()
	}
	f.mu.Unlock()
	return nil, nil
}

// TryNext is Poll for one partition.
func (f *Fetcher) TryNext(id topiclog.PartitionID) (*Fetched, error) {
	f.mu.Lock()
	f.collect()
	p := f.parts[id]
	if p == nil {
		f.mu.Unlock()
		return nil, fmt.Errorf("fetching partition %d: %w", id, topiclog.ErrPartitionNotFound)
	}
	if f.credit <= 0 {
		f.starved = true
		f.mu.Unlock()
		return nil, nil
	}
	for i, q := range f.queue {
		if q == id {
			f.queue = append(f.queue[:i], f.queue[i+1:]...)
			break
		}
	}
	p.queued = false
	f.mu.Unlock()
	return f.fetch(id)
}

// fetch reads one partition if it may be read now.
func (f *Fetcher) fetch(id topiclog.PartitionID) (*Fetched, error) {
	f.mu.Lock()
	p := f.parts[id]
	if p == nil || p.leased || p.paused || p.failed || f.closed {
		if p != nil && p.leased {
			p.again = true
		}
		f.mu.Unlock()
		return nil, nil
	}
	p.leased, p.again = true, false
	offset, gen := p.next, p.gen
	f.mu.Unlock()

	l, err := f.store.Fetch(context.Background(), topiclog.FetchRequest{Partition: id, Offset: offset, MaxBytes: f.opts.MaxBytes, Durable: f.opts.Durable})

	f.mu.Lock()
	if err == nil && p.gen == gen && len(l.Chunks) > 0 {
		p.next = l.NextOffset
		f.credit -= int64(l.Bytes)
		p.again = p.again || p.next < l.ReadEnd
		f.mu.Unlock()
		return &Fetched{Lease: l, f: f, size: int64(l.Bytes)}, nil
	}
	p.leased = false
	if err == nil && p.gen == gen {
		p.next = max(p.next, l.NextOffset) // nothing is left of what lay before
	}
	again := p.again || p.gen != gen
	if err != nil && p.gen == gen {
		p.failed = true
	}
	f.mu.Unlock()
	if again {
		f.watch.Mark(id)
	}
	if err != nil {
		return nil, &PartitionError{Partition: id, Err: err}
	}
	l.Release()
	return nil, nil
}

// Release gives the lease's memory and credit back; the partition may then be
// fetched again.
func (x *Fetched) Release() {
	x.once.Do(func() {
		id := x.Partition
		x.Lease.Release()
		f := x.f
		f.mu.Lock()
		f.credit += x.size
		p := f.parts[id]
		again := false
		if p != nil {
			p.leased, again = false, p.again
		}
		starved := f.starved && f.credit > 0
		if starved {
			f.starved = false
		}
		f.mu.Unlock()
		if again {
			// There is more, and nobody will say so again.
			f.watch.Mark(id)
		}
		if starved {
			f.notify()
		}
	})
}

// Next is Poll that waits.
func (f *Fetcher) Next(ctx context.Context) (*Fetched, error) {
	for {
		got, err := f.Poll()
		if got != nil || err != nil {
			return got, err
		}
		f.mu.Lock()
		closed := f.closed
		f.mu.Unlock()
		if closed {
			return nil, ErrClosed
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-f.wake:
		}
	}
}

// Close ends the session. Leases stay valid until they are released.
func (f *Fetcher) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.watch.Close()
	f.notify()
}
