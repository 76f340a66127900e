package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/connectors/all"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/storage/client"
	"github.com/millrace/millrace/storage/vfs"
)

// connectors is the registry of this program.
func connectors(log *client.Client, fsys vfs.FS) (*connector.Registry, error) {
	return all.Registry(all.Deps{Log: log, FS: fsys})
}

// connectors is the registry of a program that owns its data directory.
func (e *Env) connectors(log *client.Client, fsys vfs.FS) (*connector.Registry, error) {
	return all.Registry(all.Deps{Log: log, FS: fsys, StagingDir: filepath.Join(e.data, "staging")})
}

func connectorsCommand(e *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "connectors",
		Short: "the systems that tables can lie in, and their options",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		&cobra.Command{Use: "ls", Short: "list connectors", Example: "  millrace connectors ls", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			return e.connectorsLs(cmd)
		}},
		&cobra.Command{Use: "describe NAME", Short: "a connector's options, types and guarantee", Example: "  millrace connectors describe filesystem", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
			return e.connectorsDescribe(cmd, args[0])
		}},
	)
	return cmd
}

func (e *Env) connectorsLs(cmd *cobra.Command) error {
	reg, err := connectors(nil, nil)
	if err != nil {
		return err
	}
	var list []map[string]any
	for _, name := range reg.Names() {
		c, _ := reg.Lookup(name)
		s := c.Spec()
		list = append(list, map[string]any{"connector": s.Name, "source": s.Source, "sink": s.Sink, "formats": formatNames(s), "summary": s.Summary})
	}
	return e.result(cmd, output.Count(len(list), "connector"), map[string]any{"connectors": list}, func(r *output.Rows) error {
		for _, c := range list {
			if err := r.Write(output.Text(c["connector"].(string)), output.Text(yes(c["source"].(bool))), output.Text(yes(c["sink"].(bool))),
				output.Text(strings.Join(c["formats"].([]string), ", ")), output.Text(c["summary"].(string))); err != nil {
				return err
			}
		}
		return nil
	}, "CONNECTOR", "SOURCE", "SINK", "FORMATS", "WHAT")
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "-"
}

func formatNames(s *connector.Spec) []string {
	names := []string{}
	for _, f := range s.Formats {
		names = append(names, f.Name)
	}
	return names
}

func (e *Env) connectorsDescribe(cmd *cobra.Command, name string) error {
	reg, err := connectors(nil, nil)
	if err != nil {
		return err
	}
	c, ok := reg.Lookup(name)
	if !ok {
		err := fmt.Errorf("there is no connector %q", name)
		if name == "hdfs" {
			return exitcode.With(exitcode.Input, fmt.Errorf("%w: tables in HDFS are of 'connector' = 'filesystem' with an hdfs:// path, or of 'hive'; see: millrace connectors describe filesystem", err))
		}
		if near, ok := diag.Nearest(name, reg.Names()); ok {
			err = fmt.Errorf("%w; did you mean %q?", err, near)
		}
		return exitcode.With(exitcode.Input, err)
	}
	s := c.Spec()
	if e.out == string(output.JSON) {
		return e.done(cmd, s.Summary, describeSpec(s))
	}
	_, err = fmt.Fprint(e.Stdout, connectorPage(s))
	return err
}

type optionJSON struct {
	Key      string   `json:"key"`
	Type     string   `json:"type"`
	Default  string   `json:"default,omitempty"`
	Required bool     `json:"required,omitempty"`
	Values   []string `json:"values,omitempty"`
	Doc      string   `json:"doc"`
}

func describeSpec(s *connector.Spec) map[string]any {
	opts := func(list []connector.Option) []optionJSON {
		out := []optionJSON{}
		for _, o := range list {
			out = append(out, optionJSON{o.Key, optionType(o.Type), o.Default, o.Required, o.Enum, o.Doc})
		}
		return out
	}
	formats := map[string]any{}
	for _, f := range s.Formats {
		formats[f.Name] = opts(f.Options)
	}
	return map[string]any{"connector": s.Name, "summary": s.Summary, "source": s.Source, "sink": s.Sink, "lookup": s.Lookup, "guarantee": s.Guarantee,
		"options": opts(s.Options), "formats": formats, "metadata": s.Metadata}
}

func optionType(t connector.OptionType) string {
	return [...]string{"string", "true or false", "integer", "number", "duration", "size", "one of", "list separated by ;"}[t]
}

// connectorPage is a connector's documentation page, in Markdown.
func connectorPage(s *connector.Spec) string {
	var b strings.Builder
	kind := "source and sink"
	switch {
	case s.Source && !s.Sink:
		kind = "source"
	case s.Sink && !s.Source:
		kind = "sink"
	}
	if s.Lookup {
		kind += ", lookup joins"
	}
	fmt.Fprintf(&b, "# Connector `%s` (%s)\n\n%s\n", s.Name, kind, s.Summary)
	if s.Doc != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(s.Doc))
	}
	if s.Guarantee != "" {
		fmt.Fprintf(&b, "\n**Guarantee.** %s\n", s.Guarantee)
	}
	table := func(title, doc string, opts []connector.Option) {
		if len(opts) == 0 {
			return
		}
		if doc != "" {
			doc = "\n" + strings.TrimSpace(doc) + "\n"
		}
		fmt.Fprintf(&b, "\n## %s\n%s\n| option | type | default | |\n|---|---|---|---|\n", title, doc)
		for _, o := range opts {
			typ := optionType(o.Type)
			if o.Type == connector.OptEnum {
				typ = "`" + strings.Join(o.Enum, "`, `") + "`"
			}
			def := "`" + o.Default + "`"
			if o.Default == "" {
				def = ""
			}
			if o.Required {
				def = "required"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", o.Key, typ, def, strings.ReplaceAll(o.Doc, "|", `\|`))
		}
	}
	table("Options", "", s.Options)
	if len(s.Metadata) > 0 {
		b.WriteString("\n## Metadata columns\n\n| METADATA FROM | type | writable | |\n|---|---|---|---|\n")
		for _, m := range s.Metadata {
			fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", m.Key, m.Type, yes(m.Writable), m.Doc)
		}
	}
	for _, f := range s.Formats {
		table("Format `"+f.Name+"`", f.Doc, f.Options)
	}
	return b.String()
}
