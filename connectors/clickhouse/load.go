package clickhouse

import (
	"context"
	"fmt"
	"time"
)

// load is a table's parts at one time.
type load struct {
	// identity of the table then.
	identity string
	// blocks counts the blocks that were ever written: it never falls behind the
	// number of writes by anybody, and may run ahead of it.
	blocks int64
	// now is the server's clock, in s since 1970.
	now int64
	// most is the number of active parts of the fullest partition.
	most int64
}

// look reads the load and keeps it.
func (s *sink) look(ctx context.Context) error {
	l, err := s.server.load(ctx, s.binding().def)
	if err != nil {
		return fmt.Errorf("looking at the parts of %s: %w", s.location(), err)
	}
	s.mu.Lock()
	if l.identity == s.load.identity && s.bound.def.replicated() {
		// A replica that has lost its Keeper gives 0.
		l.blocks = max(l.blocks, s.load.blocks)
	}
	s.load = l
	s.slow.seen(l.most)
	s.mu.Unlock()
	return nil
}

// mark is the block count, the time and the table's identity of the last look: all from
// before a block that is sealed now can be sent.
func (s *sink) mark() (blocks, now int64, identity string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load.blocks, s.load.now, s.load.identity
}

func (s *server) load(ctx context.Context, d *definition) (load, error) {
	var l load
	// Block numbers are of the whole table; of a replicated one they are of each
	// partition, go with it, and are known late to a replica that lags. Its log, which
	// all replicas share, has an entry for each block, and for each merge.
	blocks := "max(m)"
	if d.replicated() {
		blocks = "(SELECT max(log_max_index) FROM system.replicas WHERE " + s.where() + ")"
	}
	identity := "''"
	if d.identity != "" {
		identity = "(SELECT any(toString(uuid)) FROM system.tables WHERE database = " + quoteText(s.opts.database) + " AND name = " + quoteText(s.opts.table) + ")"
	}
	err := s.bounded(ctx, func(ctx context.Context) error {
		return s.conn.QueryRow(ctx, "SELECT "+identity+", toInt64("+blocks+"), toInt64(toUnixTimestamp(now())), toInt64(max(n)) FROM "+
			"(SELECT count() AS n, max(max_block_number) AS m FROM system.parts WHERE active AND "+s.where()+" GROUP BY partition_id)").
			Scan(&l.identity, &l.blocks, &l.now, &l.most)
	})
	return l, err
}

// pressure is how far a sink slows down for a table's merges.
type pressure struct {
	// parts of the fullest partition, and how often in a row the server refused
	// a block for their number.
	parts   int64
	refused int
}

// Waits before a block: from slowAt parts in a partition on they grow up to
// slowMost; after a refusal they double up to refusedMost. Servers delay INSERTs
// themselves from 150 (old) or 1000 parts on.
const (
	slowAt       = 100
	slowFull     = 1000
	slowMost     = 2 * time.Second
	refusedLeast = time.Second
	refusedMost  = 30 * time.Second
)

func (p *pressure) seen(parts int64) { p.parts = parts }

// wait is how long the next block should wait.
func (p *pressure) wait() time.Duration {
	if p.refused > 0 {
		return min(refusedLeast<<min(p.refused-1, 10), refusedMost)
	}
	if p.parts <= slowAt {
		return 0
	}
	return slowMost * time.Duration(min(p.parts, slowFull)-slowAt) / (slowFull - slowAt)
}

// breathe waits as the pressure says.
func (s *sink) breathe(ctx context.Context) error {
	s.mu.Lock()
	d := s.slow.wait()
	s.mu.Unlock()
	if d == 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
