package engine

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
)

// Manifest tells those who read tables what became of one. It may be told more than
// once; table, partition and version, or table and switch, name it.
type Manifest struct {
	Job, Table string
	// Announced: a table partition is complete, with the artefacts of it that the
	// ledger still has.
	Announced *AnnouncedPartition
	// Switched: the table is at another home.
	Switched *SwitchedTable
}

// AnnouncedPartition is a complete table partition.
type AnnouncedPartition struct {
	Partition string
	// Version rises when late rows came and it was announced again.
	Version    uint32
	Home       uint8
	TimeMillis int64
	Artifacts  []connector.Artifact
}

// SwitchedTable is a switch of a table's home.
type SwitchedTable struct {
	Number     uint32
	Home       uint8
	Place      string
	Edge       bool
	TimeMillis int64
	Reason     string
	// Moved are the table partitions that are void at the other home.
	Moved []string
}

// manifest tells a message, if anybody wants to know.
func (r *Run) manifest(ctx context.Context, m Manifest) error {
	if r.deps.Manifest == nil {
		return nil
	}
	m.Job = r.job.Name
	if err := r.deps.Manifest(ctx, m); err != nil {
		return fmt.Errorf("writing to the manifest topic: %w", err)
	}
	return nil
}

// tellAnnounced tells of a table partition that is about to be announced.
func (r *Run) tellAnnounced(t *table) func(context.Context, *ledger.Close) error {
	return func(ctx context.Context, c *ledger.Close) error {
		k := ledger.CloseKey{Table: t.fact.ID, TablePartition: c.TablePartition}
		return r.manifest(ctx, Manifest{Table: t.fact.Name, Announced: &AnnouncedPartition{Partition: c.TablePartition, Version: c.Version,
			Home: r.book.HomeOf(k), TimeMillis: r.clock.Now().UnixMilli(), Artifacts: r.book.LiveArtifacts(k)}})
	}
}

// tellSwitch tells where a table with a standby is: after each switch, and at
// each start, since a crash may have come between a switch and its message.
func (r *Run) tellSwitch(ctx context.Context, t *table) error {
	list := r.book.Switches(t.fact.ID)
	if len(list) == 0 {
		return nil
	}
	f := list[len(list)-1]
	s := &SwitchedTable{Number: f.Number, Home: f.To, Place: t.standby.Main, Edge: f.Edge, TimeMillis: f.TimeMillis, Reason: f.Reason}
	if f.To == connector.StandbyHome {
		s.Place = t.standby.Standby.Standby
	}
	for _, m := range r.book.Moved(t.fact.ID) {
		if m.Number == f.Number {
			s.Moved = append(s.Moved, m.TablePartition)
		}
	}
	return r.manifest(ctx, Manifest{Table: t.fact.Name, Switched: s})
}
