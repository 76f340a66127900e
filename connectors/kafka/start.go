package kafka

import (
	"context"
	"errors"
	"fmt"

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
		return nil, failed(err, "fetching the offsets of group %s", g)
	}
	for p, o := range all[s.topic] {
		if o.Err != nil {
			return nil, failed(o.Err, "fetching the offset of group %s in topic %s partition %d", g, s.topic, p)
		}
		if o.At >= 0 {
			out[p] = o.Offset
		}
	}
	return out, nil
}

// Start implements connector.Source.
func (s *source) Start(ctx context.Context, parts []connector.Partition) ([]connector.Position, error) {
	v := s.table.Options
	mode := s.startMode()
	var specific map[int32]int64
	var err error
	if mode == scanrange.Specific {
		if specific, err = scanrange.ParseOffsets(v.String("scan.startup.specific-offsets")); err != nil {
			return nil, err
		}
	}
	if err := s.sameTopic(ctx, parts); err != nil {
		return nil, err
	}
	b, err := s.bounds(ctx)
	if err != nil {
		return nil, err
	}
	var committed map[int32]kadm.Offset
	var after kadm.ListedOffsets
	switch mode {
	case scanrange.Group:
		committed, err = s.committed(ctx)
	case scanrange.Timestamp:
		after, err = s.list(s.conn.admin.ListOffsetsAfterMilli(ctx, v.Int("scan.startup.timestamp-millis"), s.topic))
	}
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
			if o, ok := committed[p.ID]; ok {
				at = o
			} else if at.At, err = s.reset(p, first.Offset, last.Offset); err != nil {
				return nil, err
			}
		case scanrange.Specific:
			if o, ok := specific[p.ID]; ok {
				at.At = o
			}
		case scanrange.Timestamp:
			o, err := s.at(after, p)
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
