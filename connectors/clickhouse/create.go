package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// typeFor is the type that a column is made with.
func typeFor(t types.Type) (string, error) {
	inner, err := bareTypeFor(t)
	if err != nil || !t.Nullable || t.IsNested() {
		return inner, err
	}
	return "Nullable(" + inner + ")", nil
}

func bareTypeFor(t types.Type) (string, error) {
	switch t.Kind {
	case types.Boolean:
		return "Bool", nil
	case types.TinyInt:
		return "Int8", nil
	case types.SmallInt:
		return "Int16", nil
	case types.Int:
		return "Int32", nil
	case types.BigInt:
		return "Int64", nil
	case types.Float:
		return "Float32", nil
	case types.Double:
		return "Float64", nil
	case types.Decimal:
		return fmt.Sprintf("Decimal(%d, %d)", t.Precision, t.Scale), nil
	case types.Char, types.Varchar, types.Varbinary:
		return "String", nil
	case types.Binary:
		return fmt.Sprintf("FixedString(%d)", t.Length), nil
	case types.Date:
		return "Date32", nil
	case types.Timestamp, types.TimestampLTZ:
		return fmt.Sprintf("DateTime64(%d, 'UTC')", t.Precision), nil
	case types.Array:
		e, err := typeFor(*t.Elem)
		return "Array(" + e + ")", err
	case types.Map:
		k, err := typeFor(*t.Key)
		if err != nil {
			return "", err
		}
		v, err := typeFor(*t.Elem)
		return "Map(" + k + ", " + v + ")", err
	case types.Row:
		var parts []string
		for _, f := range t.Fields {
			x, err := typeFor(f.Type)
			if err != nil {
				return "", err
			}
			parts = append(parts, quoteName(f.Name)+" "+x)
		}
		return "Tuple(" + strings.Join(parts, ", ") + ")", nil
	}
	return "", fmt.Errorf("not_yet: making a column for %s", t)
}

// createTable makes the table as the SQL table declares it. Two who make it at
// once make it once.
func (s *server) createTable(ctx context.Context, t *connector.Table) error {
	statement, err := createStatement(s.name(), t, s.opts.orderBy)
	if err != nil {
		return err
	}
	return s.exec(ctx, statement)
}

// createStatement is CREATE TABLE of a SQL table.
func createStatement(name string, t *connector.Table, orderBy []string) (string, error) {
	var cols, partition []string
	order := slices.Clone(orderBy)
	if len(order) == 0 {
		for _, i := range t.PrimaryKey {
			order = append(order, t.Columns[i].Name)
		}
	}
	for i, c := range t.Columns {
		if c.Virtual {
			continue
		}
		typ := c.Type
		// Keys of sorting and partitions are not nullable.
		if slices.Contains(order, c.Name) || slices.Contains(t.PartitionKeys, i) {
			typ = typ.NotNull()
		}
		x, err := typeFor(typ)
		if err != nil {
			return "", fmt.Errorf("column %s: %w", c.Name, err)
		}
		cols = append(cols, quoteName(c.Name)+" "+x)
	}
	cols = append(cols, artifactColumn+" LowCardinality(String)")
	for _, i := range t.PartitionKeys {
		partition = append(partition, quoteName(t.Columns[i].Name))
	}
	for i, o := range order {
		if !slices.ContainsFunc(t.Columns, func(c connector.Column) bool { return c.Name == o && !c.Virtual }) {
			return "", &connector.OptionError{Key: keyCreateOrder, OnValue: true, Message: fmt.Sprintf("the table has no column %q", o)}
		}
		order[i] = quoteName(o)
	}
	statement := "CREATE TABLE IF NOT EXISTS " + name + " (" + strings.Join(cols, ", ") + ") ENGINE = MergeTree"
	if len(partition) > 0 {
		statement += " PARTITION BY (" + strings.Join(partition, ", ") + ")"
	}
	sorted := "tuple()"
	if len(order) > 0 {
		sorted = "(" + strings.Join(order, ", ") + ")"
	}
	return statement + " ORDER BY " + sorted + fmt.Sprintf(" SETTINGS non_replicated_deduplication_window = %d", recommendedWindow), nil
}

// widen adds the columns that a table lacks, and nothing else. It reports
// whether there were any.
func (s *server) widen(ctx context.Context, t *connector.Table, d *definition) (bool, error) {
	widened := false
	for _, c := range t.Columns {
		if c.Virtual || d.column(c.Name) != nil {
			continue
		}
		x, err := typeFor(c.Type)
		if err != nil {
			return widened, fmt.Errorf("column %s: %w", c.Name, err)
		}
		if err := s.exec(ctx, "ALTER TABLE "+s.name()+" ADD COLUMN IF NOT EXISTS "+quoteName(c.Name)+" "+x); err != nil {
			return widened, fmt.Errorf("adding column %s: %w", c.Name, err)
		}
		widened = true
	}
	return widened, nil
}
