package kafka

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/keyvalue"
	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/runtime/connector"
)

// Upsert is the connector 'upsert-kafka': a topic in which each record says what the
// row of its key is from now on, and a record without a value that it is gone. Its
// tables are written like those of Connector.
type Upsert struct{ c Connector }

var _ connector.SinkConnector = (*Upsert)(nil)

// NewUpsert returns the connector.
func NewUpsert(formats ...format.Format) *Upsert {
	return &Upsert{Connector{formats: formats, upsert: true}}
}

// Spec implements connector.Connector.
func (u *Upsert) Spec() *connector.Spec {
	return &connector.Spec{
		Name:    "upsert-kafka",
		Summary: "Topics of a Kafka cluster that hold the newest row of each primary key.",
		Doc: `A table that changes, as a topic: the record's key is the primary key, its value the row, and a record without a value
(a tombstone) deletes the row. Results of ` + "`GROUP BY`" + `, joins and Top-N that change can be written to it. Give the topic
` + "`cleanup.policy=compact`" + `, so that it keeps the newest record of each key.

Rows are written as connector ` + "`kafka`" + ` writes them: one transaction of at most 4 MiB about once a second, whose last record names it in
the compacted topic ` + "`__millrace_commits`" + `. Changes of one key are in the order in which they happened, and in one partition, which is
that of Kafka's own producer.

Such tables cannot be read yet; with ` + "`kafka`" + ` their records are read as they are, tombstones left out.`,
		Sink: true, Changelog: connector.Upsert,
		Guarantee: "Exactly once: each artefact is one transaction that also says so in `__millrace_commits`.",
		Options: slices.Concat([]connector.Option{{Key: scanrange.KeyTopic, Required: true, Check: checkOneTopic, Doc: "The topic's name."}},
			keyvalue.Options(u.c.formats, true), sinkOptions(), connectionOptions()),
		Metadata: []connector.MetadataColumn{{Key: "timestamp", Type: "TIMESTAMP_LTZ(3) NOT NULL", Writable: true, Doc: "The record's timestamp."}},
		Validate: func(v connector.Values) error {
			if err := keyvalue.Validate(v, u.c.formats, true); err != nil {
				return err
			}
			return validateSecurity(v)
		},
	}
}

func checkOneTopic(s string) error {
	if strings.ContainsAny(s, ";,") {
		return fmt.Errorf("%q names several topics: a table that is written has one", s)
	}
	return scanrange.CheckTopic(s)
}

// OpenSink implements connector.SinkConnector.
func (u *Upsert) OpenSink(ctx context.Context, t *connector.Table, o connector.Owner) (connector.Sink, error) {
	return u.c.OpenSink(ctx, t, o)
}
