package hive

import (
	"context"
	"sync"
	"time"

	"github.com/millrace/millrace/connectors/filesystem"
)

// maxCollected bounds how many partitions are looked at in one go: whoever announces
// waits for it.
const maxCollected = 20

// garbage is the table partitions that may have contents which are not theirs any
// more, with the time before which there is nothing to remove.
type garbage struct {
	mu sync.Mutex
	// all: what earlier processes left has been listed.
	all   bool
	parts map[string]time.Time
}

func (g *garbage) add(tablePartition string, due time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.parts == nil {
		g.parts = map[string]time.Time{}
	}
	g.parts[tablePartition] = due
}

// take gives partitions that are due and forgets them; list gives those of earlier
// processes, once.
func (g *garbage) take(now time.Time, list func() ([]string, error)) ([]string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.all {
		parts, err := list()
		if err != nil {
			return nil, err
		}
		g.all = true
		if g.parts == nil {
			g.parts = map[string]time.Time{}
		}
		for _, p := range parts {
			if _, ok := g.parts[p]; !ok {
				g.parts[p] = now
			}
		}
	}
	var out []string
	for p, due := range g.parts {
		if len(out) < maxCollected && !due.After(now) {
			out = append(out, p)
			delete(g.parts, p)
		}
	}
	return out, nil
}

// collect removes contents that were replaced longer ago than readers may need
// them. A failure costs space until the next time.
func (s *Sink) collect(ctx context.Context) {
	now := s.now()
	parts, err := s.garbage.take(now, func() ([]string, error) { return s.VersionedPartitions(ctx) })
	if err != nil {
		return
	}
	for _, p := range parts {
		due, err := s.collectPartition(ctx, p, now)
		if err != nil {
			due = now.Add(time.Hour)
		}
		if !due.IsZero() {
			s.garbage.add(p, due)
		}
	}
}

// collectPartition removes what is old enough, and says when there may be more;
// zero: nothing is left to remove.
func (s *Sink) collectPartition(ctx context.Context, tablePartition string, now time.Time) (due time.Time, err error) {
	versions, err := s.Versions(ctx, tablePartition)
	if err != nil || len(versions) == 0 {
		return due, err
	}
	expiry := func(v filesystem.VersionInfo) time.Time { return v.Made.Add(s.opts.retention) }
	first := expiry(versions[0])
	for _, v := range versions {
		if e := expiry(v); e.Before(first) {
			first = e
		}
	}
	if first.After(now) {
		return first, nil
	}
	at, err := s.entry(ctx, tablePartition)
	if err != nil {
		return due, err
	}
	cur, ok := s.version(at.location())
	var present filesystem.VersionInfo // of the partition's own directory: content 0, made long ago
	for _, v := range versions {
		if v.Version == cur {
			present = v
		}
	}
	if ok && present.Name == "" {
		return due, nil
	}
	// What the present content replaced is of use as long as that is young.
	if e := expiry(present); e.After(now) {
		return e, nil
	}
	for _, v := range versions {
		newer := v.Record.Job == s.owner.Job.String() && v.Record.Content > present.Record.Content
		switch {
		case v.Version == cur:
		case newer || expiry(v).After(now):
			// A replacement that a crash cut short may still be completed.
			due = now.Add(s.opts.retention)
		default:
			if err := s.RemoveVersion(v.Version); err != nil {
				return due, err
			}
		}
	}
	if !ok {
		return due, nil
	}
	return due, s.RemoveReplaced(cur)
}

func (s *Sink) now() time.Time {
	if s.clock != nil {
		return s.clock()
	}
	return time.Now()
}
