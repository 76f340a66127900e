package cli

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/sql/compile"
)

// dotFormat is the value of -o that explain alone takes.
const dotFormat = "dot"

// dot draws a job graph in the language of Graphviz: tables as cylinders, what keeps
// state with a thick border, each lane in a frame of its own, and an exchange, where rows
// change tasks, as an ellipse.
func dot(job string, nodes []compile.GraphNode) string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n", dotQuote(job))
	var lanes []string
	inLane := map[string][]compile.GraphNode{}
	for _, n := range nodes {
		if n.Lane == "" {
			continue
		}
		if inLane[n.Lane] == nil {
			lanes = append(lanes, n.Lane)
		}
		inLane[n.Lane] = append(inLane[n.Lane], n)
	}
	for i, lane := range lanes {
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=%s;\n    style=dashed;\n", i, dotQuote("lane "+lane))
		for _, n := range inLane[lane] {
			b.WriteString("    " + dotNode(n))
		}
		b.WriteString("  }\n")
	}
	for _, n := range nodes {
		if n.Lane == "" {
			b.WriteString("  " + dotNode(n))
		}
	}
	for _, n := range nodes {
		for _, in := range n.Inputs {
			fmt.Fprintf(&b, "  n%d -> n%d;\n", in, n.ID)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

func dotNode(n compile.GraphNode) string {
	label := n.Op
	if n.Text != "" {
		label += "\n" + n.Text
	}
	shape := ""
	switch {
	case n.Op == "Source" || n.Op == "Sink":
		shape = ", shape=cylinder"
	case n.Op == "Exchange":
		shape = ", shape=ellipse"
	case n.State != "":
		shape = ", penwidth=2, tooltip=" + dotQuote(n.State)
	}
	return fmt.Sprintf("n%d [label=%s%s];\n", n.ID, dotQuote(label), shape)
}

// dotQuote is a text as a string of Graphviz, where a backslash begins an escape.
func dotQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\r", "", "\n", `\n`).Replace(s) + `"`
}
