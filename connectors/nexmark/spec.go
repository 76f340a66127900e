package nexmark

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/millrace/millrace/connectors/numbered"
	"github.com/millrace/millrace/runtime/connector"
)

const (
	keyEvents = "events.num"
	keyRate   = "first-event.rate"
	keyGroup  = "out-of-order-group.size"
	keySeed   = "seed"
	keyStart  = "start-time"
)

// Connector is the connector `nexmark`.
type Connector struct{ spec connector.Spec }

// New makes the connector.
func New() *Connector {
	return &Connector{connector.Spec{
		Name:    "nexmark",
		Summary: "The events of the Nexmark benchmark: persons, auctions and bids.",
		Doc: "Columns are `event_type` INT (0, 1, 2) and the rows `person`, `auction` and `bid`, of which the event's own is not NULL; " +
			"the queries are in `examples/nexmark`. An event depends only on the seed and its number, so a replay makes the same events. " +
			"They come as fast as they are read.",
		Source:    true,
		BoundedBy: keyEvents,
		Options: []connector.Option{
			{Key: keyEvents, Type: connector.OptInt, Min: 0, Max: math.MaxInt64, Doc: "How many events there are; unset: no end."},
			{Key: keyRate, Type: connector.OptInt, Default: "10000", Min: 1, Max: 1 << 30, Doc: "Events in a second of event time."},
			{Key: keyGroup, Type: connector.OptInt, Default: "1", Min: 1, Max: 1 << 20, Check: checkGroup,
				Doc: "How many events are out of order with each other; 1: none."},
			{Key: keySeed, Type: connector.OptInt, Default: "0", Doc: "Another seed makes other events."},
			{Key: keyStart, Type: connector.OptString, Default: "2024-01-01T00:00:00Z", Check: func(s string) error { _, err := parseStart(s); return err },
				Doc: "RFC 3339 time of the first event."},
		},
		Guarantee: "Replays make the same events.",
	}}
}

// Spec implements connector.Connector.
func (c *Connector) Spec() *connector.Spec { return &c.spec }

func parseStart(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, fmt.Errorf("%q is not a time such as 2024-05-01T08:00:00Z", s)
	}
	return t, nil
}

// checkGroup refuses sizes for which events would be doubled.
func checkGroup(s string) error {
	var n int64
	if _, err := fmt.Sscan(s, &n); err == nil && n%953 == 0 && n > 0 {
		return fmt.Errorf("%s is a multiple of 953, by which events are put out of order", s)
	}
	return nil
}

// OpenSource implements connector.SourceConnector.
func (c *Connector) OpenSource(_ context.Context, t *connector.Table) (connector.Source, error) {
	cols, err := compileColumns(t)
	if err != nil {
		return nil, err
	}
	start, err := parseStart(t.Options.String(keyStart))
	if err != nil {
		return nil, err
	}
	s := &source{Source: numbered.Source{Table: t.Name, Rows: connector.Unbounded,
		Changed: "the seed, the rate or the start has changed", Fewer: "the table has fewer events now"},
		table: t, columns: cols, config: Config{
			Seed: uint64(t.Options.Int(keySeed)), Start: start.UnixMilli() * 1000, Rate: t.Options.Int(keyRate), Group: t.Options.Int(keyGroup)}}
	if t.Options.Has(keyEvents) {
		s.Rows = t.Options.Int(keyEvents)
	}
	h := sha256.New()
	h.Write([]byte("nexmark"))
	for _, x := range []uint64{s.config.Seed, uint64(s.config.Start), uint64(s.config.Rate), uint64(s.config.Group)} {
		h.Write(binary.BigEndian.AppendUint64(nil, x))
	}
	copy(s.ID[:], h.Sum(nil))
	return s, nil
}
