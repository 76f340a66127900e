package partialcache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/connectors/fullcache"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// Options of a Cache.
type Options struct {
	// Load looks keys up; its error is retryable.
	Load func(ctx context.Context, keys *connector.LookupKeys) (*fullcache.Table, error)
	// Rows is the schema of the rows that are found.
	Rows *batch.Schema
	// MaxRows is how many rows are kept; 0: none are kept.
	MaxRows int64
	// AfterWrite and AfterAccess are how long rows are kept since they were loaded, and
	// since they were used last; 0: no limit.
	AfterWrite, AfterAccess time.Duration
	// Missing keeps the knowledge that a key has no rows.
	Missing bool
	// Retries is how often a load that failed is tried again.
	Retries int
	// Now is the clock; nil: the system's.
	Now func() time.Time
}

// Cache looks rows up by key.
type Cache struct {
	o      Options
	closed atomic.Bool

	mu      sync.Mutex
	entries map[string]*entry
	// ends is the ring's joint: next is what was used last, prev what leaves first.
	ends entry
	rows int64
}

// entry is the rows of a key. What it holds does not change.
type entry struct {
	key          string
	rows         int
	data         []byte
	loaded, used time.Time
	prev, next   *entry
}

var _ connector.Lookup = (*Cache)(nil)

// New returns a cache that holds nothing.
func New(o Options) *Cache {
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Cache{o: o, entries: map[string]*entry{}}
	c.ends.prev, c.ends.next = &c.ends, &c.ends
	return c
}

// Local implements connector.Lookup: which keys will be asked for is not known.
func (c *Cache) Local() bool { return false }

// Close implements connector.Lookup.
func (c *Cache) Close() error {
	c.closed.Store(true)
	return nil
}

var errClosed = errors.New("the table is closed")

// Find implements connector.Lookup.
func (c *Cache) Find(ctx context.Context, keys *connector.LookupKeys, out *connector.Found) error {
	if c.closed.Load() {
		return errClosed
	}
	if c.o.MaxRows == 0 {
		t, err := c.load(ctx, keys)
		if err == nil {
			t.Find(keys, out)
		}
		return err
	}
	cols := columns(keys)
	hits := make([]*entry, keys.Len())
	var missed batch.Sel
	var buf []byte
	c.mu.Lock()
	now := c.o.Now()
	for k := range keys.Len() {
		buf = batch.AppendKey(buf[:0], cols, k)
		if hits[k] = c.get(buf, now); hits[k] == nil {
			missed = append(missed, int32(k))
		}
	}
	c.mu.Unlock()
	var found connector.Found
	if len(missed) > 0 {
		some := subset(keys, missed)
		t, err := c.load(ctx, some)
		if err != nil {
			return err
		}
		t.Find(some, &found)
		c.keep(some, &found, now)
		if len(missed) == keys.Len() {
			t.Find(keys, out)
			return nil
		}
	}
	return c.join(hits, &found, out)
}

// load asks for keys until it succeeds, or has failed too often.
func (c *Cache) load(ctx context.Context, keys *connector.LookupKeys) (*fullcache.Table, error) {
	for try := 0; ; try++ {
		t, err := c.o.Load(ctx, keys)
		if err == nil || try == c.o.Retries || ctx.Err() != nil {
			return t, err
		}
	}
}

func columns(keys *connector.LookupKeys) []*batch.Vec {
	cols := make([]*batch.Vec, len(keys.Cols))
	for i := range cols {
		cols[i] = &keys.Cols[i]
	}
	return cols
}

func subset(keys *connector.LookupKeys, sel batch.Sel) *connector.LookupKeys {
	out := &connector.LookupKeys{Cols: make([]batch.Vec, len(keys.Cols)), Hashes: make([]uint64, len(sel))}
	for i := range out.Cols {
		out.Cols[i].Take(&keys.Cols[i], sel)
	}
	for i, k := range sel {
		out.Hashes[i] = keys.Hashes[k]
	}
	return out
}

// get gives the rows of a key that are still good, and makes them the last to leave.
func (c *Cache) get(key []byte, now time.Time) *entry {
	e := c.entries[string(key)]
	if e == nil {
		return nil
	}
	if c.o.AfterWrite > 0 && now.Sub(e.loaded) >= c.o.AfterWrite || c.o.AfterAccess > 0 && now.Sub(e.used) >= c.o.AfterAccess {
		c.drop(e)
		return nil
	}
	e.used = now
	c.unlink(e)
	c.link(e)
	return e
}

func (c *Cache) link(e *entry) {
	e.prev, e.next = &c.ends, c.ends.next
	e.prev.next, e.next.prev = e, e
}

func (c *Cache) unlink(e *entry) { e.prev.next, e.next.prev = e.next, e.prev }

func (c *Cache) drop(e *entry) {
	c.unlink(e)
	delete(c.entries, e.key)
	c.rows -= weight(e.rows)
}

func weight(rows int) int64 { return int64(max(rows, 1)) }

// keep takes what a load found.
func (c *Cache) keep(keys *connector.LookupKeys, found *connector.Found, at time.Time) {
	cols := columns(keys)
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range keys.Len() {
		sel := found.Sel[found.First[k]:found.First[k+1]]
		if len(sel) == 0 && !c.o.Missing || weight(len(sel)) > c.o.MaxRows {
			continue
		}
		e := &entry{key: string(batch.AppendKey(nil, cols, k)), rows: len(sel), loaded: at, used: at}
		for _, row := range sel {
			for i := range found.Rows.Cols {
				e.data = batch.AppendExact(e.data, &found.Rows.Cols[i], int(row))
			}
		}
		if old := c.entries[e.key]; old != nil {
			c.drop(old)
		}
		c.entries[e.key] = e
		c.link(e)
		c.rows += weight(e.rows)
		for c.rows > c.o.MaxRows {
			c.drop(c.ends.prev)
		}
	}
}

// join answers from what was there and from what was found for the other keys, in the
// order of the keys.
func (c *Cache) join(hits []*entry, found *connector.Found, out *connector.Found) error {
	out.Reset()
	n, miss := 0, 0
	for _, e := range hits {
		if e != nil {
			n += e.rows
			continue
		}
		n += int(found.First[miss+1] - found.First[miss])
		miss++
	}
	b := new(batch.Batch)
	b.Reset(c.o.Rows)
	b.Len = n
	for i := range b.Cols {
		b.Cols[i].Reset(c.o.Rows.Fields[i].Type, n)
	}
	row := 0
	miss = 0
	for _, e := range hits {
		first := row
		var err error
		if e != nil {
			row, err = e.decode(b, row)
		} else {
			for _, r := range found.Sel[found.First[miss]:found.First[miss+1]] {
				for i := range b.Cols {
					b.Cols[i].Put(row, &found.Rows.Cols[i], int(r))
				}
				row++
			}
			miss++
		}
		if err != nil {
			return err
		}
		for r := first; r < row; r++ {
			out.Sel = append(out.Sel, int32(r))
		}
		out.EndKey()
	}
	for i := range b.Cols {
		b.Cols[i].PadOffsets()
	}
	out.Rows = b
	return nil
}

// decode appends the entry's rows from row on.
func (e *entry) decode(b *batch.Batch, row int) (int, error) {
	data := e.data
	var err error
	for range e.rows {
		for i := range b.Cols {
			if data, err = batch.DecodeValue(&b.Cols[i], row, data); err != nil {
				return row, fmt.Errorf("BUG: a kept row cannot be read: %w", err)
			}
		}
		row++
	}
	return row, nil
}
