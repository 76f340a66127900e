package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/runtime/connector"
)

func (s *source) group() string { return s.table.Options.String("properties.group.id") }

// committed are the group's offsets.
func (s *source) committed(ctx context.Context) (map[int32]kadm.Offset, error) {
	out := map[int32]kadm.Offset{}
	g := s.group()
	if g == "" {
		return out, nil
	}
	all, err := s.conn.admin.FetchOffsets(ctx, g)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return nil, s.conn.failed(err, s.topic, "fetching the offsets of group %s", g)
	}
	for p, o := range all[s.topic] {
		if o.Err != nil {
			return nil, s.conn.failed(o.Err, s.topic, "fetching the offset of group %s in topic %s partition %d", g, s.topic, p)
		}
		if o.At >= 0 {
			out[p] = o.Offset
		}
	}
	return out, nil
}

// landmarks are what a mode of the start or of the end goes by, beside the log's bounds.
type landmarks struct {
	specific  map[int32]int64
	committed map[int32]kadm.Offset
	after     kadm.ListedOffsets
}

// landmarks looks up what a mode goes by; which says whose options have the rest of it,
// "startup" or "bounded".
func (s *source) landmarks(ctx context.Context, mode, which string) (l landmarks, err error) {
	v := s.table.Options
	switch mode {
	case scanrange.Specific:
		l.specific, err = scanrange.ParseOffsets(v.String("scan." + which + ".specific-offsets"))
	case scanrange.Group:
		l.committed, err = s.committed(ctx)
	case scanrange.Timestamp:
		l.after, err = s.list(s.conn.admin.ListOffsetsAfterMilli(ctx, v.Int("scan."+which+".timestamp-millis"), s.topic))
	}
	return l, err
}

// Start implements connector.Source.
func (s *source) Start(ctx context.Context, parts []connector.Partition) ([]connector.Position, error) {
	mode := s.startMode()
	if err := s.sameTopic(ctx, parts); err != nil {
		return nil, err
	}
	b, err := s.bounds(ctx)
	if err != nil {
		return nil, err
	}
	by, err := s.landmarks(ctx, mode, "startup")
	if err != nil {
		return nil, err
	}
	out := make([]connector.Position, len(parts))
	for i, p := range parts {
		first, err := s.at(b.start, p)
		if err != nil {
			return nil, err
		}
		last, err := s.at(b.stable, p)
		if err != nil {
			return nil, err
		}
		at := kadm.Offset{At: first.Offset, LeaderEpoch: -1}
		switch mode {
		case scanrange.Latest:
			at.At = last.Offset
		case scanrange.Group:
			if o, ok := by.committed[p.ID]; ok {
				at = o
			} else if at.At, err = s.reset(p, first.Offset, last.Offset); err != nil {
				return nil, err
			}
		case scanrange.Specific:
			if o, ok := by.specific[p.ID]; ok {
				at.At = o
			}
		case scanrange.Timestamp:
			o, err := s.at(by.after, p)
			if err != nil {
				return nil, err
			}
			at.At = min(max(o.Offset, first.Offset), last.Offset)
		}
		end, err := s.at(b.end, p)
		if err != nil {
			return nil, err
		}
		if at.At < first.Offset || at.At > end.Offset {
			return nil, fmt.Errorf("table %s: 'scan.startup.mode' = '%s': offset %d of topic %s partition %d is outside the log (%d..%d)",
				s.table.Name, mode, at.At, p.Topic, p.ID, first.Offset, end.Offset)
		}
		out[i] = connector.Position{Partition: p, LeaderEpoch: at.LeaderEpoch, Offset: at.At}
	}
	return out, nil
}

// End implements connector.Source.
func (s *source) End(ctx context.Context, parts []connector.Partition) ([]int64, error) {
	mode := s.table.Options.String("scan.bounded.mode")
	out := slices.Repeat([]int64{connector.Unbounded}, len(parts))
	if mode == scanrange.Unbounded {
		return out, nil
	}
	if err := s.sameTopic(ctx, parts); err != nil {
		return nil, err
	}
	stable, err := s.list(s.conn.admin.ListCommittedOffsets(ctx, s.topic))
	if err != nil {
		return nil, err
	}
	by, err := s.landmarks(ctx, mode, "bounded")
	if err != nil {
		return nil, err
	}
	for i, p := range parts {
		last, err := s.at(stable, p)
		if err != nil {
			return nil, err
		}
		end := last.Offset
		switch mode {
		case scanrange.Group:
			// Without a committed offset there is nothing to read up to.
			end = min(by.committed[p.ID].At, end)
		case scanrange.Timestamp:
			o, err := s.at(by.after, p)
			if err != nil {
				return nil, err
			}
			end = min(o.Offset, end)
		case scanrange.Specific:
			o, ok := by.specific[p.ID]
			if ok && o > end {
				return nil, fmt.Errorf("table %s: 'scan.bounded.specific-offsets': offset %d of topic %s partition %d is behind the log's end %d",
					s.table.Name, o, p.Topic, p.ID, end)
			}
			if ok {
				end = o
			}
		}
		out[i] = end
	}
	return out, nil
}

// reset is the start of a partition that the group has no offset for.
func (s *source) reset(p connector.Partition, first, last int64) (int64, error) {
	switch s.table.Options.String("properties.auto.offset.reset") {
	case "latest":
		return last, nil
	case "none":
		return 0, fmt.Errorf("table %s: group %q has no offset in topic %s partition %d and 'properties.auto.offset.reset' is 'none'", s.table.Name, s.group(), p.Topic, p.ID)
	}
	return first, nil
}

// startMode says where reading starts; upsert tables have no option for it.
func (s *source) startMode() string {
	if s.upsert {
		return scanrange.Earliest
	}
	return s.table.Options.String("scan.startup.mode")
}

// ExplainStart implements connector.StartExplainer.
func (s *source) ExplainStart(parts []connector.Partition) []string {
	mode, group := s.startMode(), s.group()
	out := slices.Repeat([]string{"'scan.startup.mode' = '" + mode + "'"}, len(parts))
	if mode != scanrange.Group {
		return out
	}
	ctx, cancel := context.WithTimeout(context.Background(), deletedAfter)
	defer cancel()
	committed, err := s.committed(ctx)
	if err != nil {
		return out // Start has said so
	}
	where := "the earliest record"
	if s.table.Options.String("properties.auto.offset.reset") == "latest" {
		where = "behind the latest record"
	}
	for i, p := range parts {
		_, known := committed[p.ID]
		switch {
		case known:
		case group == "":
			out[i] = "warning: no 'scan.startup.mode', so " + where
		default:
			out[i] = fmt.Sprintf("warning: group %q has no offset here, so %s", group, where)
		}
	}
	return out
}
