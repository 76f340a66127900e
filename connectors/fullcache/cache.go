package fullcache

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/runtime/connector"
)

// Options of a Cache.
type Options struct {
	// Load reads the whole table; its error is retryable.
	Load func(ctx context.Context) (*Table, error)
	// Interval is after how long the table is loaded again, counted from the end of a
	// load, or FixedRate: from when it was due; 0: never.
	Interval  time.Duration
	FixedRate bool
	// Daily, in place of Interval, is when it is loaded again, each Days days.
	Daily *Daily
	Days  int
	// Now is the clock; nil: the system's.
	Now func() time.Time
}

// Cache looks rows up in a table that it loads at the first lookup and, with an
// interval or a time of the day, again.
type Cache struct {
	o       Options
	loading chan struct{} // holds one: a load is on its way
	last    atomic.Pointer[loaded]
	closed  atomic.Bool
}

type loaded struct {
	table *Table
	due   time.Time // when it is loaded again; zero: never
}

var _ connector.Lookup = (*Cache)(nil)

// New returns a cache that has loaded nothing.
func New(o Options) *Cache {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Cache{o: o, loading: make(chan struct{}, 1)}
}

var errClosed = errors.New("the table is closed")

// Find implements connector.Lookup.
func (c *Cache) Find(ctx context.Context, keys *connector.LookupKeys, out *connector.Found) error {
	t, err := c.table(ctx)
	if err != nil {
		return err
	}
	t.Find(keys, out)
	return nil
}

// Local implements connector.Lookup.
func (c *Cache) Local() bool { return c.fresh(c.last.Load()) }

// Close implements connector.Lookup. Whoever looks up at the time gets an answer.
func (c *Cache) Close() error {
	c.closed.Store(true)
	return nil
}

func (c *Cache) fresh(l *loaded) bool {
	return l != nil && (l.due.IsZero() || c.o.Now().Before(l.due))
}

// table is the table to answer from, loaded if need be.
func (c *Cache) table(ctx context.Context) (*Table, error) {
	if c.closed.Load() {
		return nil, errClosed
	}
	l := c.last.Load()
	if c.fresh(l) {
		return l.table, nil
	}
	if l != nil {
		select {
		case c.loading <- struct{}{}:
		default:
			return l.table, nil // somebody loads it again
		}
	} else {
		select {
		case c.loading <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer func() { <-c.loading }()
	if l = c.last.Load(); c.fresh(l) {
		return l.table, nil // meanwhile
	}
	var last time.Time
	if l != nil {
		last = l.due
	}
	began := c.o.Now()
	t, err := c.o.Load(ctx)
	if err != nil {
		return nil, err
	}
	c.last.Store(&loaded{table: t, due: c.o.due(last, began, c.o.Now())})
	return t, nil
}
