package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

func fmtCommand(e *Env) *cobra.Command {
	var check, write bool
	cmd := &cobra.Command{
		Use:   "fmt PATH...",
		Short: "format SQL files; every comment stays",
		Long: `Formats SQL files: reserved words in upper case, no white space at line ends, no
two blank lines in a row, one line end at the end of the file. Comments, line
breaks and indentation stay as they are, and so does what the file means. A path
is a file, a folder, dir/... for a whole tree, or - for stdin.

The result goes to stdout; --write changes the files instead, --check only lists
those that would change and exits 1 when there are any. A file with syntax
errors is not touched: exit 2.`,
		Example: `  millrace fmt --write jobs/...
  millrace fmt --check job.sql ddl/
  millrace fmt - < job.sql`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if check && write {
				return usage("--check and --write exclude each other")
			}
			sources, err := e.formatSources(args)
			if err != nil {
				return err
			}
			if write && sources[0].name == "-" {
				return usage("--write cannot change stdin; without it the result goes to stdout")
			}
			return e.formatFiles(cmd, sources, check, write)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "list the files that are not formatted and exit 1")
	cmd.Flags().BoolVarP(&write, "write", "w", false, "change the files instead of printing the result")
	return cmd
}

// formatSource is a file to format; stdin's name is "-".
type formatSource struct{ name, text string }

// formatSources reads what the arguments name.
func (e *Env) formatSources(args []string) ([]formatSource, error) {
	var out []formatSource
	seen := map[string]bool{}
	for _, a := range args {
		names := []string{a}
		if a == "-" && len(args) > 1 {
			return nil, usage("- stands alone")
		}
		if a != "-" {
			var err error
			if names, err = sqlFiles(a); err != nil {
				return nil, err
			}
		}
		for _, name := range names {
			if seen[name] {
				continue
			}
			seen[name] = true
			f, err := e.readAll(name)
			if err != nil {
				return nil, err
			}
			out = append(out, formatSource{name, f.Text})
		}
	}
	return out, nil
}

func (e *Env) formatFiles(cmd *cobra.Command, sources []formatSource, check, write bool) error {
	formatted := make([]string, len(sources))
	var findings diag.List
	for i, s := range sources {
		name := s.name
		if name == "-" {
			name = "stdin"
		}
		text, errs := syntax.Format(diag.NewFile(name, s.text))
		formatted[i] = text
		findings.Add(errs...)
	}
	if findings.HasErrors() {
		if e.out != string(output.JSON) {
			if err := (diag.Renderer{Width: e.Width, Color: e.StderrTerminal}).Render(e.Stderr, findings); err != nil {
				return err
			}
			return exitcode.Printed(exitcode.Input, errors.New("syntax errors"))
		}
		summary := output.Count(findings.Count(diag.Error), "error")
		if err := output.WriteEnvelope(e.Stdout, output.Envelope{Command: commandName(cmd), Summary: summary, Result: map[string]any{"findings": findings}}); err != nil {
			return err
		}
		return exitcode.Printed(exitcode.Input, errors.New(summary))
	}
	changed := []string{}
	for i, s := range sources {
		if formatted[i] == s.text {
			continue
		}
		changed = append(changed, s.name)
		if write {
			if err := replaceFile(s.name, formatted[i]); err != nil {
				return exitcode.With(exitcode.Environment, err)
			}
		}
	}
	if !check && !write {
		if e.out == string(output.JSON) {
			return usage("fmt prints SQL; -o json goes with --check or --write")
		}
		_, err := fmt.Fprint(e.Stdout, strings.Join(formatted, ""))
		return err
	}
	return e.formatReport(cmd, len(sources), changed, check)
}

// formatReport lists the files that changed or would.
func (e *Env) formatReport(cmd *cobra.Command, all int, changed []string, check bool) error {
	summary := fmt.Sprintf("%d of %s formatted", len(changed), output.Count(all, "file"))
	bad := check && len(changed) > 0
	if check {
		summary = fmt.Sprintf("%d of %s not formatted", len(changed), output.Count(all, "file"))
	}
	if e.out == string(output.JSON) {
		if err := output.WriteEnvelope(e.Stdout, output.Envelope{Command: commandName(cmd), Ok: !bad, Summary: summary, Result: map[string]any{"files": changed}}); err != nil {
			return err
		}
	} else {
		for _, name := range changed {
			fmt.Fprintln(e.Stdout, name)
		}
		e.note("%s", summary)
	}
	if bad {
		return exitcode.Printed(exitcode.Failed, errors.New(summary))
	}
	return nil
}

// replaceFile changes a file's text at once, so that a crash leaves the old or
// the new one. Links are followed and the permissions stay.
func replaceFile(name, text string) error {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(real), "."+filepath.Base(real)+".*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), real)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
