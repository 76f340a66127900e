package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/syntax"
)

// Print writes a plan as an indented tree, one node a line.
func Print(w io.Writer, n Node) { printNode(w, n, 0) }

func printNode(w io.Writer, n Node, depth int) {
	fmt.Fprintf(w, "%s%s\n", strings.Repeat("  ", depth), Describe(n))
	for i, in := range n.Inputs() {
		if x, ok := n.(*Wide); ok {
			fmt.Fprintf(w, "%sbranch %s\n", strings.Repeat("  ", depth+1), x.Branches[i].String())
			printNode(w, in, depth+2)
			continue
		}
		printNode(w, in, depth+1)
	}
}

// Describe is a node in one line: Kind(detail, ...).
func Describe(n Node) string {
	kind, details := describe(n)
	return kind + "(" + strings.Join(details, ", ") + ")"
}

func describe(n Node) (kind string, details []string) {
	switch n := n.(type) {
	case *Scan:
		d := []string{"table=" + syntax.Quote(n.Table.Name), "columns=[" + columnNames(n.Cols) + "]"}
		if n.Watermark != nil {
			d = append(d, "watermark="+n.Watermark.String())
		}
		if n.Partitions != nil {
			d = append(d, "partitions="+n.Partitions.String())
		}
		return "Scan", d
	case *Project:
		items := make([]string, len(n.Exprs))
		for i, e := range n.Exprs {
			items[i] = e.String()
			if c, ok := e.(*expr.Column); !ok || c.Name != n.Cols[i].Name {
				items[i] += " AS " + syntax.Quote(n.Cols[i].Name)
			}
		}
		return "Project", []string{strings.Join(items, ", ")}
	case *Filter:
		return "Filter", []string{n.Predicate.String()}
	case *Unnest:
		d := []string{n.Value.String()}
		if n.Outer {
			d = append(d, "outer")
		}
		if n.Ordinality {
			d = append(d, "ordinality")
		}
		if n.Condition != nil {
			d = append(d, "condition="+n.Condition.String())
		}
		return "Unnest", append(d, "adds=["+columnNames(n.Cols[len(n.Input.Columns()):])+"]")
	case *Union:
		return "Union", []string{strconv.Itoa(len(n.In)) + " inputs", "columns=[" + columnNames(n.Cols) + "]"}
	case *WindowTable:
		d := []string{n.Window.String(), "time=" + nameOf(n.Input, n.Time)}
		if len(n.Keys) > 0 {
			var keys []string
			for _, k := range n.Keys {
				keys = append(keys, nameOf(n.Input, k))
			}
			d = append(d, "keys=["+strings.Join(keys, ", ")+"]")
		}
		switch {
		case n.CheckOnly:
			d = append(d, "time checked only")
		case n.Window.Kind == SessionWindow:
			d = append(d, "state="+n.StatePath())
		}
		return "Window", d
	case *Aggregate:
		return "Aggregate", describeAggregate(n)
	case *Join:
		return "Join", describeJoin(n)
	case *Lookup:
		return "Lookup", describeLookup(n)
	case *SetOperation:
		return "SetOperation", describeSet(n)
	case *Over:
		return "Over", describeOver(n)
	case *Rank:
		return "Rank", describeRank(n)
	case *Normalize:
		return "Normalize", describeNormalize(n)
	case *Sort:
		return "Sort", describeSort(n)
	case *Values:
		return "Values", []string{strconv.Itoa(len(n.Rows)) + " rows", "columns=[" + columnNames(n.Cols) + "]"}
	case *Wide:
		return "Wide", describeWide(n)
	case *Insert:
		d := []string{"table=" + syntax.Quote(n.Table.Name)}
		if n.Overwrite {
			d = append(d, "overwrite")
		}
		return "Insert", append(d, "changelog="+ChangelogOf(n.Input).String())
	}
	return fmt.Sprintf("%T", n), nil
}

func describeAggregate(n *Aggregate) []string {
	var keys []string
	for _, k := range n.Keys {
		keys = append(keys, nameOf(n.Input, k))
	}
	d := []string{"keys=[" + strings.Join(keys, ", ") + "]"}
	var aggs []string
	for _, a := range n.Aggs {
		aggs = append(aggs, a.Text)
	}
	d = append(d, "aggregates=["+strings.Join(aggs, ", ")+"]")
	if n.Window != nil {
		d = append(d, "window="+n.Window.String())
		if n.Given != nil {
			d = append(d, "given=["+nameOf(n.Input, n.Given.Start)+", "+nameOf(n.Input, n.Given.End)+"]")
		}
		if n.Time >= 0 {
			d = append(d, "time="+nameOf(n.Input, n.Time))
		}
		d = n.Firing.describe(d)
	}
	if ChangelogOf(n.Input).By != nil {
		d = append(d, "takes rows back")
	}
	if n.Updates {
		d = withTTL(d, n.TTL)
	}
	return append(d, "state="+n.StatePath())
}

func describeJoin(n *Join) []string {
	var keys []string
	for _, k := range n.Keys {
		op := " = "
		if k.NullSafe {
			op = " IS NOT DISTINCT FROM "
		}
		keys = append(keys, nameOf(n.Left, k.Left)+op+nameOf(n.Right, k.Right))
	}
	d := []string{n.Kind.String(), "keys=[" + strings.Join(keys, ", ") + "]"}
	if n.NullAware {
		d = append(d, "null-aware")
	}
	if n.Condition != nil {
		d = append(d, "condition="+n.Condition.String())
	}
	if n.Windows != nil {
		d = append(d, "window="+n.Window.String())
	}
	if n.Changes {
		d = append(d, "keeps all rows")
		for i, side := range []string{"left", "right"} {
			if n.TTL[i] > 0 {
				d = append(d, side+" ttl="+millis(n.TTL[i]))
			}
		}
	}
	if t := n.Interval; t != nil {
		d = append(d, fmt.Sprintf("interval=%s - %s from %s to %s", nameOf(n.Right, t.RightTime), nameOf(n.Left, t.LeftTime), millis(t.Lower), millis(t.Upper)))
	}
	if t := n.Temporal; t != nil {
		d = append(d, "version="+nameOf(n.Right, t.RightTime)+" as of "+nameOf(n.Left, t.LeftTime))
	}
	return append(d, "state="+n.StatePath())
}

func describeSort(n *Sort) []string {
	var keys []string
	for _, k := range n.Keys {
		s := nameOf(n.Input, k.ID)
		if k.Desc {
			s += " DESC"
		}
		if k.NullsLast != k.Desc {
			s += map[bool]string{true: " NULLS LAST", false: " NULLS FIRST"}[k.NullsLast]
		}
		keys = append(keys, s)
	}
	d := []string{"keys=[" + strings.Join(keys, ", ") + "]"}
	if n.Offset > 0 {
		d = append(d, "offset="+strconv.FormatInt(n.Offset, 10))
	}
	if n.Limit >= 0 {
		d = append(d, "limit="+strconv.FormatInt(n.Limit, 10))
	}
	if n.ByTime {
		d = append(d, "by row time", "state="+n.StatePath())
	}
	return d
}

func describeWide(n *Wide) []string {
	d := []string{"window=" + n.Window.String()}
	if n.Lateness > 0 {
		d = append(d, "lateness="+millis(n.Lateness))
	}
	if n.Correct > 0 {
		d = append(d, "corrected every "+millis(n.Correct))
	}
	var keys, values []string
	for _, c := range n.Cols[:len(n.Branches[0].Keys)] {
		keys = append(keys, c.Name)
	}
	for i, v := range n.Values {
		values = append(values, fmt.Sprintf("%s=%s(%s)", n.Cols[len(keys)+2+i].Name, v.Rule, n.label(v)))
	}
	d = append(d, "keys=["+strings.Join(keys, ", ")+"]", "columns=["+strings.Join(values, ", ")+"]")
	for i := range n.Offline {
		d = append(d, "offline=["+n.Offline[i].describe()+"]")
	}
	if len(n.Offline) > 0 {
		d = append(d, "waits up to "+millis(n.OfflineTimeout))
	}
	return append(d, "state="+n.Path)
}

// label is the branch of a value.
func (n *Wide) label(v WideValue) string {
	if v.Offline {
		return n.Offline[v.Branch].Label
	}
	return n.Branches[v.Branch].Label
}

func columnNames(cols []Column) string {
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}

func nameOf(n Node, id int) string {
	if c, ok := ColumnByID(n.Columns(), id); ok {
		return c.Name
	}
	return "?"
}

// jsonNode is a node in the form of EXPLAIN JSON_EXECUTION_PLAN.
type jsonNode struct {
	ID           int      `json:"id"`
	Type         string   `json:"type"`
	Contents     string   `json:"contents"`
	Columns      []string `json:"columns,omitempty"`
	Predecessors []int    `json:"predecessors,omitempty"`
}

// JSON is plans as a list of nodes, inputs first.
func JSON(roots []Node) string {
	var nodes []jsonNode
	var visit func(n Node) int
	visit = func(n Node) int {
		var before []int
		for _, in := range n.Inputs() {
			before = append(before, visit(in))
		}
		kind, _ := describe(n)
		j := jsonNode{ID: len(nodes) + 1, Type: kind, Contents: Describe(n), Predecessors: before}
		for _, c := range n.Columns() {
			j.Columns = append(j.Columns, c.Name+" "+c.Type.String())
		}
		nodes = append(nodes, j)
		return j.ID
	}
	for _, r := range roots {
		visit(r)
	}
	out, err := json.MarshalIndent(map[string]any{"nodes": nodes}, "", "  ")
	if err != nil {
		return "{}" // strings and integers always marshal
	}
	return string(out)
}

// CreateTableText is a table as DDL, secrets masked.
func CreateTableText(t *catalog.Table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s (", syntax.Quote(t.Name))
	sep := "\n  "
	line := func(format string, args ...any) {
		b.WriteString(sep)
		fmt.Fprintf(&b, format, args...)
		sep = ",\n  "
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		comment := ""
		if c.Comment != "" {
			comment = " COMMENT " + syntax.QuoteString(c.Comment)
		}
		switch c.Kind {
		case catalog.Computed:
			line("%s AS %s%s", syntax.Quote(c.Name), syntax.Print(c.Expr), comment)
		case catalog.Metadata:
			virtual := ""
			if c.Virtual {
				virtual = " VIRTUAL"
			}
			line("%s %s METADATA FROM %s%s%s", syntax.Quote(c.Name), c.Type, syntax.QuoteString(c.Key), virtual, comment)
		default:
			line("%s %s%s", syntax.Quote(c.Name), c.Type, comment)
		}
	}
	if t.Watermark != nil {
		line("WATERMARK FOR %s AS %s", syntax.Quote(t.Watermark.Column), syntax.Print(t.Watermark.Expr))
	}
	if len(t.PrimaryKey) > 0 {
		line("PRIMARY KEY (%s) NOT ENFORCED", quoteAll(t.PrimaryKey))
	}
	b.WriteString("\n)")
	if t.Comment != "" {
		b.WriteString(" COMMENT " + syntax.QuoteString(t.Comment))
	}
	if len(t.PartitionKeys) > 0 {
		fmt.Fprintf(&b, "\nPARTITIONED BY (%s)", quoteAll(t.PartitionKeys))
	}
	secret := map[string]bool{}
	for _, k := range t.SecretKeys() {
		secret[k] = true
	}
	if len(t.Options) > 0 {
		b.WriteString("\nWITH (")
		sep = "\n  "
		for _, o := range t.Options {
			value := o.Value.Display()
			if secret[o.Key.Value] {
				value = "***"
			}
			line("%s = %s", syntax.QuoteString(o.Key.Value), syntax.QuoteString(value))
		}
		b.WriteString("\n)")
	}
	return b.String()
}

func quoteAll(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = syntax.Quote(n)
	}
	return strings.Join(out, ", ")
}
