package node

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/connectors/kafka"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
)

// readyValue is a message of a readiness topic, as JSON; fields may be added. job,
// database, table, partition and version name it, however often it is there.
type readyValue struct {
	Kind      string             `json:"kind"`
	Job       string             `json:"job"`
	Database  string             `json:"database,omitempty"`
	Table     string             `json:"table"`
	Partition string             `json:"partition"`
	Values    map[string]*string `json:"values"`
	Version   uint32             `json:"version"`
	Home      string             `json:"home"`
	Location  string             `json:"location"`
	// Rows is null when a file does not tell.
	Rows      *int64 `json:"rows"`
	Files     int64  `json:"files"`
	Bytes     int64  `json:"bytes"`
	Watermark *int64 `json:"watermark_ms"`
	Time      int64  `json:"time_ms"`
}

func readyOf(m *engine.Ready) readyValue {
	f := &m.Facts
	v := readyValue{Kind: "ready", Job: m.Job, Database: f.Database, Table: f.Table, Partition: f.TablePartition, Values: f.ValueMap(), Version: m.Version,
		Home: connector.HomeName(m.Home), Location: f.Location, Files: f.Files, Bytes: f.Bytes, Time: m.TimeMillis}
	if f.Rows >= 0 {
		v.Rows = &f.Rows
	}
	if m.Watermark != batch.NoWatermark {
		v.Watermark = &m.Watermark
	}
	return v
}

// readinessTopic opens a topic that is told of complete table partitions: in the log by
// the path of the manifests, or in a Kafka cluster.
func (n *Node) readinessTopic(ctx context.Context, topic connector.ReadinessTopic) (func(context.Context, engine.Ready) error, error) {
	open := n.jsonTopic
	if len(topic.Cluster) > 0 {
		open = func(ctx context.Context, name string) (func(context.Context, string, []byte) error, error) {
			return clusterTopic(ctx, name, topic.Cluster)
		}
	}
	write, err := open(ctx, topic.Name)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, m engine.Ready) error {
		v := readyOf(&m)
		key := v.Table + "/" + v.Partition
		if v.Database != "" {
			key = v.Database + "." + key
		}
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		return write(ctx, key, b)
	}, nil
}

// clusterTopic opens a topic of a Kafka cluster.
func clusterTopic(ctx context.Context, name string, cluster map[string]string) (func(ctx context.Context, key string, value []byte) error, error) {
	t, err := kafka.NewTeller(ctx, name, cluster)
	var option *connector.OptionError
	if errors.As(err, &option) {
		option.Key = filesystem.ReadinessProperties + option.Key
	}
	if err != nil {
		return nil, err
	}
	return t.Tell, nil
}
