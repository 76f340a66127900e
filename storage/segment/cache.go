package segment

import (
	"container/list"
	"fmt"
	"sync"

	"github.com/millrace/millrace/storage/vfs"
)

// CacheOptions bound what a Cache holds. Invariant 8: memory and open files
// stay under limits however many segments there are.
type CacheOptions struct {
	// MaxIndexBytes bounds the indexes in memory; 0 means 64 MiB. An index that
	// is larger alone is kept while it is the latest.
	MaxIndexBytes int64
	// MaxOpenFiles bounds the open files; 0 means 1000. Files being read at the
	// same time may exceed it for as long as the reads take.
	MaxOpenFiles int
}

// Cache opens segments on demand and forgets the least recently used.
type Cache struct {
	fs   vfs.FS
	opts CacheOptions

	mu         sync.Mutex
	entries    map[string]*cached
	indexes    *list.List // of *cached, most recently used first
	files      *list.List
	indexBytes int64
}

// cached is what the cache knows of one path. The fields are guarded by
// Cache.mu, except that loading serializes the work of opening.
type cached struct {
	path    string
	loading sync.Mutex
	index   *Index
	file    *sharedFile
	inIndex *list.Element
	inFiles *list.Element
	dropped bool
}

// NewCache makes an empty cache.
func NewCache(fsys vfs.FS, o CacheOptions) *Cache {
	if o.MaxIndexBytes <= 0 {
		o.MaxIndexBytes = 64 << 20
	}
	if o.MaxOpenFiles <= 0 {
		o.MaxOpenFiles = 1000
	}
	return &Cache{fs: fsys, opts: o, entries: map[string]*cached{}, indexes: list.New(), files: list.New()}
}

// Reader returns a reader of the segment at path. It costs nothing until it is
// used; it must not be closed. Segments in a cache are sealed. A file of another
// id than m.ID is refused with ErrNotSegment.
func (c *Cache) Reader(path string, m Meta) *Reader {
	return &Reader{src: &cacheSource{c: c, path: path, id: m.ID}, path: path, meta: m}
}

// Drop forgets a segment, before or after it is removed. Reads under way finish.
// A Reader used later opens the path anew.
func (c *Cache) Drop(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[path]; e != nil {
		e.dropped = true
		delete(c.entries, path)
		c.dropIndex(e)
		c.dropFile(e)
	}
}

// Close forgets everything. Reads under way finish.
func (c *Cache) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for path, e := range c.entries {
		e.dropped = true
		delete(c.entries, path)
		c.dropIndex(e)
		c.dropFile(e)
	}
}

// CacheStats is what a cache holds now.
type CacheStats struct {
	Indexes, Files int
	IndexBytes     int64
}

// Stats counts what the cache holds.
func (c *Cache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheStats{Indexes: c.indexes.Len(), Files: c.files.Len(), IndexBytes: c.indexBytes}
}

type cacheSource struct {
	c    *Cache
	path string
	id   uint64
}

func (s *cacheSource) acquire() (*sharedFile, error) {
	e := s.c.entry(s.path)
	e.loading.Lock()
	defer e.loading.Unlock()
	return s.c.open(e)
}

func (s *cacheSource) current() (*Index, error) {
	e := s.c.entry(s.path)
	e.loading.Lock()
	defer e.loading.Unlock()
	s.c.mu.Lock()
	x := e.index
	if e.inIndex != nil {
		s.c.indexes.MoveToFront(e.inIndex)
	}
	s.c.mu.Unlock()
	if x != nil {
		return x, nil
	}
	f, err := s.c.open(e)
	if err != nil {
		return nil, err
	}
	defer f.release()
	l, err := load(f.f, s.path)
	if err != nil {
		return nil, err
	}
	if l.meta.ID != s.id {
		// A file under a wrong name: what it holds of a partition may lie
		// elsewhere, and a reader would jump over records.
		return nil, fmt.Errorf("opening %s: %w %d: the file is of segment %d", s.path, ErrNotSegment, s.id, l.meta.ID)
	}
	s.c.keepIndex(e, l.index)
	return l.index, nil
}

func (c *Cache) entry(path string) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[path]
	if e == nil {
		e = &cached{path: path}
		c.entries[path] = e
	}
	return e
}

// open returns the file with one more user. e.loading is held.
func (c *Cache) open(e *cached) (*sharedFile, error) {
	c.mu.Lock()
	if e.file != nil && e.file.retain() {
		c.files.MoveToFront(e.inFiles)
		f := e.file
		c.mu.Unlock()
		return f, nil
	}
	c.mu.Unlock()
	raw, err := c.fs.Open(e.path)
	if err != nil {
		c.mu.Lock()
		c.forget(e)
		c.mu.Unlock()
		return nil, fmt.Errorf("opening segment: %w", err)
	}
	f := newSharedFile(raw) // one user: the cache
	f.retain()              // and the caller
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.dropped {
		f.release()
		return f, nil
	}
	e.file, e.inFiles = f, c.files.PushFront(e)
	for c.files.Len() > c.opts.MaxOpenFiles {
		c.dropFile(c.files.Back().Value.(*cached))
	}
	return f, nil
}

func (c *Cache) keepIndex(e *cached, x *Index) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.dropped || e.index != nil {
		return
	}
	e.index, e.inIndex = x, c.indexes.PushFront(e)
	c.indexBytes += x.bytes()
	for c.indexBytes > c.opts.MaxIndexBytes && c.indexes.Len() > 1 {
		c.dropIndex(c.indexes.Back().Value.(*cached))
	}
}

// dropIndex, dropFile and forget need c.mu.
func (c *Cache) dropIndex(e *cached) {
	if e.inIndex != nil {
		c.indexes.Remove(e.inIndex)
		c.indexBytes -= e.index.bytes()
		e.index, e.inIndex = nil, nil
		c.forget(e)
	}
}

func (c *Cache) dropFile(e *cached) {
	if e.inFiles != nil {
		c.files.Remove(e.inFiles)
		// A reading user closes it when done; an error of closing a file that
		// was only read tells nothing.
		_ = e.file.release()
		e.file, e.inFiles = nil, nil
		c.forget(e)
	}
}

// forget removes an entry that holds nothing, so that the map stays bounded.
func (c *Cache) forget(e *cached) {
	if e.inFiles == nil && e.inIndex == nil && c.entries[e.path] == e {
		delete(c.entries, e.path)
	}
}
