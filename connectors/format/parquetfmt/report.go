package parquetfmt

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/parquet-go/parquet-go/format"

	"github.com/millrace/millrace/runtime/types"
)

// Report is what [Verify] found.
type Report struct {
	Bytes, Rows int64
	CreatedBy   string
	// Metadata is the footer's key-value metadata.
	Metadata  map[string]string
	RowGroups []RowGroupReport
	Columns   []ColumnReport
	// Problems are what is wrong; an empty list means that every value was
	// decoded and agrees with the footer.
	Problems []Problem
}

// RowGroupReport is one row group: rows by the footer, bytes as stored.
type RowGroupReport struct{ Rows, Bytes int64 }

// ColumnReport is one leaf column over all row groups.
type ColumnReport struct {
	Path string
	// Type is physical and logical type, e.g. "INT64 TIMESTAMP_LTZ(6)".
	Type        string
	Compression string
	// Values counts slots with NULLs; Bytes are stored bytes.
	Values, Nulls, Bytes int64
	Pages                int
	// Min and Max are the least and greatest value found, as text; empty
	// where there is none.
	Min, Max string
}

// Problem is one finding.
type Problem struct{ Where, Text string }

// OK reports whether nothing is wrong.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// maxProblems bounds a report about a file that is wrong everywhere.
const maxProblems = 100

func (r *Report) problem(where, text string) {
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, Problem{Where: where, Text: text})
	}
}

// String is the report as `millrace file verify` prints it.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d rows, %d row groups, %d columns, %d bytes, written by %q\n",
		r.Rows, len(r.RowGroups), len(r.Columns), r.Bytes, r.CreatedBy)
	for _, k := range slices.Sorted(maps.Keys(r.Metadata)) {
		v := r.Metadata[k]
		if len(v) > 100 {
			v = fmt.Sprintf("%s... (%d bytes)", v[:100], len(v))
		}
		fmt.Fprintf(&b, "  %s = %s\n", k, v)
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "column\ttype\tcompression\tvalues\tnulls\tpages\tbytes\tmin\tmax\n")
	for _, c := range r.Columns {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\n", c.Path, c.Type, c.Compression, c.Values, c.Nulls, c.Pages, c.Bytes, c.Min, c.Max)
	}
	w.Flush()
	if r.OK() {
		b.WriteString("ok: every value was decoded by a second reader and agrees with the footer\n")
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "problem: %s: %s\n", p.Where, p.Text)
	}
	return b.String()
}

func (r *Report) describe(m *format.FileMetaData) {
	r.Rows, r.CreatedBy = m.NumRows, m.CreatedBy
	r.Metadata = make(map[string]string, len(m.KeyValueMetadata))
	for _, kv := range m.KeyValueMetadata {
		r.Metadata[kv.Key] = kv.Value
	}
}

// column adds one chunk to its column. found are the bounds in that chunk.
func (r *Report) column(c int, m *format.ColumnMetaData, t *tally, pages int) {
	for len(r.Columns) <= c {
		r.Columns = append(r.Columns, ColumnReport{})
	}
	col := &r.Columns[c]
	if col.Path == "" {
		col.Path = joinPath(m.PathInSchema)
		col.Type = strings.TrimSpace(m.Type.String() + " " + t.leaf.typ.WithNullable(true).String())
		col.Compression = strings.ToLower(m.Codec.String())
	}
	col.Values += t.slots
	col.Nulls += t.nulls
	col.Bytes += m.TotalCompressedSize
	col.Pages += pages
	if t.min == nil {
		return
	}
	col.widen(t)
}

func (c *ColumnReport) widen(t *tally) {
	if c.Min == "" && c.Max == "" {
		c.Min, c.Max = show(t.leaf, t.min), show(t.leaf, t.max)
		t.leaf.found = [2]any{t.min, t.max}
		return
	}
	if t.order(t.min, t.leaf.found[0]) < 0 {
		t.leaf.found[0], c.Min = t.min, show(t.leaf, t.min)
	}
	if t.order(t.max, t.leaf.found[1]) > 0 {
		t.leaf.found[1], c.Max = t.max, show(t.leaf, t.max)
	}
}

// orderOf gives the order that the format defines for a column's values, as
// the second reader returns them; nil where there is none.
func orderOf(n *fileNode) func(a, b any) int {
	switch n.elem.Type.V {
	case format.Boolean:
		return func(a, b any) int { return cmp.Compare(bit(a.(bool)), bit(b.(bool))) }
	case format.Int32:
		if n.unsigned {
			return func(a, b any) int { return cmp.Compare(uint32(a.(int32)), uint32(b.(int32))) }
		}
		return func(a, b any) int { return cmp.Compare(a.(int32), b.(int32)) }
	case format.Int64:
		if n.unsigned {
			return func(a, b any) int { return cmp.Compare(uint64(a.(int64)), uint64(b.(int64))) }
		}
		return func(a, b any) int { return cmp.Compare(a.(int64), b.(int64)) }
	case format.Float:
		return func(a, b any) int { return cmp.Compare(a.(float32), b.(float32)) }
	case format.Double:
		return func(a, b any) int { return cmp.Compare(a.(float64), b.(float64)) }
	case format.ByteArray, format.FixedLenByteArray:
		if n.typ.Kind == types.Decimal {
			return func(a, b any) int { return decimalOf(a).Cmp(decimalOf(b)) }
		}
		if n.typ.Kind == types.Invalid {
			return nil
		}
		return func(a, b any) int { return strings.Compare(a.(string), b.(string)) }
	}
	return nil
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// boundOf decodes a bound of the footer into the form of the values.
func boundOf(n *fileNode, b []byte) (any, error) {
	width := map[format.Type]int{format.Boolean: 1, format.Int32: 4, format.Float: 4, format.Int64: 8, format.Double: 8,
		format.FixedLenByteArray: int(n.elem.TypeLength.V)}[n.elem.Type.V]
	if n.elem.Type.V != format.ByteArray && len(b) != width {
		return nil, fmt.Errorf("a bound of %d bytes where %d are due", len(b), width)
	}
	switch n.elem.Type.V {
	case format.Boolean:
		return b[0] != 0, nil
	case format.Int32:
		return le32(b), nil
	case format.Int64:
		return le64(b), nil
	case format.Float:
		return math.Float32frombits(binary.LittleEndian.Uint32(b)), nil
	case format.Double:
		return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
	}
	return string(b), nil
}

// show prints a value of the second reader for people.
func show(n *fileNode, v any) string {
	switch x := v.(type) {
	case string:
		if n.typ.Kind == types.Decimal {
			return scaled(decimalOf(x), n.typ.Scale)
		}
		if len(x) > 40 {
			x = x[:40] + "..."
		}
		if n.typ.IsString() {
			return fmt.Sprintf("%q", x)
		}
		return fmt.Sprintf("0x%x", x)
	case int32:
		return showInt(n, int64(x))
	case int64:
		return showInt(n, x)
	}
	return fmt.Sprint(v)
}
