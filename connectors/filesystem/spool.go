package filesystem

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

const (
	// chunkBytes is how much goes to the disk in one write.
	chunkBytes = 64 << 10
	// maxFreeChunks bounds the buffers that a sink keeps for re-use.
	maxFreeChunks = 16
)

// spool is an open file behind a queue: Write appends to memory, and one
// goroutine, alive only while something is queued, writes it to the disk. So a
// lane that computes never waits for I/O. Errors come out of the next Write and
// of finish.
type spool struct {
	sink *Sink
	name string

	cur   []byte // being filled; the writer's alone
	total int64  // bytes taken

	mu      sync.Mutex
	idle    sync.Cond
	queue   [][]byte
	queued  int64 // bytes in queue or being written
	running bool
	aborted bool
	file    vfs.File
	err     error
}

func newSpool(s *Sink, name string) *spool {
	p := &spool{sink: s, name: name}
	p.idle.L = &p.mu
	return p
}

// Write takes all of b, or reports an earlier failure.
func (p *spool) Write(b []byte) (int, error) {
	taken := 0
	for taken < len(b) {
		if p.cur == nil {
			p.cur = p.sink.chunk()
		}
		n := min(len(b)-taken, cap(p.cur)-len(p.cur))
		p.cur = append(p.cur, b[taken:taken+n]...)
		taken += n
		if len(p.cur) == cap(p.cur) {
			if err := p.push(); err != nil {
				return taken, err
			}
		}
	}
	p.total += int64(taken)
	return taken, nil
}

// push queues the current chunk.
func (p *spool) push() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	if len(p.cur) == 0 {
		return nil
	}
	p.queue = append(p.queue, p.cur)
	p.queued += int64(len(p.cur))
	p.cur = nil
	if !p.running {
		p.running = true
		go p.drain()
	}
	return nil
}

// held is the memory in use: what is queued and what is being filled.
func (p *spool) held() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queued + int64(cap(p.cur))
}

func (p *spool) drain() {
	for {
		p.mu.Lock()
		if len(p.queue) == 0 || p.err != nil || p.aborted {
			p.running = false
			p.queue, p.queued = nil, 0
			p.idle.Broadcast()
			p.mu.Unlock()
			return
		}
		chunk := p.queue[0]
		p.queue = p.queue[1:]
		f := p.file
		p.mu.Unlock()

		err := p.put(f, chunk)

		p.mu.Lock()
		p.queued -= int64(len(chunk))
		if err != nil && p.err == nil {
			p.err = err
		}
		p.mu.Unlock()
		p.sink.putChunk(chunk)
	}
}

// put writes one chunk; the first one creates the file.
func (p *spool) put(f vfs.File, chunk []byte) error {
	if f == nil {
		var err error
		f, err = p.sink.fs.CreateNew(p.name)
		if errors.Is(err, vfs.ErrNotExist) {
			// Invariant 9: the attempt's directory is gone.
			return fmt.Errorf("%w: %s", connector.ErrFenced, p.sink.fs.Dir(p.name))
		}
		if err != nil {
			return fmt.Errorf("creating staged file: %w", err)
		}
		p.mu.Lock()
		p.file = f
		p.mu.Unlock()
	}
	if _, err := f.Write(chunk); err != nil {
		return fmt.Errorf("writing staged file: %w", err)
	}
	return nil
}

// finish writes out everything, makes the file durable and compares its
// length with what was taken.
func (p *spool) finish(ctx context.Context) error {
	if err := p.push(); err != nil {
		return err
	}
	p.mu.Lock()
	for p.running {
		p.idle.Wait()
	}
	f, err := p.file, p.err
	p.file = nil
	p.mu.Unlock()
	if f == nil {
		if err == nil {
			err = errors.New("nothing was written")
		}
		return err
	}
	if err == nil {
		switch err = syncFile(ctx, f); {
		case errors.Is(err, vfs.ErrNotExist):
			// Invariant 9: the attempt's directory is gone, and the filesystem
			// is one that makes files when they are whole.
			err = fmt.Errorf("%w: %s: %w", connector.ErrFenced, p.sink.fs.Dir(p.name), err)
		case err != nil:
			err = fmt.Errorf("syncing staged file: %w", err)
		default:
			p.name = f.Name()
		}
	}
	if err == nil {
		var info vfs.FileInfo
		if info, err = f.Stat(); err != nil {
			err = fmt.Errorf("looking at staged file: %w", err)
		} else if info.Size() != p.total {
			err = fmt.Errorf("staged file %s has %d bytes, %d were written", p.name, info.Size(), p.total)
		}
	}
	if cerr := f.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("closing staged file: %w", cerr)
	}
	return err
}

// contextSyncer is a file whose Sync takes long.
type contextSyncer interface {
	SyncContext(ctx context.Context) error
}

func syncFile(ctx context.Context, f vfs.File) error {
	if c, ok := f.(contextSyncer); ok {
		return c.SyncContext(ctx)
	}
	return f.Sync()
}

// abort stops writing and drops the file.
func (p *spool) abort() {
	p.mu.Lock()
	p.aborted = true
	for p.running {
		p.idle.Wait()
	}
	f := p.file
	p.file = nil
	p.mu.Unlock()
	p.cur = nil
	if f != nil {
		// The file is garbage either way; the next sweep removes what stays.
		_ = f.Close()
		if !p.sink.linkless {
			// Elsewhere a file that was not synced has no name yet.
			_ = p.sink.fs.Remove(p.name)
		}
	}
}
