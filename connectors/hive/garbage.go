package hive

import (
	"context"
	"sync"
	"time"

	"github.com/millrace/millrace/connectors/filesystem"
)

// garbage is the table partitions that may have contents which are not theirs any
// more.
type garbage struct {
	mu sync.Mutex
	// all: what earlier processes left has not been listed yet.
	all   bool
	parts map[string]bool
}

func (g *garbage) add(tablePartition string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.parts == nil {
		g.parts = map[string]bool{}
	}
	g.parts[tablePartition] = true
}

// take gives the partitions and forgets them; list gives those of earlier
// processes, once.
func (g *garbage) take(list func() ([]string, error)) ([]string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.all {
		parts, err := list()
		if err != nil {
			return nil, err
		}
		g.all = true
		if g.parts == nil {
			g.parts = map[string]bool{}
		}
		for _, p := range parts {
			g.parts[p] = true
		}
	}
	out := make([]string, 0, len(g.parts))
	for p := range g.parts {
		out = append(out, p)
	}
	clear(g.parts)
	return out, nil
}

// collect removes contents that were replaced longer ago than readers may need
// them. A failure costs space until the next time.
func (s *Sink) collect(ctx context.Context) {
	parts, err := s.garbage.take(func() ([]string, error) { return s.VersionedPartitions(ctx) })
	if err != nil {
		return
	}
	for _, p := range parts {
		if done, err := s.collectPartition(ctx, p); err != nil || !done {
			s.garbage.add(p)
		}
	}
}

// collectPartition removes what is old enough; done: nothing is left to remove.
func (s *Sink) collectPartition(ctx context.Context, tablePartition string) (done bool, err error) {
	versions, err := s.Versions(ctx, tablePartition)
	if err != nil || len(versions) == 0 {
		return err == nil, err
	}
	at, err := s.entry(ctx, tablePartition)
	if err != nil {
		return false, err
	}
	cur, ok := s.version(at.location())
	var now filesystem.VersionInfo // of the partition's own directory: content 0, made long ago
	for _, v := range versions {
		if v.Version == cur {
			now = v
		}
	}
	if ok && now.Name == "" {
		return true, nil
	}
	old := func(v filesystem.VersionInfo) bool { return s.now().Sub(v.Made) > s.opts.retention }
	if !old(now) {
		return false, nil
	}
	done = true
	for _, v := range versions {
		newer := v.Record.Job == s.owner.Job.String() && v.Record.Content > now.Record.Content
		switch {
		case v.Version == cur:
		case newer || !old(v):
			// A replacement that a crash cut short may still be completed.
			done = false
		default:
			if err := s.RemoveVersion(v.Version); err != nil {
				return false, err
			}
		}
	}
	if !ok {
		return done, nil
	}
	return done, s.RemoveReplaced(cur)
}

func (s *Sink) now() time.Time {
	if s.clock != nil {
		return s.clock()
	}
	return time.Now()
}
