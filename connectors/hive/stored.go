package hive

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/millrace/millrace/connectors/hive/metastore"
)

// Classes of tables that are read.
const (
	textSerDe   = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
	jsonSerDe   = "org.apache.hadoop.hive.serde2.JsonSerDe"
	hcatSerDe   = "org.apache.hive.hcatalog.data.JsonSerDe"
	textInput   = "org.apache.hadoop.mapred.TextInputFormat"
	formatCSV   = "csv"
	formatJSON  = "json"
	formatFiles = "parquet"
)

// stored is how the files of a table or of a partition are read.
type stored struct {
	format  string
	options map[string]string // of the format
}

func (s stored) equal(o stored) bool { return s.format == o.format && maps.Equal(s.options, o.options) }

// storedAs finds how files are stored. params are the table's properties. Each
// fault is a sentence.
func storedAs(s *metastore.Storage, params map[string]string) (stored, []string) {
	switch s.SerDe {
	case parquetSerDe:
		return stored{format: formatFiles}, byPosition(s, params)
	case textSerDe, jsonSerDe, hcatSerDe:
	default:
		return stored{}, []string{refusedSerDe(s.SerDe, "read")}
	}
	if s.InputFormat != textInput {
		return stored{}, []string{fmt.Sprintf("its files are read by %s (not_yet: only %s)", s.InputFormat, textInput)}
	}
	get := func(key, def string) string {
		if v, ok := s.SerDeParameters[key]; ok {
			return v
		}
		if v, ok := params[key]; ok {
			return v
		}
		return def
	}
	var faults []string
	const header, footer = "skip.header.line.count", "skip.footer.line.count"
	if v := get(footer, "0"); v != "0" {
		faults = append(faults, fmt.Sprintf("its files have %s lines that are not rows ('%s', not_yet)", v, footer))
	}
	if v := get("serialization.encoding", "UTF-8"); !strings.EqualFold(v, "UTF-8") {
		faults = append(faults, fmt.Sprintf("its text is encoded in %s (not_yet: only UTF-8)", v))
	}
	out := stored{format: formatCSV, options: map[string]string{}}
	if v := get(header, "0"); v != "0" {
		if n, err := strconv.ParseUint(v, 10, 20); err != nil {
			faults = append(faults, fmt.Sprintf("'%s' is %q, no number of lines", header, v))
		} else if n > 0 {
			out.options["source.skip-lines"] = strconv.FormatUint(n, 10)
		}
	}
	if s.SerDe != textSerDe {
		out.format = formatJSON
		return out, faults
	}
	return out, append(faults, delimited(get, out.options)...)
}

// delimited are the options of Hive's own text format.
func delimited(get func(key, def string) string, o map[string]string) (faults []string) {
	if v := get("line.delim", "\n"); v != "\n" {
		faults = append(faults, fmt.Sprintf("its lines end with %q (not_yet)", v))
	}
	const none = "\x00"
	if v := get("escape.delim", none); v != none {
		c := delimiter(v, '\\')
		if c == 0 || c >= 0x80 || c == '\n' || c == '\r' || c == 'n' || c == 'r' {
			faults = append(faults, fmt.Sprintf("its fields are escaped by byte %d ('escape.delim', not_yet)", c))
		}
		o["csv.escape-character"], o["csv.hive-escapes"] = javaChar(c), "true"
	}
	if strings.EqualFold(get("serialization.last.column.takes.rest", "false"), "true") {
		faults = append(faults, "its last column takes the rest of the line (not_yet)")
	}
	o["csv.disable-quote-character"] = "true"
	o["csv.ignore-field-count"] = "true"
	o["csv.null-literal"] = get("serialization.null.format", `\N`)
	c := delimiter(get("field.delim", get("serialization.format", "")), 1)
	if c == 0 || c == '\n' || c >= 0x80 {
		return append(faults, fmt.Sprintf("its fields are separated by byte %d (not_yet)", c))
	}
	o["csv.field-delimiter"] = javaChar(c)
	o["csv.array-element-delimiter"] = "\x02"
	for _, key := range []string{"collection.delim", "colelction.delim"} { // as Hive 2 misspells it
		if v := get(key, ""); v != "" {
			o["csv.array-element-delimiter"] = string(rune(delimiter(v, 2)))
		}
	}
	return faults
}

// delimiter is a delimiter as Hive understands it: a number is the byte's.
func delimiter(s string, def byte) byte {
	if s == "" {
		return def
	}
	if n, err := strconv.ParseInt(s, 10, 8); err == nil {
		return byte(n)
	}
	return s[0]
}

// javaChar spells a character for the options of format csv.
func javaChar(c byte) string {
	if c < 0x20 || c == 0x7f {
		return fmt.Sprintf(`\u%04x`, c)
	}
	if c == '\\' {
		return `\\`
	}
	return string(rune(c))
}

// refusedSerDe says why files are not read, or written.
func refusedSerDe(serde, done string) string {
	if strings.Contains(strings.ToLower(serde), ".orc") {
		return "it is stored as ORC (not_yet: no maintained ORC library exists for Go; create it STORED AS PARQUET)"
	}
	if done == "written" {
		return fmt.Sprintf("its SerDe is %s (only %s, STORED AS PARQUET)", serde, parquetSerDe)
	}
	return fmt.Sprintf("its SerDe is %s (not_yet: Parquet, delimited text and JSON are read)", serde)
}

// byPosition refuses tables whose Parquet columns are found by position.
func byPosition(s *metastore.Storage, params map[string]string) []string {
	for _, m := range []map[string]string{params, s.SerDeParameters} {
		if strings.EqualFold(m["parquet.column.index.access"], "true") {
			return []string{"it reads columns by position ('parquet.column.index.access'), files have them by name"}
		}
	}
	return nil
}

// foreign says why a table's files are not its own to read or write: it has
// another list of files, or none.
func foreign(t *metastore.Table) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if t.Type != "" && t.Type != "MANAGED_TABLE" && t.Type != "EXTERNAL_TABLE" {
		add("it is a %s", t.Type)
		return out
	}
	if kind := t.Parameters["table_type"]; kind != "" {
		add("it is a table of %s, which has its own list of files", kind)
		return out
	}
	if t.Parameters["storage_handler"] != "" {
		add("its data lies with the storage handler %s", t.Parameters["storage_handler"])
		return out
	}
	if strings.EqualFold(t.Parameters["transactional"], "true") {
		add("it is transactional (ACID): only Hive knows its files; create it with TBLPROPERTIES ('transactional'='false')")
	}
	if p := t.Parameters["spark.sql.sources.provider"]; p != "" && !strings.EqualFold(p, "parquet") && !strings.EqualFold(p, "hive") {
		add("it is a table of Spark's provider %s", p)
	}
	return out
}
