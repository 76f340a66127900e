package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	githubevents "github.com/millrace/millrace/examples/github-events"
	"github.com/millrace/millrace/jobs/control"
)

// load is what a continuous producer appends: events in batches of one topic
// and partition.
type load struct {
	batches []*feedBatch
}

// feedBatch is appended at most once: what happened to one that got no
// acknowledgement is not known, and the log itself tells.
type feedBatch struct {
	topic     string
	partition int32
	values    [][]byte
	// acknowledged: every record was durable.
	acknowledged bool
}

// newLoad makes events of some topics, spoilt ones among them. partitions says
// how many partitions each topic has.
func newLoad(events int, partitions map[string]int, batch int) (*load, error) {
	l := &load{}
	type place struct {
		topic     string
		partition int32
	}
	open := map[place]*feedBatch{}
	n := 0
	err := githubevents.Generate(githubevents.Options{Events: events, Spoil: true}, func(e githubevents.Event) error {
		count := partitions[e.Topic]
		if count == 0 {
			return nil
		}
		p := place{e.Topic, int32(n % count)}
		n++
		b := open[p]
		if b == nil {
			b = &feedBatch{topic: p.topic, partition: p.partition}
			open[p] = b
			// In the list where it starts, so that topics move on together.
			l.batches = append(l.batches, b)
		}
		b.values = append(b.values, append([]byte(nil), e.Value...))
		if len(b.values) >= batch {
			delete(open, p)
		}
		return nil
	})
	return l, err
}

// feeder appends a load, going on over crashes of the process that it talks to.
type feeder struct {
	w    *world
	load *load
	pace time.Duration

	mu   sync.Mutex
	next int // the first batch that was not tried
	// quota is the batch that it must not pass yet.
	quota int
	moved chan struct{} // closed and replaced when quota or next moves
	err   error
}

func newFeeder(w *world, l *load, pace time.Duration) *feeder {
	return &feeder{w: w, load: l, pace: pace, moved: make(chan struct{})}
}

// allow lets it append up to, not including, batch n.
func (f *feeder) allow(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.quota = min(n, len(f.load.batches))
	f.signal()
}

func (f *feeder) signal() {
	close(f.moved)
	f.moved = make(chan struct{})
}

// take is the next batch; nil at the quota, which ahead does not mind.
func (f *feeder) take(ahead bool) (*feedBatch, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next >= len(f.load.batches) || f.next >= f.quota && !ahead {
		return nil, f.moved
	}
	b := f.load.batches[f.next]
	f.next++
	return b, nil
}

// left is the number of batches that were not tried.
func (f *feeder) left() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.load.batches) - f.next
}

// run appends until the context ends. While nobody serves the directory it
// waits.
func (f *feeder) run(ctx context.Context) {
	// A load that lasts as long as the process lives, not one that comes in a
	// burst and leaves it idle.
	pace := time.NewTicker(f.pace)
	defer pace.Stop()
	var c *control.Client
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	for ctx.Err() == nil {
		if c == nil {
			if c = f.w.dial(); c == nil {
				select {
				case <-pace.C:
				case <-ctx.Done():
				}
				continue
			}
		}
		b, moved := f.take(false)
		if b == nil {
			select {
			case <-moved:
			case <-ctx.Done():
			}
			continue
		}
		if err := f.append(ctx, c, b); err != nil {
			// The process was killed. Whether the records are durable, the log
			// will tell.
			c.Close()
			c = nil
			var refused *control.Error
			if errors.As(err, &refused) {
				f.mu.Lock()
				f.err = errors.Join(f.err, err)
				f.mu.Unlock()
			}
			continue
		}
		b.acknowledged = true
		select {
		case <-pace.C:
		case <-ctx.Done():
		}
	}
}

func (f *feeder) append(ctx context.Context, c *control.Client, b *feedBatch) error {
	i := 0
	p, err := c.Produce(ctx, b.topic, func(r *control.Record) error {
		if i >= len(b.values) {
			return io.EOF
		}
		*r = control.Record{Partition: b.partition, Value: b.values[i]}
		i++
		return nil
	})
	if err == nil && p.Records != int64(len(b.values)) {
		return fmt.Errorf("%d records were acknowledged of %d", p.Records, len(b.values))
	}
	return err
}

// refusals are errors that the owner answered with; a crash is none.
func (f *feeder) refusals() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
