package clickhouse

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
)

// A table partition is read as it was when it was listed: the rows of its blocks up to
// the last one of then. Parts are merged all the time, which changes no row as long as
// no later block is merged with an earlier one.

// part is one data part: the rows of blocks first to last of a partition.
type part struct {
	name, partition string
	first, last     int64
	mutation        int64
	rows            int64
	changed         int64 // s since 1970
}

// parsePart takes a part's name apart: partition_first_last_level[_mutation].
func parsePart(name string) (part, error) {
	p := part{name: name}
	f := strings.Split(name, "_")
	if len(f) != 4 && len(f) != 5 {
		return p, fmt.Errorf("part %q has a name that this program cannot read", name)
	}
	p.partition = f[0]
	numbers := []*int64{&p.first, &p.last, new(int64), &p.mutation}
	for i, text := range f[1:] {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return p, fmt.Errorf("part %q has a name that this program cannot read", name)
		}
		*numbers[i] = n
	}
	return p, nil
}

// parts are the table's active parts, by partition and block.
func (s *server) parts(ctx context.Context) ([]part, error) {
	var out []part
	err := s.retried(ctx, func(ctx context.Context) error {
		out = out[:0]
		rows, err := s.conn.Query(ctx, "SELECT name, toInt64(rows), toInt64(toUnixTimestamp(modification_time)) FROM system.parts WHERE active AND "+s.where())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			var count, changed int64
			if err := rows.Scan(&name, &count, &changed); err != nil {
				return err
			}
			p, err := parsePart(name)
			if err != nil {
				return err
			}
			p.rows, p.changed = count, changed
			out = append(out, p)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("listing the parts of %s: %w", s.name(), err)
	}
	slices.SortFunc(out, func(a, b part) int {
		if c := strings.Compare(a.partition, b.partition); c != 0 {
			return c
		}
		return int(a.first - b.first)
	})
	return out, nil
}

// snapshot is a table partition at the time when it was listed.
type snapshot struct {
	partition string
	// last is its last block then, mutation the last ALTER of rows.
	last, mutation int64
	rows           int64
	changed        int64 // s since 1970
}

// snapshots are the partitions of parts.
func snapshots(parts []part) []snapshot {
	var out []snapshot
	for _, p := range parts {
		if len(out) == 0 || out[len(out)-1].partition != p.partition {
			out = append(out, snapshot{partition: p.partition})
		}
		s := &out[len(out)-1]
		s.last, s.mutation = max(s.last, p.last), max(s.mutation, p.mutation)
		s.rows += p.rows
		s.changed = max(s.changed, p.changed)
	}
	return out
}

// errMoved says that a partition is no longer what it was when it was listed.
var errMoved = errors.New("table partition has changed since it was listed")

// cover finds the parts that hold exactly the rows of a snapshot now.
func (s *snapshot) cover(parts []part) ([]string, error) {
	var names []string
	rows := int64(0)
	for _, p := range parts {
		switch {
		case p.partition != s.partition || p.first > s.last:
		case p.last > s.last:
			return nil, fmt.Errorf("%w: part %s holds rows of before and of later, for the server has merged them; read partitions that are not written any more", errMoved, p.name)
		case p.mutation > s.mutation:
			return nil, fmt.Errorf("%w: rows were altered (part %s)", errMoved, p.name)
		default:
			names = append(names, p.name)
			rows += p.rows
		}
	}
	if rows != s.rows {
		return nil, fmt.Errorf("%w: it had %d rows up to block %d, and has %d of them", errMoved, s.rows, s.last, rows)
	}
	return names, nil
}

// inParts is the condition of the rows of parts.
func inParts(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = quoteText(n)
	}
	return "_part IN (" + strings.Join(quoted, ", ") + ")"
}

// rangeOf is a stretch of a snapshot that is read as one split.
type rangeOf struct {
	snapshot snapshot
	// number of the range in the snapshot; where is its condition, "" for all rows.
	number int
	where  string
	// rows is how many there are.
	rows int64
}

// topic names a range: another one when the table, what is read of it or its rows are
// others.
func (r *rangeOf) topic(s *Source) connector.UUID {
	h := sha256.New()
	text := func(parts ...string) {
		for _, p := range parts {
			h.Write(binary.AppendUvarint(nil, uint64(len(p))))
			h.Write([]byte(p))
		}
	}
	text("clickhouse", s.server.opts.database, s.server.opts.table, s.def.identity, s.opts.filter, s.order)
	text(r.snapshot.partition, r.where, fmt.Sprint(r.snapshot.last, r.snapshot.mutation, r.snapshot.rows, r.number, r.rows))
	return connector.UUID(h.Sum(nil)[:16])
}

// name is the range's for people, the same for all versions of it.
func (r *rangeOf) name(s *Source) string {
	name := s.server.opts.database + "." + s.server.opts.table + "/" + r.snapshot.partition
	if s.opts.ranges > 1 {
		name += "/" + strconv.Itoa(r.number)
	}
	return name
}

// listTries bounds how often a listing starts again because parts were merged
// meanwhile.
const listTries = 10

// list takes a snapshot of the table and counts its ranges.
func (s *Source) list(ctx context.Context) ([]rangeOf, error) {
	var last error
	for range listTries {
		parts, err := s.server.parts(ctx)
		if err != nil {
			return nil, err
		}
		var out []rangeOf
		for _, snap := range snapshots(parts) {
			if wanted, err := s.isWanted(ctx, &snap, parts); err != nil {
				return nil, err
			} else if !wanted {
				continue
			}
			ranges, err := s.ranges(ctx, snap, parts)
			if err != nil {
				return nil, err
			}
			out = append(out, ranges...)
		}
		if s.opts.filter == "" && s.opts.rangeBy == "" {
			return out, nil
		}
		// What was counted is what was listed if all the parts are still there.
		after, err := s.server.parts(ctx)
		if err != nil {
			return nil, err
		}
		if last = stillThere(parts, after); last == nil {
			return out, nil
		}
	}
	return nil, fmt.Errorf("listing %s: %w", s.server.name(), last)
}

// stillThere reports a part of before that is not among after.
func stillThere(before, after []part) error {
	have := make(map[string]bool, len(after))
	for _, p := range after {
		have[p.name] = true
	}
	for _, p := range before {
		if !have[p.name] {
			return fmt.Errorf("part %s was merged meanwhile", p.name)
		}
	}
	return nil
}

// ranges cuts a snapshot, and counts the rows of each range.
func (s *Source) ranges(ctx context.Context, snap snapshot, parts []part) ([]rangeOf, error) {
	if s.opts.filter == "" && s.opts.rangeBy == "" {
		return []rangeOf{{snapshot: snap, rows: snap.rows}}, nil
	}
	names, err := snap.cover(parts)
	if err != nil {
		return nil, err
	}
	within := inParts(names)
	if s.opts.filter != "" {
		within += " AND (" + s.opts.filter + ")"
	}
	wheres := []string{""}
	if s.opts.rangeBy != "" {
		if wheres, err = s.cut(ctx, within); err != nil {
			return nil, err
		}
	}
	counted := make([]string, len(wheres))
	for i, w := range wheres {
		if counted[i] = "toInt64(count())"; w != "" {
			counted[i] = "toInt64(countIf(" + w + "))"
		}
	}
	var counts []int64
	err = s.server.retried(ctx, func(ctx context.Context) error {
		return s.server.conn.QueryRow(ctx, "SELECT ["+strings.Join(counted, ", ")+"] FROM "+s.server.name()+" WHERE "+within).Scan(&counts)
	})
	if err != nil {
		return nil, fmt.Errorf("counting rows of %s: %w", s.server.name(), err)
	}
	var out []rangeOf
	for i, w := range wheres {
		if counts[i] > 0 {
			out = append(out, rangeOf{snapshot: snap, number: i, where: w, rows: counts[i]})
		}
	}
	return out, nil
}

// cut gives the conditions of the ranges of rows that meet within.
func (s *Source) cut(ctx context.Context, within string) ([]string, error) {
	column := quoteName(s.opts.rangeBy)
	bounded := s.opts.lower != nil
	var lo, hi int64
	if bounded {
		lo, hi = *s.opts.lower, *s.opts.upper
	} else {
		err := s.server.retried(ctx, func(ctx context.Context) error {
			// Of no row, or of NULL alone, 0: one range.
			return s.server.conn.QueryRow(ctx, "SELECT ifNull(toInt64(min("+column+")), 0), ifNull(toInt64(max("+column+")), 0) FROM "+s.server.name()+" WHERE "+within).Scan(&lo, &hi)
		})
		if err != nil {
			return nil, fmt.Errorf("looking for the bounds of column %s: %w", s.opts.rangeBy, err)
		}
	}
	if !bounded && s.unsignedRange && (lo < 0 || hi < 0) {
		return nil, fmt.Errorf("not_yet: ranges of column %s, which has values beyond 63 bits", s.opts.rangeBy)
	}
	// Unsigned arithmetic: the span of 64 bits does not overflow.
	span := uint64(hi) - uint64(lo)
	n := uint64(s.opts.ranges)
	if span < n {
		n = span + 1
	}
	step := span/n + 1
	var out []string
	for i := range n {
		from := int64(uint64(lo) + i*step)
		if i > 0 && i*step > span {
			break
		}
		to := int64(uint64(lo) + (i+1)*step)
		last := i+1 == n || (i+1)*step > span
		w := ""
		switch {
		case bounded && last:
			w = fmt.Sprintf("%s >= %d AND %s <= %d", column, from, column, hi)
		case bounded || i > 0 && !last:
			w = fmt.Sprintf("%s >= %d AND %s < %d", column, from, column, to)
		case last && i > 0:
			w = fmt.Sprintf("%s >= %d", column, from)
		case !last:
			// NULL is in the first.
			w = fmt.Sprintf("(%s < %d OR isNull(%s))", column, to, column)
		}
		out = append(out, w)
		if last {
			break
		}
	}
	return out, nil
}
