package node

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

// manifestMaxBatch is the largest message: a partition may have many files.
const manifestMaxBatch = 64 << 20

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

// jsonTopic opens a topic for messages to those who read tables, or makes it. What it
// returns may be called from any goroutine; a message is durable when it returns.
func (n *Node) jsonTopic(ctx context.Context, name string) (func(ctx context.Context, key string, value []byte) error, error) {
	t, err := ownTopic(ctx, n.store, name, map[string]string{"max.message.bytes": fmt.Sprint(manifestMaxBatch)})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var builder record.Builder
	return func(ctx context.Context, key string, value []byte) error {
		mu.Lock()
		defer mu.Unlock()
		builder.Reset()
		if err := builder.Append(n.opts.Now().UnixMilli(), []byte(key), value, nil); err != nil {
			return err
		}
		batch, err := builder.Build()
		if err != nil {
			return err
		}
		res, err := n.store.Append(ctx, topiclog.AppendRequest{Partition: t.Partitions[0].ID, Batches: batch, Trusted: true})
		if err != nil {
			return err
		}
		return onDisk(ctx, n.store, t.Partitions[0].ID, res.LastOffset)
	}, nil
}

// onDisk waits until a record survives a power cut: a topic that was there before may
// acknowledge earlier (millrace.durability = os).
func onDisk(ctx context.Context, store *topiclog.Store, id topiclog.PartitionID, offset int64) error {
	for {
		st, err := store.State(id)
		if err != nil || st.DurableEnd > offset {
			return err
		}
		l, err := store.Fetch(ctx, topiclog.FetchRequest{Partition: id, Offset: offset, MaxBytes: 1, MaxWait: time.Minute,
			Isolation: topiclog.Uncommitted, Durable: true})
		if err != nil {
			return err
		}
		l.Release()
	}
}
