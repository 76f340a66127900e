package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace/connectors/sealdir"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// Method replace. The content of a table partition is loaded into a table that is made
// like the real one, counted there, and takes the partition's place in one step:
//
//	CREATE TABLE _mr_stage_...      like the table; the job's older stages are dropped
//	INSERT                          the sealed blocks
//	SELECT count(), hash            as many rows as were sealed, in one partition
//	record                          version, rows and hash of what is to come
//	ALTER TABLE ... REPLACE PARTITION ... FROM _mr_stage_...
//	SELECT count(), hash            of the partition: the same
//	record                          done; the stage is dropped
//
// What is visible is told by its rows and hash: a content that somebody else put there
// meanwhile is nobody's version. Invariant 9: a process that lost the table may hang
// before its ALTER; whoever took over has dropped its stage, and the ALTER fails. Two
// jobs would take each other's contents for somebody's, and replace them for ever: the
// table is one job's (claim.go).

var (
	_ connector.ReplacingConnector = (*Connector)(nil)
	_ connector.Replacer           = (*sink)(nil)
)

// ReplaceMode implements connector.ReplacingConnector.
func (c *Connector) ReplaceMode(t *connector.Table) (connector.ReplaceMode, string) {
	if t.Options.String(keyMethod) == methodReplace {
		return connector.ReplaceResults, ""
	}
	return connector.ReplaceNever, "set '" + keyMethod + "' = '" + methodReplace + "'"
}

// PartitionOf implements connector.Replacer.
func (s *sink) PartitionOf(b *batch.Batch, row int) (string, error) {
	bound := s.binding()
	if len(bound.keys) == 0 {
		return "", nil
	}
	w := &writer{sink: s, bound: bound, ids: map[string]connector.BucketID{}, rows: []int32{int32(row)}}
	w.gatherKeys(b)
	return w.names[w.bucketOf(0)], nil
}

// errNotReplacing says that the table grows.
var errNotReplacing = fmt.Errorf("the table is not written with '%s' = '%s'", keyMethod, methodReplace)

// Replace implements connector.Replacer.
func (s *sink) Replace(ctx context.Context, rs []connector.Replacement) []error {
	errs := make([]error, len(rs))
	stopped := s.staging.Owned()
	if stopped == nil && s.binding().method != methodReplace {
		stopped = errNotReplacing
	}
	for i := range rs {
		if stopped == nil {
			stopped = ctx.Err()
		}
		if stopped != nil {
			errs[i] = fmt.Errorf("replacing %s: not tried: %w", place(rs[i].TablePartition), stopped)
			continue
		}
		if err := s.replaceOne(ctx, &rs[i]); err != nil {
			errs[i] = fmt.Errorf("replacing %s: %w", place(rs[i].TablePartition), err)
			if stopped = err; errors.Is(err, connector.ErrRefused) {
				stopped = nil
			}
		}
	}
	return errs
}

// place is a table partition for people.
func place(partition string) string {
	if partition == "" {
		return "the table"
	}
	return "table partition " + partition
}

func (s *sink) replaceOne(ctx context.Context, r *connector.Replacement) error {
	// One at a time: a stage that is not the present one's is somebody's who is gone.
	release, err := s.hold(ctx, stagePrefix)
	if err != nil {
		return err
	}
	defer release()
	have, err := s.readRecord(r.TablePartition)
	if err != nil {
		return err
	}
	outcome, err := s.stands(ctx, have, r.Version)
	if err != nil {
		return err
	}
	if outcome == connector.Published {
		return s.replaced(have, r)
	}
	if err := s.dropStages(ctx); err != nil {
		return err
	}
	next, stage, err := s.stage(ctx, r)
	if err != nil {
		return err
	}
	have.Next = next
	if err := s.writeRecord(have); err != nil {
		return err
	}
	// Whoever lost the table stops here at the latest.
	if err := errors.Join(s.staging.Owned(), s.claimed(ctx)); err != nil {
		return err
	}
	if err := s.exchange(ctx, next, stage); err != nil {
		return err
	}
	seen, err := s.seen(ctx, next.Partition)
	if err != nil {
		return err
	}
	if seen != next.content() {
		return fmt.Errorf("the partition has %d rows of hash %x afterwards, and the stage had %d of %x", seen.rows, seen.hash, next.Rows, next.Hash)
	}
	if err := s.replaced(have, r); err != nil {
		return err
	}
	return s.dropStages(ctx)
}

// exchange puts the stage in the partition's place, or drops the partition when the
// content is empty: an empty stage never replaces anything.
func (s *sink) exchange(ctx context.Context, next *version, stage string) error {
	statement := "ALTER TABLE " + s.server.name() + " REPLACE PARTITION ID " + quoteText(next.Partition) + " FROM " + stage
	if next.Rows == 0 {
		if next.Partition == "" {
			return nil
		}
		statement = "ALTER TABLE " + s.server.name() + " DROP PARTITION ID " + quoteText(next.Partition)
	}
	if err := s.server.exec(ctx, statement); err != nil {
		return &serverError{err: err, class: classOf(err), table: s.location()}
	}
	return nil
}

// replaced records that the content is there, and marks its blocks.
func (s *sink) replaced(have *record, r *connector.Replacement) error {
	if have.Next != nil {
		have.Done, have.Next = have.Next, nil
	}
	if err := s.writeRecord(have); err != nil {
		return err
	}
	if have.Done.Version > r.Version {
		return nil // overtaken: its blocks were never visible under this version
	}
	for _, a := range r.Parts {
		path, state, err := s.staging.Find(a.Header.ID)
		if err == nil && state == sealdir.Sealed {
			_, err = s.staging.Mark(path, sealdir.Sealed, sealdir.Done)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stands tells whether the partition has the version, or a newer one, and settles what
// an ALTER whose end nobody saw has done.
func (s *sink) stands(ctx context.Context, have *record, want uint64) (connector.Outcome, error) {
	for _, v := range []*version{have.Next, have.Done} {
		if v == nil {
			continue
		}
		partition, err := v.Partition, error(nil)
		if partition == "" {
			// Nothing was there; somebody may have written rows since.
			if partition, err = s.partitionNamed(ctx, have.Name); err != nil {
				return connector.Unknown, err
			}
		}
		seen, err := s.seen(ctx, partition)
		if err != nil {
			return connector.Unknown, err
		}
		if seen != v.content() {
			continue
		}
		have.Done, have.Next = v, nil
		if v.Version >= want {
			return connector.Published, nil
		}
		return connector.Sealed, nil
	}
	return connector.Sealed, nil
}

// ResolveReplace implements connector.Replacer.
func (s *sink) ResolveReplace(ctx context.Context, rs []connector.Replacement) ([]connector.Outcome, error) {
	out := make([]connector.Outcome, len(rs))
	for i := range rs {
		have, err := s.readRecord(rs[i].TablePartition)
		if err == nil {
			out[i], err = s.stands(ctx, have, rs[i].Version)
		}
		if err != nil {
			return out, fmt.Errorf("resolving the content of %s: %w", place(rs[i].TablePartition), err)
		}
		for _, a := range rs[i].Parts {
			if out[i] != connector.Sealed {
				break
			}
			_, state, err := s.staging.Find(a.Header.ID)
			if err != nil {
				return out, err
			}
			if state == "" || state == sealdir.Void {
				out[i] = connector.Absent
			}
		}
	}
	return out, nil
}

// visible reports that a sealed block is part of a content that readers see.
func (s *sink) visible(ctx context.Context, a connector.Artifact) (bool, error) {
	have, err := s.readRecord(a.Header.TablePartition)
	if err != nil {
		return false, err
	}
	for _, v := range []*version{have.Next, have.Done} {
		if v == nil || !slices.Contains(v.Parts, a.Header.ID.String()) {
			continue
		}
		seen, err := s.seen(ctx, v.Partition)
		if err != nil || seen == v.content() {
			return true, err
		}
	}
	return false, nil
}

// stage loads a content, and says what it is.
func (s *sink) stage(ctx context.Context, r *connector.Replacement) (*version, string, error) {
	next := &version{Version: r.Version}
	want := int64(0)
	for _, a := range r.Parts {
		if a.Header.TablePartition != r.TablePartition {
			return nil, "", fmt.Errorf("BUG: block %s is of %s", a.Header.ID, place(a.Header.TablePartition))
		}
		want += a.Header.Rows
		next.Parts = append(next.Parts, a.Header.ID.String())
	}
	if want == 0 {
		id, err := s.partitionNamed(ctx, r.TablePartition)
		next.Partition = id
		return next, "", err
	}
	name := s.stageName()
	if err := s.server.exec(ctx, "CREATE TABLE "+name+" AS "+s.server.name()+" ENGINE = "+stageEngine(s.binding().def.full)); err != nil {
		return nil, "", fmt.Errorf("making a table to load the content: %w", err)
	}
	for _, a := range r.Parts {
		if err := s.loadPart(ctx, name, a); err != nil {
			return nil, "", err
		}
	}
	if err := s.checkStage(ctx, name, next); err != nil {
		return nil, "", err
	}
	if next.Rows != want {
		return nil, "", fmt.Errorf("%d rows were loaded of %d", next.Rows, want)
	}
	return next, name, s.alone(r.TablePartition, next.Partition)
}

// loadPart inserts one sealed block into the stage.
func (s *sink) loadPart(ctx context.Context, stage string, a connector.Artifact) error {
	path, state, err := s.staging.Find(a.Header.ID)
	if err != nil {
		return err
	}
	if state == "" || state == sealdir.Void {
		return fmt.Errorf("the sealed block %s is gone from %s", a.Header.ID, s.staging.Lane(a.Header.ID))
	}
	block, err := s.readBlock(path, a)
	if err != nil {
		return err
	}
	id := a.Header.ID.String()
	if _, _, err := s.insert(ctx, stage, id, s.queryID(id, true), block); err != nil {
		class := classOf(err)
		if errors.Is(err, errChanged) {
			class = classSchema
		}
		wrapped := &serverError{err: err, class: class, table: s.location()}
		if class == classData {
			return fmt.Errorf("%w: %w", connector.ErrRefused, wrapped)
		}
		return wrapped
	}
	return nil
}

// checkStage counts the stage, which has to be one partition.
func (s *sink) checkStage(ctx context.Context, stage string, next *version) error {
	ids, err := s.server.strings(ctx, "SELECT DISTINCT partition_id FROM system.parts WHERE active AND database = "+quoteText(s.opts.database)+" AND table = "+quoteText(unquoted(stage)))
	if err != nil {
		return fmt.Errorf("looking at the partitions of the content: %w", err)
	}
	if len(ids) != 1 {
		return fmt.Errorf("%w: the content lies in %d partitions of the table's key %s; it must be one", connector.ErrRefused, len(ids), s.binding().def.partitionKey)
	}
	next.Partition = ids[0]
	c, err := s.contentOf(ctx, stage, "")
	next.Rows, next.Hash = c.rows, c.hash
	return err
}

var replicatedArgs = regexp.MustCompile(`^Replicated(\w*MergeTree)(?:\('(?:[^'\\]|\\.)*', *'(?:[^'\\]|\\.)*'(?:, *)?([^)]*)\))?`)

// stageEngine is a table's engine without replication.
func stageEngine(full string) string {
	m := replicatedArgs.FindStringSubmatch(full)
	if m == nil {
		return full
	}
	out := m[1]
	if m[2] != "" {
		out += "(" + m[2] + ")"
	}
	out += full[len(m[0]):]
	before, settings, ok := strings.Cut(out, " SETTINGS ")
	if !ok {
		return out
	}
	// The windows of a replicated table are no settings of another.
	kept := slices.DeleteFunc(splitTop(settings), func(s string) bool {
		return strings.HasPrefix(strings.TrimSpace(s), "replicated_")
	})
	if len(kept) == 0 {
		return before
	}
	return before + " SETTINGS " + strings.TrimSpace(strings.Join(kept, ","))
}

// content is what a partition has: how many rows, and the sum of their hashes.
type content struct {
	rows int64
	hash uint64
}

// seen is the content of one of the table's partitions, by its id; "": none.
func (s *sink) seen(ctx context.Context, partition string) (content, error) {
	if partition == "" {
		return content{}, nil
	}
	if s.binding().def.replicated() {
		if err := s.server.exec(ctx, "SYSTEM SYNC REPLICA "+s.server.name()); err != nil {
			return content{}, fmt.Errorf("waiting for the replica: %w", err)
		}
	}
	return s.contentOf(ctx, s.server.name(), " WHERE startsWith(_part, "+quoteText(partition+"_")+")")
}

func (s *sink) contentOf(ctx context.Context, table, where string) (c content, err error) {
	names := make([]string, 0, len(s.binding().def.columns))
	for _, col := range s.binding().def.columns {
		if col.kind == "" || col.kind == "DEFAULT" {
			names = append(names, quoteName(col.name))
		}
	}
	// As text: hashes of NULL, and of some types, are none.
	hash := "sum(cityHash64(toString(tuple(" + strings.Join(names, ", ") + "))))"
	err = s.server.retried(ctx, func(ctx context.Context) error {
		return s.server.conn.QueryRow(ctx, "SELECT toInt64(count()), "+hash+" FROM "+table+where).Scan(&c.rows, &c.hash)
	})
	if err != nil {
		err = fmt.Errorf("counting rows of %s: %w", table, err)
	}
	return c, err
}
