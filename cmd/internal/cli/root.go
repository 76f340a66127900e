package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/jobs/control"
)

// DefaultData is --data when nothing else is said.
const DefaultData = "./millrace-data"

// Root is the whole command tree.
func Root(e *Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "millrace",
		Short: "JSON topics into exactly-once tables, by SQL, from one binary",
		Long: `Millrace turns topics of JSON into tables: an embedded log store, SQL job files,
and sinks that commit with the offsets they hold, so that nothing is lost or
doubled after any crash.

Start here:  millrace demo`,
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return e.settings(cmd) },
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(e.Stdout)
	root.SetErr(e.Stderr)
	f := root.PersistentFlags()
	f.StringVar(&e.data, "data", DefaultData, "`DIR` of the embedded log and the jobs' state")
	f.StringVarP(&e.out, "output", "o", "", "`FORMAT` of the result: table, wide, json, jsonl, csv")
	f.StringVarP(&e.config, "config", "c", "", "configuration `FILE`; ./"+ConfigFile+" where there is one")
	f.StringVar(&e.progress, "progress", "auto", "`HOW` progress is shown on stderr: auto, bar, plain, json, none")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exitcode.With(exitcode.Input, flagError(cmd, err))
	})
	root.AddGroup(&cobra.Group{ID: "daily", Title: "Every day:"}, &cobra.Group{ID: "things", Title: "Topics, jobs and what they wrote:"})
	for group, commands := range map[string][]*cobra.Command{
		"daily":  {demoCommand(e), checkCommand(e), explainCommand(e), explainErrorCommand(e), previewCommand(e), runCommand(e), serverCommand(e), sqlCommand(e), fmtCommand(e), lspCommand(e), testCommand(e)},
		"things": {topicsCommand(e), groupsCommand(e), jobsCommand(e), deadCommand(e), tablesCommand(e), ledgerCommand(e), fileCommand(e), logCommand(e), usersCommand(e), aclsCommand(e), quotasCommand(e), connectorsCommand(e)},
		"":       {versionCommand(e), docsCommand(e)},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Short = "help about a command"
		}
	}
	strict(root)
	return root
}

// strict makes wrong numbers of arguments and unknown sub-verbs input errors
// that name the nearest one.
func strict(cmd *cobra.Command) {
	cmd.SuggestionsMinimumDistance = 2
	for _, c := range cmd.Commands() {
		strict(c)
	}
	if args := cmd.Args; args != nil {
		cmd.Args = func(cmd *cobra.Command, a []string) error {
			err := args(cmd, a)
			if err != nil && cmd.HasSubCommands() && len(a) > 0 {
				err = fmt.Errorf("unknown command %q for %q", a[0], cmd.CommandPath())
				if s := cmd.SuggestionsFor(a[0]); len(s) > 0 {
					err = fmt.Errorf("%w; did you mean %q?", err, s[0])
				}
			}
			if err != nil && !cmd.HasSubCommands() {
				err = fmt.Errorf("%s given; usage: %s", output.Count(len(a), "argument"), cmd.UseLine())
			}
			return exitcode.With(exitcode.Input, err)
		}
	}
}

// flagError adds the nearest flag to an unknown one.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		best := ""
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if best == "" && strings.HasPrefix(f.Name, unknown.GetSpecifiedName()[:1]) {
				best = f.Name
			}
		})
		if best != "" {
			return fmt.Errorf("%w; see %s --help (is it --%s?)", err, cmd.CommandPath(), best)
		}
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}

// fromEnvironment fills flags that were not given from MILLRACE_<FLAG>.
func (e *Env) fromEnvironment(cmd *cobra.Command) error {
	var first error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || first != nil || f.Name == "help" {
			return
		}
		name := "MILLRACE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if v, ok := e.LookupEnv(name); ok {
			if err := cmd.Flags().Set(f.Name, v); err != nil {
				first = usage("%s: %v", name, err)
			}
		}
	})
	return first
}

// Run executes a command line and returns the process's exit code.
func Run(ctx context.Context, e *Env, args []string) exitcode.Code {
	root := Root(e)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitcode.OK
	}
	code := exitCodeOf(err)
	if !exitcode.IsSilent(err) {
		e.printError(cmd, code, err)
	}
	return code
}

// exitCodeOf also knows how the owner classified an error that crossed the
// socket.
func exitCodeOf(err error) exitcode.Code {
	var remote *control.Error
	if errors.As(err, &remote) {
		switch remote.Kind {
		case "input", "not_found":
			return exitcode.Input
		case "environment":
			return exitcode.Environment
		}
		return exitcode.Failed
	}
	return exitcode.Of(err)
}

// printError prints an error: the envelope on stdout with -o json, else a
// sentence (or rendered diagnostics) on stderr.
func (e *Env) printError(cmd *cobra.Command, code exitcode.Code, err error) {
	hint := ""
	var remote *control.Error
	if errors.As(err, &remote) {
		hint = remote.Hint
	}
	if e.out == string(output.JSON) {
		kinds := map[exitcode.Code]string{exitcode.Failed: "failed", exitcode.Input: "invalid_input", exitcode.Environment: "environment", exitcode.Partial: "partial"}
		_ = output.WriteEnvelope(e.Stdout, output.Envelope{Command: commandName(cmd), Summary: err.Error(),
			Error: &output.Failure{Code: kinds[code], Message: err.Error(), Hint: hint}}) // stdout is gone: the code still tells
		return
	}
	if remote != nil && remote.Rendered != "" {
		fmt.Fprintln(e.Stderr, strings.TrimRight(remote.Rendered, "\n"))
		return
	}
	fmt.Fprintf(e.Stderr, "millrace: %v\n", err)
	if hint != "" {
		fmt.Fprintf(e.Stderr, "help: %s\n", hint)
	}
}
