package topiclog

import (
	"errors"
	"fmt"
	"sync"

	"github.com/millrace/millrace/storage/manifest"
)

// committer makes metadata durable: one goroutine collects the edits of all
// callers, appends them to the manifest with one fsync and only then applies
// them to the state in memory, in order. Between two rounds the state is
// exactly what the manifest says, so that is where it is rewritten.
type committer struct {
	s    *Store
	log  *manifest.Log
	open func(apply func(kind uint16, payload []byte) error) (*manifest.Log, manifest.Recovery, error)
	// entries counts the edits in the file in force. After a failed append it
	// tells whether the failed edits are in it.
	entries int64

	mu     sync.Mutex
	wake   sync.Cond
	queue  []*metaOp
	closed bool
	failed error
	done   chan struct{}
}

type metaOp struct {
	edits []manifest.Edit
	apply func()
	done  chan error
}

// commit returns when the edits are durable and applied. It must not be called
// with Store.mu or a shard's mutex held.
func (c *committer) commit(apply func(), edits ...manifest.Edit) error {
	op := &metaOp{edits: edits, apply: apply, done: make(chan error, 1)}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrClosed
	}
	c.queue = append(c.queue, op)
	c.wake.Signal()
	c.mu.Unlock()
	return <-op.done
}

func (c *committer) run() {
	defer close(c.done)
	for {
		c.mu.Lock()
		for len(c.queue) == 0 && !c.closed {
			c.wake.Wait()
		}
		ops := c.queue
		c.queue = nil
		c.mu.Unlock()
		if len(ops) == 0 {
			return
		}
		for len(ops) > 0 {
			n := c.round(ops)
			ops = ops[n:]
		}
	}
}

// round commits as many of the operations as go into one batch.
func (c *committer) round(ops []*metaOp) int {
	var edits []manifest.Edit
	size, n := 0, 0
	for _, op := range ops {
		s := 0
		for i := range op.edits {
			s += 16 + len(op.edits[i].Payload)
		}
		if n > 0 && size+s > manifest.MaxBatchBytes/2 {
			break
		}
		edits = append(edits, op.edits...)
		size += s
		n++
	}
	err := c.append(edits)
	for _, op := range ops[:n] {
		if err == nil && op.apply != nil {
			op.apply()
		}
	}
	if err == nil && c.log.ShouldSnapshot() {
		c.snapshot()
	}
	for _, op := range ops[:n] {
		op.done <- err
	}
	return n
}

func (c *committer) append(edits []manifest.Edit) error {
	if c.failed != nil {
		return c.failed
	}
	err := c.log.Append(edits...)
	if err == nil {
		c.entries += int64(len(edits))
		return nil
	}
	if errors.Is(err, manifest.ErrTooLarge) {
		return err // nothing was written
	}
	if !isFull(err) {
		c.failed = fmt.Errorf("%w: writing metadata: %w", ErrFenced, err)
		return c.failed
	}
	// A full disk is no damage: give up the reserve, look at what the file
	// holds now, and try once more.
	c.s.diskFull(err)
	for range 2 {
		written, oerr := c.reopen()
		if oerr != nil {
			c.failed = fmt.Errorf("%w: reopening metadata after %w: %w", ErrFenced, err, oerr)
			return c.failed
		}
		if written {
			c.entries += int64(len(edits))
			return nil
		}
		if err = c.log.Append(edits...); err == nil {
			c.entries += int64(len(edits))
			return nil
		}
	}
	if written, oerr := c.reopen(); oerr != nil {
		c.failed = fmt.Errorf("%w: reopening metadata after %w: %w", ErrFenced, err, oerr)
		return c.failed
	} else if written {
		c.entries += int64(len(edits))
		return nil
	}
	return &DiskFullError{Dir: c.s.opts.Dir, Err: err}
}

// reopen opens the manifest anew and says whether it holds one more batch than
// was acknowledged.
func (c *committer) reopen() (written bool, err error) {
	_ = c.log.Close()
	n := int64(0)
	log, _, err := c.open(func(uint16, []byte) error { n++; return nil })
	if err != nil {
		return false, err
	}
	c.log = log
	return n > c.entries, nil
}

// snapshot rewrites the manifest. Failing to costs nothing but space, unless the
// log says that it is out of use.
func (c *committer) snapshot() {
	edits := c.s.dump()
	err := c.log.Snapshot(func(emit func(uint16, []byte) error) error {
		for _, e := range edits {
			if err := emit(e.Kind, e.Payload); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		c.entries = int64(len(edits))
		return
	}
	c.s.opts.Logger.Warn("rewriting the manifest failed", "error", err)
	if isFull(err) {
		c.s.diskFull(err)
	}
}

// close waits for what is queued and closes the manifest.
func (c *committer) close() error {
	c.mu.Lock()
	c.closed = true
	c.wake.Signal()
	c.mu.Unlock()
	<-c.done
	return c.log.Close()
}
