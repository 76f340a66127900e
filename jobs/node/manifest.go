package node

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
)

// manifestKey is the setting that names a job's manifest topic.
const manifestKey = "manifest.topic"

// manifestValue is a message of a manifest topic, as JSON; fields may be added. kind
// is "partition" or "switch".
type manifestValue struct {
	Kind  string `json:"kind"`
	Job   string `json:"job"`
	Table string `json:"table"`
	Home  string `json:"home"`
	Time  int64  `json:"time_ms"`
	// Of a partition: it is complete.
	Partition string         `json:"partition,omitempty"`
	Version   uint32         `json:"version,omitempty"`
	Rows      int64          `json:"rows,omitempty"`
	Files     []manifestFile `json:"files,omitempty"`
	// Of a switch.
	Switch uint32   `json:"switch,omitempty"`
	Place  string   `json:"place,omitempty"`
	Edge   bool     `json:"edge,omitempty"`
	Reason string   `json:"reason,omitempty"`
	Moved  []string `json:"moved,omitempty"`
}

type manifestFile struct {
	Path  string `json:"path"`
	Home  string `json:"home"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
	// RowHash is the sum of the rows' hashes, in hexadecimal.
	RowHash string `json:"row_hash"`
}

func manifestOf(m engine.Manifest) manifestValue {
	v := manifestValue{Job: m.Job, Table: m.Table}
	if a := m.Announced; a != nil {
		v.Kind, v.Home, v.Time, v.Partition, v.Version = "partition", connector.HomeName(a.Home), a.TimeMillis, a.Partition, a.Version
		for i := range a.Artifacts {
			x := &a.Artifacts[i]
			v.Rows += x.Header.Rows
			v.Files = append(v.Files, manifestFile{Path: x.Location, Home: connector.HomeName(x.Home), Rows: x.Header.Rows, Bytes: x.Bytes,
				RowHash: fmt.Sprintf("%016x", x.Header.RowHash)})
		}
	}
	if s := m.Switched; s != nil {
		v.Kind, v.Home, v.Time, v.Switch, v.Place, v.Edge, v.Reason, v.Moved = "switch", connector.HomeName(s.Home), s.TimeMillis, s.Number, s.Place, s.Edge, s.Reason, s.Moved
	}
	return v
}

// manifestTopic takes the manifests of a job; nil when the job names no topic.
func (n *Node) manifestTopic(ctx context.Context, name string) (func(context.Context, engine.Manifest) error, error) {
	if name == "" {
		return nil, nil
	}
	write, err := n.jsonTopic(ctx, name)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, m engine.Manifest) error {
		v := manifestOf(m)
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		return write(ctx, v.Table+"/"+v.Partition, b)
	}, nil
}
