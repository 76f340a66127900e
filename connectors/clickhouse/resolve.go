package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/connectors/sealdir"
	"github.com/millrace/millrace/runtime/connector"
)

// Resolve implements connector.Committer.
func (s *sink) Resolve(ctx context.Context, as []connector.Artifact) ([]connector.Outcome, error) {
	out := make([]connector.Outcome, len(as))
	for i, a := range as {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		p, err := decodePayload(a.Payload)
		if err == nil {
			out[i], err = s.resolve(ctx, a, p)
		}
		if err != nil {
			return out, fmt.Errorf("resolving %s: %w", a.Header.ID, err)
		}
	}
	return out, nil
}

func (s *sink) resolve(ctx context.Context, a connector.Artifact, p payload) (connector.Outcome, error) {
	release, err := s.hold(ctx, a.Header.ID.String())
	if err != nil {
		return connector.Unknown, err
	}
	defer release()
	path, state, err := s.staging.Find(a.Header.ID)
	if err != nil {
		return connector.Unknown, err
	}
	switch state {
	case sealdir.Sealed:
		return connector.Sealed, nil
	case sealdir.Done:
		return connector.Published, nil
	case sealdir.Void:
		return connector.Absent, nil
	case "":
		return s.withoutBlock(ctx, a, p)
	}
	outcome, err := s.lookFor(ctx, a, p)
	if err == nil && outcome == connector.Published {
		_, err = s.staging.Mark(path, sealdir.Tried, sealdir.Done)
	}
	return outcome, err
}

// withoutBlock resolves an artefact whose file is gone.
func (s *sink) withoutBlock(ctx context.Context, a connector.Artifact, p payload) (connector.Outcome, error) {
	if !s.binding().countable() {
		s.explain(a, fmt.Sprintf("the sealed block is not in %s, and the table has no column %s to look for its rows", s.staging.Lane(a.Header.ID), artifactColumn))
		return connector.Unknown, nil
	}
	// Its rows will come again under another id, against which no token helps: the
	// query must be over for certain.
	if err := s.end(ctx, a.Header.ID.String(), false); err != nil {
		return connector.Unknown, fmt.Errorf("ending the INSERT that may still run: %w", err)
	}
	outcome, err := s.lookFor(ctx, a, p)
	switch {
	case err != nil || outcome != connector.Sealed:
		return outcome, err
	case len(s.opts.addr.hosts) > 1:
		s.explain(a, fmt.Sprintf("the sealed block is not in %s, and none of its rows is in table %s, but its query may still run on another of the %d servers: look into system.processes of each, then name one server in '%s' and resume",
			s.staging.Lane(a.Header.ID), s.location(), len(s.opts.addr.hosts), keyURL))
		return connector.Unknown, nil
	}
	return connector.Absent, nil
}

func (s *sink) explain(a connector.Artifact, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reasons[a.Header.ID.String()] = why
}

// lookFor finds what became of a block that was sent. First its query must be
// over: what is still running can still commit.
func (s *sink) lookFor(ctx context.Context, a connector.Artifact, p payload) (connector.Outcome, error) {
	if err := s.end(ctx, a.Header.ID.String(), s.remembers()); err != nil {
		return connector.Unknown, fmt.Errorf("ending the INSERT that may still run: %w", err)
	}
	b := s.binding()
	if b.countable() {
		n, err := s.count(ctx, a)
		switch {
		case err != nil:
			return connector.Unknown, err
		case n == p.rows:
			return connector.Published, nil
		case n == 0:
			if other, err := s.swapped(ctx, a); err != nil || other {
				return connector.Unknown, err
			}
			return connector.Sealed, nil
		}
		s.explain(a, fmt.Sprintf("table %s has %d rows whose %s is the block's id, and the block has %d: remove them (ALTER TABLE %s DELETE WHERE %s = %s), then resume",
			s.location(), n, artifactColumn, p.rows, s.server.name(), artifactColumn, quoteText(a.Header.ID.String())))
		return connector.Unknown, nil
	}
	if b.method != methodToken {
		return connector.Sealed, nil // at least once
	}
	if other, err := s.swapped(ctx, a); err != nil || other {
		return connector.Unknown, err
	}
	return s.within(ctx, a)
}

// swapped reports that the name stands for another table than when the block was
// sealed, and explains it: the rows may be in the table that had the name then, where
// nobody looks for them.
func (s *sink) swapped(ctx context.Context, a connector.Artifact) (bool, error) {
	path, state, err := s.staging.Find(a.Header.ID)
	if err != nil || state == "" {
		return false, err
	}
	block, err := s.readBlock(path, a)
	if err != nil {
		return false, err
	}
	l, err := s.server.load(ctx, s.binding().def)
	if err != nil {
		return false, fmt.Errorf("looking at the parts of %s: %w", s.location(), err)
	}
	if block.head.identity == "" || l.identity == "" || l.identity == block.head.identity {
		return false, nil
	}
	s.explain(a, s.decide(path, fmt.Sprintf("table %s is another one (UUID %s) than when the block was sent (UUID %s): it was exchanged, or dropped and made again, and the rows may be in the table that had its place",
		s.location(), l.identity, block.head.identity)))
	return true, nil
}

// within decides whether the table still remembers the block, if it ever had it.
func (s *sink) within(ctx context.Context, a connector.Artifact) (connector.Outcome, error) {
	path, state, err := s.staging.Find(a.Header.ID)
	if err != nil || state == "" {
		return connector.Unknown, err
	}
	block, err := s.readBlock(path, a)
	if err != nil {
		return connector.Unknown, err
	}
	l, err := s.server.load(ctx, s.binding().def)
	if err != nil {
		return connector.Unknown, fmt.Errorf("looking at the parts of %s: %w", s.location(), err)
	}
	d := s.binding().def
	if d.replicated() && l.blocks == 0 && block.head.partsBefore > 0 {
		return connector.Unknown, fmt.Errorf("the replica of %s does not know the log of the table at present", s.location())
	}
	blocks, seconds := l.blocks-block.head.partsBefore, l.now-block.head.sealedAt
	switch {
	case blocks < 0, blocks >= d.window/2:
		s.explain(a, s.decide(path, fmt.Sprintf("up to %d blocks were written to table %s since it was sent, and the table remembers %d, so that it could come twice", max(blocks, 0), s.location(), d.window)))
	case d.windowSeconds > 0 && seconds >= d.windowSeconds/2:
		s.explain(a, s.decide(path, fmt.Sprintf("it was sent %d s ago, and table %s remembers blocks for %d s", seconds, s.location(), d.windowSeconds)))
	default:
		return connector.Sealed, nil
	}
	return connector.Unknown, nil
}

// decide says how a person ends the doubt.
func (s *sink) decide(path, why string) string {
	stem := path[:len(path)-len(sealdir.Tried)]
	return why + fmt.Sprintf("; look whether its rows are in the table, then rename %s to %s if they are, or to %s if not, and resume; column %s (%s) ends such doubts for later blocks",
		path, stem+sealdir.Done, stem+sealdir.Sealed, artifactColumn, s.server.alterArtifact())
}

// count is the number of rows of a block in the table.
func (s *sink) count(ctx context.Context, a connector.Artifact) (int64, error) {
	if s.binding().def.replicated() {
		if err := s.server.exec(ctx, "SYSTEM SYNC REPLICA "+s.server.name()); err != nil {
			return 0, fmt.Errorf("waiting for the replica: %w", err)
		}
	}
	var n uint64
	err := s.server.bounded(ctx, func(ctx context.Context) error {
		return s.server.conn.QueryRow(ctx, "SELECT count() FROM "+s.server.name()+" WHERE "+artifactColumn+" = "+quoteText(a.Header.ID.String())).Scan(&n)
	})
	if err != nil {
		return 0, fmt.Errorf("counting the rows of the block: %w", err)
	}
	return int64(n), nil
}

const (
	// endPoll is how often the server is asked whether a query is over.
	endPoll = 50 * time.Millisecond
	// endPatience is how long that is waited for where a token keeps a late copy out.
	endPatience = 2 * time.Second
)

// end stops INSERTs of a block that may still run, by their query ids, and waits
// until they are gone. Invariant 3: looking comes after. A server whose client went
// silent in the middle of a block keeps the query for minutes and cannot be told
// to stop; where the same bytes are sent again under the block's token, it may commit
// late and no harm is done: harmless says that.
func (s *sink) end(ctx context.Context, id string, harmless bool) error {
	patience := s.opts.request
	if s.server.soon.Err() != nil {
		patience = min(patience, hurryTimeout)
	}
	if harmless {
		patience = min(patience, endPatience)
	}
	until := time.Now().Add(patience)
	where := " WHERE query_id = " + quoteText(id) + " OR query_id LIKE " + quoteText(id+againMark+"%")
	for first := true; ; first = false {
		var n uint64
		err := s.server.bounded(ctx, func(ctx context.Context) error {
			return s.server.conn.QueryRow(ctx, "SELECT count() FROM system.processes"+where).Scan(&n)
		})
		if err != nil || n == 0 {
			return err
		}
		if first {
			if err := s.server.exec(ctx, "KILL QUERY"+where+" ASYNC"); err != nil {
				return err
			}
		}
		if time.Now().After(until) {
			if harmless {
				return nil
			}
			return fmt.Errorf("query %s still runs after %v", id, patience)
		}
		t := time.NewTimer(endPoll)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

// remembers reports that the table keeps out a second copy of a block by its token.
func (s *sink) remembers() bool { return s.server.tokens && s.binding().def.window > 0 }

var errPublished = errors.New("it is published")

// Discard implements connector.Committer.
func (s *sink) Discard(ctx context.Context, as []connector.Artifact) error {
	for _, a := range as {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, err := decodePayload(a.Payload)
		if err == nil {
			err = s.discard(ctx, a, p)
		}
		if err != nil {
			return fmt.Errorf("discarding %s: %w", a.Header.ID, err)
		}
	}
	return nil
}

func (s *sink) discard(ctx context.Context, a connector.Artifact, p payload) error {
	release, err := s.hold(ctx, a.Header.ID.String())
	if err != nil {
		return err
	}
	defer release()
	path, state, err := s.staging.Find(a.Header.ID)
	if err != nil {
		return err
	}
	switch state {
	case sealdir.Void:
		return nil
	case sealdir.Done:
		return errPublished
	case sealdir.Tried:
		return errors.New("it was sent, and may be published")
	case "":
		if p.replace {
			return nil // it was never published by itself
		}
		outcome, err := s.withoutBlock(ctx, a, p)
		if err == nil && outcome != connector.Absent {
			err = fmt.Errorf("its outcome is %s", outcome)
		}
		return err
	}
	if p.replace {
		if seen, err := s.visible(ctx, a); err != nil || seen {
			return errors.Join(err, errPublished)
		}
	}
	next, err := s.staging.Mark(path, sealdir.Sealed, sealdir.Void)
	if err != nil {
		return err
	}
	// Discarded stays discarded: a crash must not bring the name back.
	return s.fs.SyncDir(s.fs.Dir(next))
}
