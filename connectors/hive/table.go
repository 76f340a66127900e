package hive

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/connectors/hive/metastore"
	"github.com/millrace/millrace/runtime/connector"
)

// Classes of Parquet tables in Hive.
const (
	parquetSerDe  = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
	parquetInput  = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
	parquetOutput = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
)

// schema is what a table of ours has in Hive.
type schema struct {
	columns, keys []metastore.Column
}

// schemaOf maps a table's columns. All that Hive cannot hold is in the error.
func schemaOf(t *connector.Table, int96 bool) (schema, error) {
	var s schema
	isKey := map[int]bool{}
	for _, k := range t.PartitionKeys {
		isKey[k] = true
	}
	seen := map[string]string{}
	byIndex := map[int]metastore.Column{}
	var faults []string
	for i, col := range t.Columns {
		if col.Virtual {
			continue
		}
		name, err := hiveName(col.Name)
		if err == nil && seen[name] != "" {
			err = fmt.Errorf("it has the same name as %s: Hive does not tell upper from lower case", seen[name])
		}
		seen[name] = col.Name
		var ht string
		if err == nil {
			ht, err = hiveType(col.Type, int96)
		}
		if err != nil {
			faults = append(faults, fmt.Sprintf("column %s: %v", col.Name, err))
			continue
		}
		c := metastore.Column{Name: name, Type: ht, Comment: col.Comment}
		byIndex[i] = c
		if !isKey[i] {
			s.columns = append(s.columns, c)
		}
	}
	for _, k := range t.PartitionKeys {
		s.keys = append(s.keys, byIndex[k])
	}
	if len(faults) > 0 {
		return s, fmt.Errorf("%s", strings.Join(faults, "; "))
	}
	return s, nil
}

// newTable is the table to be created; an empty location lets the metastore
// choose one.
func newTable(o *tableOptions, s schema, comment, location string) *metastore.Table {
	t := &metastore.Table{
		Database: o.database, Name: o.table, Owner: o.user, Type: "EXTERNAL_TABLE",
		PartitionKeys: s.keys,
		Parameters:    map[string]string{"EXTERNAL": "TRUE"},
		Storage: metastore.Storage{Columns: s.columns, Location: location,
			InputFormat: parquetInput, OutputFormat: parquetOutput, SerDe: parquetSerDe,
			SerDeParameters: map[string]string{"serialization.format": "1"}},
	}
	if comment != "" {
		t.Parameters["comment"] = comment
	}
	return t
}

// MismatchError says why a table of the metastore cannot be written, or read.
type MismatchError struct {
	Database, Table string
	Reading         bool
	// Differences are sentences, one a column or property.
	Differences []string
	// Hint is what to do, or "".
	Hint string
}

func (e *MismatchError) Error() string {
	done := "written"
	if e.Reading {
		done = "read"
	}
	s := fmt.Sprintf("table %s.%s of the metastore cannot be %s: %s", e.Database, e.Table, done, strings.Join(e.Differences, "; "))
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// writable checks that a table is one of plain Parquet files.
func writable(t *metastore.Table) []string {
	out := foreign(t)
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if t.Storage.SerDe != parquetSerDe && len(out) == 0 {
		out = append(out, refusedSerDe(t.Storage.SerDe, "written"))
	}
	if t.Storage.Buckets > 0 {
		add("it is bucketed by %s (not_yet)", strings.Join(t.Storage.BucketColumns, ", "))
	}
	if t.Storage.Sorted() {
		add("it is declared to be sorted (not_yet)")
	}
	return append(out, byPosition(&t.Storage, t.Parameters)...)
}

// change is how a table differs from what is to be written.
type change struct {
	// add are columns that it lacks, widen those whose type is too narrow.
	add, widen []metastore.Column
	// faults cannot be helped.
	faults []string
}

// compare compares a table with what is to be written. Columns of the table
// that we do not have are NULL in our rows.
func compare(t *metastore.Table, s schema) change {
	var c change
	have := map[string]metastore.Column{}
	for _, col := range t.Storage.Columns {
		have[strings.ToLower(col.Name)] = col
	}
	keys := map[string]bool{}
	for _, k := range t.PartitionKeys {
		keys[strings.ToLower(k.Name)] = true
	}
	if a, b := names(t.PartitionKeys), names(s.keys); a != b {
		c.faults = append(c.faults, fmt.Sprintf("it is partitioned by (%s), the table here by (%s)", a, b))
	} else {
		for i, k := range s.keys {
			if th := canonical(t.PartitionKeys[i].Type); !readableAs(canonical(k.Type), th) {
				c.faults = append(c.faults, fmt.Sprintf("partition column %s is %s there and %s here", k.Name, th, k.Type))
			}
		}
	}
	for _, col := range s.columns {
		there, ok := have[col.Name]
		switch {
		case !ok && keys[col.Name]:
			c.faults = append(c.faults, fmt.Sprintf("column %s is a partition column there", col.Name))
		case !ok:
			c.add = append(c.add, col)
		case readableAs(canonical(col.Type), canonical(there.Type)):
		case widens(canonical(there.Type), canonical(col.Type)):
			c.widen = append(c.widen, metastore.Column{Name: col.Name, Type: col.Type, Comment: there.Comment})
		default:
			c.faults = append(c.faults, fmt.Sprintf("column %s is %s there and %s here", col.Name, canonical(there.Type), col.Type))
		}
	}
	return c
}

func names(cols []metastore.Column) string {
	out := make([]string, len(cols))
	for i, c := range cols {
		out[i] = strings.ToLower(c.Name)
	}
	return strings.Join(out, ", ")
}

// mismatch is the error of a table that does not fit, or nil. allowed is what
// may be changed in it.
func mismatch(t *metastore.Table, c change, allowed string) error {
	e := &MismatchError{Database: t.Database, Table: t.Name, Differences: c.faults}
	have := map[string]string{}
	for _, col := range t.Storage.Columns {
		have[strings.ToLower(col.Name)] = canonical(col.Type)
	}
	if allowed == evolveNothing {
		for _, col := range c.add {
			e.Differences = append(e.Differences, fmt.Sprintf("column %s (%s) is missing there", col.Name, col.Type))
			e.Hint = fmt.Sprintf("'%s' = '%s' adds it", keyEvolution, evolveAdd)
		}
	}
	if allowed != evolveWiden {
		for _, col := range c.widen {
			e.Differences = append(e.Differences, fmt.Sprintf("column %s is %s there and %s here", col.Name, have[col.Name], col.Type))
			e.Hint = fmt.Sprintf("'%s' = '%s' widens it", keyEvolution, evolveWiden)
		}
	}
	if len(e.Differences) == 0 {
		return nil
	}
	if len(c.faults) > 0 {
		e.Hint = ""
	}
	return e
}

// evolved is the table with the change made, nil when there is none to make.
func evolved(t *metastore.Table, c change) *metastore.Table {
	if len(c.add)+len(c.widen) == 0 {
		return nil
	}
	n := t.Clone()
	for _, w := range c.widen {
		for i := range n.Storage.Columns {
			if strings.EqualFold(n.Storage.Columns[i].Name, w.Name) {
				n.Storage.Columns[i].Type = w.Type
			}
		}
	}
	n.Storage.Columns = append(n.Storage.Columns, c.add...)
	return n
}
