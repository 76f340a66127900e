package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/sql/compile"
)

func explainCommand(e *Env) *cobra.Command {
	var job jobFlags
	cmd := &cobra.Command{
		Use:   "explain JOB.sql",
		Short: "the plan of a job: its lanes, keyed stages and state",
		Long: `Compiles a job and prints its plan as bound and as optimized, the job graph, the
lanes (one a source table) with what they write and feed, and the state that
keyed stages hold. Nothing is read or written. -o json also has the slot groups and
the nodes of the job graph; -o dot draws the graph, for Graphviz.`,
		Example: `  millrace explain job.sql -f ddl/
  millrace explain job.sql -o dot | dot -Tsvg > job.svg`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := e.compileOffline(&job, args, compile.Options{Mode: compile.ModeRun})
			if err != nil {
				return err
			}
			if err := c.Err(); err != nil {
				return err
			}
			x := c.Unit.Explain
			if e.out == dotFormat {
				_, err := e.Stdout.Write([]byte(dot(c.Unit.Name, x.Graph)))
				return err
			}
			groups := slotGroups(x)
			f, err := e.format()
			if err != nil {
				return err
			}
			if f == output.JSON {
				return output.WriteEnvelope(e.Stdout, output.Envelope{Command: commandName(cmd), Ok: true,
					Summary: output.Count(len(x.Lanes), "lane") + ", " + output.Count(len(x.State), "stateful operator"),
					Result:  map[string]any{"plan": x.Text, "lanes": x.Lanes, "slot_groups": groups, "state": x.State, "graph": x.Graph}})
			}
			_, err = fmt.Fprint(e.Stdout, explainText(x))
			return err
		},
	}
	job.register(cmd)
	return cmd
}

// explainText is the plan and, in words, what runs.
func explainText(x *compile.Explain) string {
	var b strings.Builder
	b.WriteString(strings.TrimRight(x.Text, "\n") + "\n\n== Lanes ==\n")
	for _, l := range x.Lanes {
		fmt.Fprintf(&b, "  %s (%s), reads %s\n", l.Table, l.Connector, strings.Join(l.Columns, ", "))
		if l.Watermark != "" {
			fmt.Fprintf(&b, "    watermark %s\n", l.Watermark)
		}
		if len(l.Direct) > 0 {
			fmt.Fprintf(&b, "    writes %s\n", strings.Join(l.Direct, ", "))
		}
		if len(l.Keyed) > 0 {
			fmt.Fprintf(&b, "    feeds %s\n", strings.Join(l.Keyed, ", "))
		}
	}
	if len(x.State) == 0 {
		return b.String()
	}
	b.WriteString("\n== State ==\n")
	for _, s := range x.State {
		fmt.Fprintf(&b, "  %s (%s)", s.Path, s.Kind)
		if s.SinkTable != "" {
			fmt.Fprintf(&b, ", for %s", s.SinkTable)
		}
		b.WriteByte('\n')
		if len(s.Keys) > 0 {
			fmt.Fprintf(&b, "    by %s\n", strings.Join(s.Keys, ", "))
		}
		if s.WindowMs > 0 {
			fmt.Fprintf(&b, "    window of %v\n", time.Duration(s.WindowMs)*time.Millisecond)
		}
		if len(s.Slots) > 0 {
			fmt.Fprintf(&b, "    holds %s\n", strings.Join(s.Slots, ", "))
		}
		if s.Spills {
			b.WriteString("    beyond slot.state-memory on disk\n")
		}
	}
	return b.String()
}

// slotGroup is a group of lanes before any traffic was seen.
type slotGroup struct {
	Group string   `json:"group"`
	Lanes []string `json:"lanes"`
	Why   string   `json:"why"`
}

// slotGroups is the placement at a first start: nothing is known about
// traffic, so all lanes share one group until it is.
func slotGroups(x *compile.Explain) []slotGroup {
	g := slotGroup{Group: "1", Lanes: []string{}, Why: "no traffic seen yet: lanes are packed by their partition counts when the job starts"}
	for _, l := range x.Lanes {
		g.Lanes = append(g.Lanes, l.Table)
	}
	return []slotGroup{g}
}
