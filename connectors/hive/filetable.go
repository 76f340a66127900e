package hive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/millrace/millrace/connectors/hive/metastore"
	"github.com/millrace/millrace/runtime/connector"
)

// lookUp asks for a table. One that is not there is a *connector.OptionError.
func lookUp(ctx context.Context, client catalog, o tableOptions) (*metastore.Table, error) {
	t, err := client.Table(ctx, o.database, o.table)
	if errors.Is(err, metastore.ErrNoSuchObject) {
		return nil, &connector.OptionError{Key: keyTable, OnValue: true, Message: fmt.Sprintf("the metastore has no table %s.%s", o.database, o.table)}
	}
	return t, wrap(err, "looking up table %s.%s", o.database, o.table)
}

// checkPath compares option 'path', where it is set, with where a table lies.
func (o *tableOptions) checkPath(there *metastore.Table, location string) error {
	want, err := locationOf(o.path)
	if err == nil && want != "" && want != location {
		err = &connector.OptionError{Key: keyPath, OnValue: true,
			Message: fmt.Sprintf("table %s.%s of the metastore lies at %s, not at %s", there.Database, there.Name, there.Storage.Location, o.path)}
	}
	return err
}

// fileTable is a table as connector filesystem sees it: its directory, its format
// and the options that the connector knows.
func fileTable(c *Connector, t *connector.Table, location string, st stored) (*connector.Table, error) {
	path, err := filePath(location)
	if err != nil {
		return nil, err
	}
	spec := c.files.Spec()
	known := map[string]bool{}
	families := []string{}
	for _, k := range spec.Keys(st.format) {
		if prefix, ok := strings.CutSuffix(k, "*"); ok {
			families = append(families, prefix)
		}
		known[k] = true
	}
	with := map[string]string{}
	for k, v := range t.Options.Family("") {
		ok := known[k]
		for _, f := range families {
			ok = ok || strings.HasPrefix(k, f)
		}
		if ok {
			with[k] = v
		}
	}
	delete(with, keyMerge) // before the announcement, see Sink.merge
	delete(with, keyMergeBytes)
	delete(with, keyLate) // see openSide
	delete(with, keyLatePath)
	maps.Copy(with, st.options)
	with["connector"], with["format"], with[keyPath] = spec.Name, st.format, path
	if with[keyPolicy] != "" {
		with[keyPolicy] = filePolicy(with[keyPolicy]) // it decides when; CommitPartitions, what
	}
	values, errs := spec.Resolve(with)
	if len(errs) > 0 {
		return nil, errs[0]
	}
	ft := *t
	ft.Options = values
	return &ft, nil
}

// filePolicy is a table's policy without the metastore. What is left may be nothing:
// then its name alone keeps the trigger.
func filePolicy(kinds string) string {
	var left []string
	for k := range strings.SplitSeq(kinds, ",") {
		if k = strings.TrimSpace(k); k != "metastore" {
			left = append(left, k)
		}
	}
	if len(left) == 0 {
		return "success-file"
	}
	return strings.Join(left, ",")
}

// lowerColumns puts the names of all columns and fields into lower case, as
// readers look for them.
func lowerColumns(t *connector.Table) {
	cols := make([]connector.Column, len(t.Columns))
	for i, col := range t.Columns {
		col.Name = strings.ToLower(col.Name)
		col.Type = lowerNames(col.Type)
		cols[i] = col
	}
	t.Columns = cols
}
