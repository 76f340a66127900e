package node

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/jobs/readrange"
	"github.com/millrace/millrace/runtime/connector"
)

func (n *Node) parseRange(s string) (readrange.Range, error) {
	r, err := readrange.Parse(s, n.opts.Now())
	if err == nil && r.Endless() {
		err = fmt.Errorf("range %q has no end; a preview needs one", s)
	}
	return r, err
}

// rangedConnector is the connector 'log' with every source cut to a range of
// each partition, whatever the table's own options say.
type rangedConnector struct {
	connector.SourceConnector
	node *Node
	rng  readrange.Range
}

func (c *rangedConnector) OpenSource(ctx context.Context, t *connector.Table) (connector.Source, error) {
	s, err := c.SourceConnector.OpenSource(ctx, t)
	if err != nil {
		return nil, err
	}
	r := &rangedSource{Source: s, node: c.node, rng: c.rng}
	if p, ok := s.(connector.DecodePolicy); ok {
		return struct {
			*rangedSource
			connector.DecodePolicy
		}{r, p}, nil
	}
	return r, nil
}

type rangedSource struct {
	connector.Source
	node *Node
	rng  readrange.Range
}

// bounds are the offsets of a partition that the range covers.
func (s *rangedSource) bounds(ctx context.Context, p connector.Partition) (from, to int64, err error) {
	t, err := s.node.findTopic(p.Topic)
	if err != nil {
		return 0, 0, err
	}
	if int(p.ID) >= len(t.Partitions) {
		return 0, 0, fmt.Errorf("topic %s has no partition %d", p.Topic, p.ID)
	}
	return s.rng.Resolve(partitionLog{ctx, s.node.store, t.Partitions[p.ID].ID})
}

func (s *rangedSource) Start(ctx context.Context, parts []connector.Partition) ([]connector.Position, error) {
	out := make([]connector.Position, len(parts))
	for i, p := range parts {
		from, _, err := s.bounds(ctx, p)
		if err != nil {
			return nil, err
		}
		out[i] = connector.Position{Partition: p, LeaderEpoch: -1, Offset: from}
	}
	return out, nil
}

func (s *rangedSource) End(ctx context.Context, parts []connector.Partition) ([]int64, error) {
	out := make([]int64, len(parts))
	for i, p := range parts {
		_, to, err := s.bounds(ctx, p)
		if err != nil {
			return nil, err
		}
		out[i] = to
	}
	return out, nil
}
