package hive

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/runtime/types"
)

// Bounds of Hive's types.
const (
	maxChar    = 255
	maxVarchar = 65535
)

// hiveType is the Hive type of a column as the metastore spells it. int96 tells
// that timestamps are written so; a type that readers of Hive tables would
// misread is refused.
func hiveType(t types.Type, int96 bool) (string, error) {
	switch t.Kind {
	case types.Boolean:
		return "boolean", nil
	case types.TinyInt:
		return "tinyint", nil
	case types.SmallInt:
		return "smallint", nil
	case types.Int:
		return "int", nil
	case types.BigInt:
		return "bigint", nil
	case types.Float:
		return "float", nil
	case types.Double:
		return "double", nil
	case types.Decimal:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale), nil
	case types.Char:
		if t.Length > maxChar {
			return "", fmt.Errorf("Hive's CHAR ends at %d characters: declare VARCHAR(%d) or STRING", maxChar, t.Length)
		}
		return fmt.Sprintf("char(%d)", t.Length), nil
	case types.Varchar:
		if t.Length > maxVarchar {
			return "string", nil
		}
		return fmt.Sprintf("varchar(%d)", t.Length), nil
	case types.Binary, types.Varbinary:
		return "binary", nil
	case types.Date:
		return "date", nil
	case types.Timestamp, types.TimestampLTZ:
		if t.Precision > 6 && !int96 {
			return "", fmt.Errorf("Hive and Spark do not read timestamps with nanoseconds in 64 bits: declare %s(6), or set 'parquet.write.int64.timestamp' = 'false'", timestampName(t))
		}
		return "timestamp", nil
	case types.Time:
		return "", fmt.Errorf("Hive has no type TIME: write CAST(... AS STRING)")
	case types.Array:
		elem, err := hiveType(*t.Elem, int96)
		return "array<" + elem + ">", err
	case types.Map:
		key, err := hiveType(*t.Key, int96)
		if err != nil {
			return "", err
		}
		value, err := hiveType(*t.Elem, int96)
		return "map<" + key + "," + value + ">", err
	case types.Row:
		parts := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			name, err := hiveName(f.Name)
			if err != nil {
				return "", err
			}
			ft, err := hiveType(f.Type, int96)
			if err != nil {
				return "", fmt.Errorf("field %s: %w", f.Name, err)
			}
			parts[i] = name + ":" + ft
		}
		return "struct<" + strings.Join(parts, ",") + ">", nil
	}
	return "", fmt.Errorf("Hive has no type for %s", t.WithNullable(true))
}

func timestampName(t types.Type) string {
	if t.Kind == types.TimestampLTZ {
		return "TIMESTAMP_LTZ"
	}
	return "TIMESTAMP"
}

// hiveName is a column's or field's name in Hive: lower case.
func hiveName(name string) (string, error) {
	low := strings.ToLower(name)
	if low == "" || strings.ContainsAny(low, ".:,<>`;") || strings.IndexFunc(low, func(r rune) bool { return r < ' ' }) >= 0 {
		return "", fmt.Errorf("%q cannot be a name in Hive", name)
	}
	return low, nil
}

// lowerNames is the type with the names of all ROW fields in lower case, as
// readers look for them.
func lowerNames(t types.Type) types.Type {
	switch t.Kind {
	case types.Array:
		e := lowerNames(*t.Elem)
		t.Elem = &e
	case types.Map:
		k, e := lowerNames(*t.Key), lowerNames(*t.Elem)
		t.Key, t.Elem = &k, &e
	case types.Row:
		fields := make([]types.Field, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = types.Field{Name: strings.ToLower(f.Name), Type: lowerNames(f.Type), Comment: f.Comment}
		}
		t.Fields = fields
	}
	return t
}

// canonical is a Hive type without spaces, in lower case and with its defaults.
func canonical(t string) string {
	t = strings.ToLower(strings.Join(strings.Fields(t), ""))
	switch t {
	case "decimal":
		return "decimal(10,0)"
	case "integer":
		return "int"
	case "timestampwithlocaltimezone":
		return "timestamp with local time zone"
	}
	return t
}

// readableAs reports whether files with a column of one Hive type are read
// right by a table that declares the other.
func readableAs(written, declared string) bool {
	if written == declared {
		return true
	}
	name, length := sized(written)
	dname, dlength := sized(declared)
	switch name {
	case "char":
		// Readers pad or trim a CHAR to the declared length.
		return declared == "string"
	case "varchar":
		return declared == "string" || dname == "varchar" && dlength >= length
	}
	return written == "timestamp" && declared == "timestamp with local time zone"
}

// widens reports whether a declared Hive type may be altered to a wider one:
// every old file is read right by the new type in Hive.
func widens(from, to string) bool {
	ints := map[string]int{"tinyint": 1, "smallint": 2, "int": 3, "bigint": 4}
	if a, b := ints[from], ints[to]; a > 0 && b > 0 {
		return a < b
	}
	if from == "float" && to == "double" {
		return true
	}
	name, length := sized(from)
	tname, tlength := sized(to)
	switch {
	case name == "varchar" && tname == "varchar":
		return length < tlength
	case name == "varchar" || name == "char":
		return to == "string"
	}
	return false
}

// sized splits "varchar(20)".
func sized(t string) (name string, length int) {
	name, rest, ok := strings.Cut(t, "(")
	if ok {
		if _, err := fmt.Sscanf(rest, "%d)", &length); err != nil {
			return t, 0
		}
	}
	return name, length
}
