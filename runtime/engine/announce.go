package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
)

// announce makes closed partitions known. What fails is tried again by a later
// step; files go on being committed meanwhile.
func (c *closer) announce(ctx context.Context, closed []*ledger.Close) {
	var failed error
	together := announceBatch
	if c.policy.OneByOne {
		together = 1
	}
	for part := range slices.Chunk(closed, together) {
		if ctx.Err() != nil {
			break
		}
		for i, err := range c.commit(ctx, part) {
			if err == nil && c.tell != nil {
				err = c.tell(ctx, part[i])
			}
			if err == nil {
				err = c.announced(ctx, part[i])
			} else {
				err = fmt.Errorf("announcing partition %s of table %s: %w", part[i].TablePartition, c.table.Name, err)
			}
			if err != nil {
				failed = err
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.err
	c.busy, c.err = false, failed
	if failed == nil {
		c.wait, c.since = 0, time.Time{}
		return
	}
	if c.since.IsZero() {
		c.since = c.clock.Now()
	}
	if before == nil && c.log != nil {
		c.log.Warn("partitions are not announced; their files are committed, and it is tried again", "table", c.table.Name, "error", failed)
	}
	c.wait = min(max(2*c.wait, firstAnnounceWait), maxAnnounceWait)
	c.again = c.clock.Now().Add(c.wait)
}

// commit hands partitions to the sink, together where it can take them so.
func (c *closer) commit(ctx context.Context, part []*ledger.Close) []error {
	if b, ok := c.sink.(connector.PartitionBatchCommitter); ok {
		names := make([]string, len(part))
		for i, x := range part {
			names[i] = x.TablePartition
		}
		return b.CommitPartitions(ctx, names)
	}
	errs := make([]error, len(part))
	for i, x := range part {
		errs[i] = c.sink.CommitPartition(ctx, x.TablePartition)
	}
	return errs
}

// announced records that a partition is known, unless late rows have come
// meanwhile: then it goes through its steps once more.
func (c *closer) announced(ctx context.Context, x *ledger.Close) error {
	c.gate.Lock()
	defer c.gate.Unlock()
	now := c.book.Close(ledger.CloseKey{Table: c.table.ID, TablePartition: x.TablePartition})
	if now == nil || now.Version != x.Version || now.Step != ledger.Closed {
		return nil
	}
	f := *now
	f.Step, f.TimeMillis = ledger.Announced, c.clock.Now().UnixMilli()
	if err := c.book.Append(ctx, &f); err != nil && !errors.Is(err, ledger.ErrStale) {
		return err
	}
	return nil
}

// lastErr is why the last announcement failed, or nil.
func (c *closer) lastErr() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// finalErr is lastErr if trying again is of no use, or has been for long.
func (c *closer) finalErr() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var r connector.Retryable
	if errors.As(c.err, &r) && r.Retryable() && c.clock.Now().Sub(c.since) < announcePatience {
		return nil
	}
	return c.err
}
