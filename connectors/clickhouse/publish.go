package clickhouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"

	chproto "github.com/ClickHouse/ch-go/proto"
	ch "github.com/ClickHouse/clickhouse-go/v2"
	chcolumn "github.com/ClickHouse/clickhouse-go/v2/lib/column"

	"github.com/millrace/millrace/connectors/sealdir"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// Publish implements connector.Committer: one INSERT a block, in order.
func (s *sink) Publish(ctx context.Context, as []connector.Artifact) []error {
	errs := make([]error, len(as))
	// Invariant 9: a process whose job was taken over publishes nothing.
	stopped := s.staging.Owned()
	for i, a := range as {
		if stopped == nil {
			stopped = ctx.Err()
		}
		if stopped != nil {
			// In order: what follows a failure is not published before it.
			errs[i] = fmt.Errorf("publishing %s: not tried: %w", a.Header.ID, stopped)
			continue
		}
		if err := s.publish(ctx, a); err != nil {
			errs[i] = fmt.Errorf("publishing %s: %w", a.Header.ID, err)
			if stopped = err; errors.Is(err, connector.ErrRefused) {
				// That block is bad; the next one may be good. Its error is the
				// cause of nothing else.
				stopped = nil
			}
		}
	}
	return errs
}

func (s *sink) publish(ctx context.Context, a connector.Artifact) error {
	p, err := decodePayload(a.Payload)
	if err != nil {
		return err
	}
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
	case sealdir.Done:
		return nil
	case sealdir.Void:
		return errors.New("it was discarded")
	case "":
		return errors.New("its sealed block is not in " + s.staging.Lane(a.Header.ID))
	case sealdir.Tried:
		// Sent before, and nobody knows what came of it.
		outcome, err := s.lookFor(ctx, a, p)
		switch {
		case err != nil:
			return err
		case outcome == connector.Published:
			_, err := s.staging.Mark(path, sealdir.Tried, sealdir.Done)
			return err
		case outcome == connector.Unknown:
			return errors.New(s.ExplainUnknown(a))
		}
	}
	if err := s.breathe(ctx); err != nil {
		return err
	}
	return s.send(ctx, a, path, state == sealdir.Tried)
}

// send reads a sealed block and inserts it.
func (s *sink) send(ctx context.Context, a connector.Artifact, path string, again bool) error {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	id := a.Header.ID.String()
	block, err := s.readBlock(path, a)
	if err != nil {
		return err
	}
	if !again {
		if path, err = s.staging.Mark(path, sealdir.Sealed, sealdir.Tried); err != nil {
			return err
		}
		// Before anything is sent: after a power cut the block must not be found as
		// one that was never sent.
		if err := s.fs.SyncDir(s.fs.Dir(path)); err != nil {
			return fmt.Errorf("syncing staging directory: %w", err)
		}
	}
	query := s.queryID(id, again)
	s.mu.Lock()
	before := s.load
	s.mu.Unlock()
	wrote, sent, err := s.insert(ctx, s.server.name(), id, query, block)
	if err != nil {
		return s.failed(ctx, a, path, block, again, sent, err)
	}
	if err := s.acknowledged(ctx, a, before, wrote, again); err != nil {
		return err
	}
	s.mu.Lock()
	s.slow.refused = 0
	delete(s.used, id)
	s.mu.Unlock()
	_, err = s.staging.Mark(path, sealdir.Tried, sealdir.Done)
	return err
}

// queryID is a block's id for its first query and another one for each later query:
// the first may still hold its id, even if it broke before the block was sent.
func (s *sink) queryID(id string, again bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !again && !s.used[id] {
		s.used[id] = true
		return id
	}
	s.tries++
	return id + againMark + strconv.FormatUint(s.staging.Epoch(), 10) + "-" + strconv.FormatInt(s.tries, 10)
}

// sealedBlock is a sealed block in memory.
type sealedBlock struct {
	head    sealedHead
	columns [][]byte
}

func (s *sink) readBlock(path string, a connector.Artifact) (*sealedBlock, error) {
	file, err := vfs.ReadFile(s.fs, path)
	if errors.Is(err, vfs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is gone", connector.ErrFenced, path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading sealed block: %w", err)
	}
	b := &sealedBlock{}
	if b.head, b.columns, err = decodeSealed(file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if b.head.id != a.Header.ID.String() || b.head.rows != a.Header.Rows {
		return nil, fmt.Errorf("%s holds block %s of %d rows, not %s of %d", path, b.head.id, b.head.rows, a.Header.ID, a.Header.Rows)
	}
	return b, nil
}

// errChanged says that a column is no longer of the type that the block has.
var errChanged = errors.New("the table's columns have changed since the block was sealed")

// againMark stands between a block's id and what tells the queries of its later
// tries apart.
const againMark = "-again-"

// insert sends a block in one INSERT; id is its token, "" for rows that are only
// tried. wrote is the number of rows that the server
// acknowledged, sent reports whether any of the block left this process.
func (s *sink) insert(ctx context.Context, table, id, query string, b *sealedBlock) (wrote int64, sent bool, err error) {
	ctx, cancel := s.server.deadline(ctx, s.opts.request)
	defer cancel()
	settings := maps.Clone(s.server.settings)
	switch {
	case id == "":
	case s.server.tokens:
		// Always: by content alone, equal blocks of two artefacts would be one.
		settings["insert_deduplication_token"] = id
	case s.binding().artifact == nil:
		settings["insert_deduplicate"] = 0
	}
	// Servers say what they wrote in the one way or the other.
	var events, progress atomic.Int64
	defer func() { wrote = max(events.Load(), progress.Load()) }()
	ctx = ch.Context(ctx, ch.WithQueryID(query), ch.WithSettings(settings),
		ch.WithProgress(func(p *ch.Progress) { progress.Add(int64(p.WroteRows)) }),
		ch.WithProfileEvents(func(list []ch.ProfileEvent) {
			for i := range list {
				if list[i].Name == "InsertedRows" {
					events.Add(list[i].Value)
				}
			}
		}))
	names := make([]string, len(b.head.columns))
	for i, c := range b.head.columns {
		names[i] = quoteName(c.name)
	}
	statement := "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ")"
	if s.server.opts.addr.http {
		n, sent, err := s.server.insertHTTP(ctx, statement, query, settings, b)
		progress.Store(n)
		return n, sent, err
	}
	batch, err := s.server.conn.PrepareBatch(ctx, statement)
	if err != nil {
		return 0, false, fmt.Errorf("beginning the INSERT: %w", err)
	}
	if err := fill(batch.Columns(), b); err != nil {
		_ = batch.Abort()
		return 0, false, err
	}
	if err := batch.Send(); err != nil {
		return 0, true, fmt.Errorf("sending the block: %w", err)
	}
	return 0, true, nil
}

// fill loads the driver's columns with the sealed bytes, which are in the form in
// which the server would send them.
func fill(cols []chcolumn.Interface, b *sealedBlock) error {
	if len(cols) != len(b.columns) {
		return fmt.Errorf("%w: %d instead of %d", errChanged, len(cols), len(b.columns))
	}
	for i, c := range cols {
		h := b.head.columns[i]
		if c.Name() != h.name || !sameType(string(c.Type()), h.typ) {
			return fmt.Errorf("%w: column %s is %s, was %s", errChanged, c.Name(), c.Type(), h.typ)
		}
		r := chproto.NewReader(bytes.NewReader(b.columns[i]))
		if x, ok := c.(chcolumn.CustomSerialization); ok {
			if err := x.ReadStatePrefix(r); err != nil {
				return fmt.Errorf("column %s: %w", h.name, err)
			}
		}
		if err := c.Decode(r, int(b.head.rows)); err != nil {
			return fmt.Errorf("column %s: %w", h.name, err)
		}
		if _, err := r.ReadByte(); err == nil {
			return fmt.Errorf("column %s: bytes are left behind its %d rows", h.name, b.head.rows)
		}
	}
	return nil
}

// sameType compares two texts of a type without regard to spaces.
func sameType(a, b string) bool {
	return a == b || strings.ReplaceAll(a, " ", "") == strings.ReplaceAll(b, " ", "")
}

// failed says what an error of an INSERT means.
func (s *sink) failed(ctx context.Context, a connector.Artifact, path string, b *sealedBlock, again, sent bool, err error) error {
	class := classOf(err)
	if errors.Is(err, errChanged) {
		class = classSchema
	}
	s.mu.Lock()
	if class == classPressure {
		s.slow.refused++
	} else {
		s.slow.refused = 0
	}
	s.mu.Unlock()
	wrapped := &serverError{err: err, class: class, table: s.location()}
	refused := class == classData || class == classSchema
	if again && !(refused && s.gone(ctx, a)) || !sent && class == classUnknown && !isAnswer(err) && ctx.Err() != nil {
		// What the first try did is not known: a refusal of the second says
		// nothing of the first. Invariant 3.
		return wrapped
	}
	if sent && (class == classUnknown || s.binding().def.views > 0) {
		// A view may fail after the table has taken the block.
		return wrapped
	}
	// The server answered before it took anything, or refused the only part.
	if _, merr := s.staging.Mark(path, sealdir.Tried, sealdir.Sealed); merr != nil {
		return errors.Join(wrapped, merr)
	}
	if !refused {
		return wrapped
	}
	if class == classData {
		s.mu.Lock()
		s.suspicion.raise(b.head.rows)
		s.mu.Unlock()
	}
	return fmt.Errorf("%w: %w", connector.ErrRefused, wrapped)
}

// gone reports for certain that a block which was sent is not in the table and will not
// come: its queries are over, and none of its rows is there.
func (s *sink) gone(ctx context.Context, a connector.Artifact) bool {
	// Of several servers another one than is asked may still work on it.
	if len(s.opts.addr.hosts) > 1 || !s.binding().countable() || s.end(ctx, a.Header.ID.String(), false) != nil {
		return false
	}
	n, err := s.count(ctx, a)
	return err == nil && n == 0
}

func isAnswer(err error) bool {
	var e *ch.Exception
	return errors.As(err, &e)
}

// acknowledged compares what the server says with what was sent. A nil error of
// the driver alone proves nothing: a table that is dropped meanwhile swallows the
// block. before is the table as it was before the block was sent.
func (s *sink) acknowledged(ctx context.Context, a connector.Artifact, before load, wrote int64, again bool) error {
	b := s.binding()
	if err := s.look(ctx); err != nil {
		return fmt.Errorf("the block was sent: %w", err)
	}
	s.mu.Lock()
	// A table without an identity is another one when its blocks are fewer: the
	// highest is this one's.
	changed := s.load.identity != before.identity || !b.def.replicated() && s.load.blocks < before.blocks
	s.mu.Unlock()
	rows := a.Header.Rows
	said := wrote == rows || again && wrote == 0
	// The rows of views are in the number, too; those of a view over a second copy,
	// which is kept out, may be alone in it.
	said = said || b.def.views > 0 && (wrote > rows || again)
	// Without exactly once an answer is enough where the server gives no number.
	said = said || !s.server.counts && !s.opts.exactlyOnce
	if !changed && said {
		return nil
	}
	if b.countable() {
		n, err := s.count(ctx, a)
		if err == nil && n == rows {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("the table has %d rows of the block, which has %d", n, rows)
		}
		return err
	}
	if changed {
		return fmt.Errorf("table %s was dropped or replaced while a block was inserted", s.location())
	}
	return fmt.Errorf("the server acknowledged %d rows of a block of %d", wrote, rows)
}
