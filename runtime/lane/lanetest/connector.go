package lanetest

import (
	"context"

	"github.com/millrace/millrace/runtime/connector"
)

// Connector makes sources and sinks of a process look like connectors, for
// tests of whole graphs.
type Connector struct {
	// Sources and Sinks by table name.
	Sources map[string]connector.Source
	Sinks   map[string]connector.Sink
	// OnOpen is told the owner of each table opened.
	OnOpen func(table string, o connector.Owner) error
}

// Spec implements connector.Connector.
func (c *Connector) Spec() *connector.Spec {
	return &connector.Spec{Name: "lanetest", Source: true, Sink: true}
}

// OpenSource implements connector.SourceConnector.
func (c *Connector) OpenSource(_ context.Context, t *connector.Table) (connector.Source, error) {
	return c.Sources[t.Name], nil
}

// OpenSink implements connector.SinkConnector.
func (c *Connector) OpenSink(_ context.Context, t *connector.Table, o connector.Owner) (connector.Sink, error) {
	if c.OnOpen != nil {
		if err := c.OnOpen(t.Name, o); err != nil {
			return nil, err
		}
	}
	return c.Sinks[t.Name], nil
}
