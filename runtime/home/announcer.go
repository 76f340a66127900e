package home

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
)

// announcer is who announces a table partition.
type announcer struct {
	sink connector.HomeSink
	// late are artefacts at the other home, by the sink from, whose rows join the
	// partition first.
	late []connector.Artifact
	from connector.HomeSink
}

// announcer finds who announces a table partition: the home that its rows go to,
// unless readers find it through a catalog which has it at the other one. Then it
// depends on what became of the rows there. Void ones stay behind: the catalog is
// pointed to the new home. Others were announced, and what came since joins them,
// which takes both homes: until the old one serves, readers have nothing of the
// partition anyway.
func (s *Sink) announcer(ctx context.Context, tablePartition string) (announcer, error) {
	k := ledger.CloseKey{Table: s.cfg.Table.ID, TablePartition: tablePartition}
	h := s.cfg.Book.HomeOf(k)
	x, err := s.At(ctx, h)
	if err != nil {
		return announcer{}, err
	}
	c, ok := x.(connector.HomeCatalog)
	if !ok {
		return announcer{sink: x}, nil
	}
	elsewhere, rows, err := c.Elsewhere(ctx, tablePartition)
	if err != nil || !elsewhere {
		return announcer{sink: x}, err
	}
	late, there := []connector.Artifact{}, false
	for _, a := range s.cfg.Book.LiveArtifacts(k) {
		if a.Home == h {
			late = append(late, a)
		} else {
			there = true
		}
	}
	if !there && s.allVoid(tablePartition, h, rows) {
		return announcer{sink: x}, nil
	}
	y, err := s.At(ctx, 1-h)
	if err != nil {
		return announcer{}, fmt.Errorf("partition %s was announced at the %s home, where the rows that came later are to join it: %w", tablePartition, connector.HomeName(1-h), err)
	}
	return announcer{sink: y, late: late, from: x}, nil
}

// allVoid reports a table partition that was moved to a home with all the rows that a
// catalog knows of.
func (s *Sink) allVoid(tablePartition string, to uint8, rows int64) bool {
	for _, m := range s.cfg.Book.Moves(s.cfg.Table.ID, nil) {
		if m.TablePartition == tablePartition {
			return m.To == to && rows <= m.VoidRows
		}
	}
	return false
}
