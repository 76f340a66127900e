package hive

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/runtime/connector"
)

// A table with a standby is one table of the metastore, which lies at its main home;
// each partition's location says at which home it is.

// homePrefix begins the keys by which Standby tells OpenSink of the table's homes; no
// table can be declared with them.
const (
	homePrefix = "hive.home."
	homeMain   = "main"
)

var (
	_ connector.StandbyConnector = (*Connector)(nil)
	_ connector.HomeCatalog      = (*Sink)(nil)
)

// Standby implements connector.StandbyConnector.
func (c *Connector) Standby(t *connector.Table) (*connector.Standby, error) {
	v := t.Options
	p, ok := c.files.Second(v)
	if !ok {
		return nil, nil
	}
	opts, err := c.tableOptions(t)
	if err != nil {
		return nil, err
	}
	switch {
	case len(t.PartitionKeys) == 0:
		return nil, &connector.OptionError{Key: p.Option,
			Message: "a table with a standby must be PARTITIONED BY something: what moves are partitions, and rows must end that can still move"}
	case !opts.policies.Metastore:
		return nil, &connector.OptionError{Key: keyPolicy, OnValue: v.Has(keyPolicy), Missing: !v.Has(keyPolicy),
			Message: "at which home a partition lies is seen through the metastore alone: with '" + p.Option + "', '" + keyPolicy + "' needs 'metastore'",
			Hint:    "'" + keyPolicy + "' = 'metastore,success-file'"}
	case opts.late == lateSide:
		return nil, &connector.OptionError{Key: p.Option, Message: "not_yet: a standby for a table whose late rows go to a table of their own: it has no partitions, and what moves are partitions"}
	}
	there := *t
	there.Options = p.Options.With(map[string]string{homePrefix + homeMain: v.String(keyPath)})
	return &connector.Standby{Table: &there, Main: v.String(keyPath), Standby: p.Options.String(keyPath), Auto: p.Auto, After: p.After}, nil
}

// settle finds the directories of the table at this home and at the other one.
func (s *Sink) settle(c *Connector, t *connector.Table) (err error) {
	s.location = s.registered
	if t.Options.Family(homePrefix)[homeMain] != "" {
		s.other = s.registered
		s.location, err = locationOf(t.Options.String(keyPath))
		return err
	}
	if p, ok := c.files.Second(t.Options); ok {
		s.other, err = locationOf(p.Options.String(keyPath))
	}
	return err
}

// atOther reports a location of a table partition at the table's other home: its own
// directory there, or a version.
func (s *Sink) atOther(location, tablePartition string) bool {
	if s.other == "" {
		return false
	}
	rel, ok := strings.CutPrefix(location, s.other+"/")
	if !ok || rel == tablePartition {
		return ok
	}
	v, ok := filesystem.ParseVersion(rel)
	return ok && v.TablePartition == tablePartition
}

// Elsewhere implements connector.HomeCatalog.
func (s *Sink) Elsewhere(ctx context.Context, tablePartition string) (elsewhere bool, rows int64, err error) {
	p := &announcement{name: tablePartition}
	if p.values, err = s.values(tablePartition); err != nil {
		return false, -1, err
	}
	if err := s.look(ctx, []*announcement{p}); err != nil {
		return false, -1, err
	}
	if p.there == nil || !s.atOther(normal(p.there.Storage.Location), tablePartition) {
		return false, -1, nil
	}
	n, err := strconv.ParseInt(p.there.Parameters[paramRows], 10, 64)
	if err != nil {
		n = -1
	}
	return true, n, nil
}

// Take implements connector.HomeCatalog: files are copied under their names.
func (s *Sink) Take(ctx context.Context, from connector.HomeSink, as []connector.Artifact) error {
	x, ok := from.(*Sink)
	if !ok {
		return fmt.Errorf("BUG: the other home of a Hive table is a %T", from)
	}
	s.announcing.Lock()
	defer s.announcing.Unlock()
	have, err := s.resolve(ctx, as)
	if err != nil {
		return err
	}
	for i, a := range as {
		if have[i] == connector.Published {
			continue
		}
		if err := s.CopyFrom(ctx, x.Sink, a); err != nil {
			return err
		}
	}
	return nil
}
