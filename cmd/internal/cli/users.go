package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/storage/authn"
)

func usersCommand(e *Env) *cobra.Command {
	var cf clusterFlags
	cmd := &cobra.Command{
		Use:   "users",
		Short: "who may log in to the log's Kafka protocol",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cf.add(cmd)
	cmd.AddCommand(usersLs(e, &cf), usersSet(e, &cf, true), usersSet(e, &cf, false), usersRm(e, &cf))
	return cmd
}

func usersLs(e *Env, cf *clusterFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "list users with how they log in",
		Example: "  millrace users ls",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withAccess(cmd, cf, func(ctx context.Context, a control.Access) error {
				users, err := a.Users(ctx)
				if err != nil {
					return err
				}
				return e.result(cmd, output.Count(len(users), "user"), map[string]any{"users": users}, func(r *output.Rows) error {
					for _, u := range users {
						for _, m := range u.Mechanisms {
							if err := r.Write(output.Text(u.Name), output.Text(m.Mechanism), output.Number(m.Iterations)); err != nil {
								return err
							}
						}
					}
					return nil
				}, "USER", "MECHANISM", "ITERATIONS")
			})
		},
	}
}

// usersSet is create or alter.
func usersSet(e *Env, cf *clusterFlags, create bool) *cobra.Command {
	req := control.SetUser{New: create}
	var file string
	cmd := &cobra.Command{
		Use:   "alter USER",
		Short: "give a user another password",
		Long: `Sets a user's password, for the mechanisms that it has or for those that are named.
The password is read from stdin, or from a file; never from the command line.`,
		Example: "  millrace users alter ann < password.txt",
		Args:    cobra.ExactArgs(1),
	}
	if create {
		cmd.Use, cmd.Short = "create USER", "make a user"
		cmd.Long = `Makes a user that can log in by SCRAM-SHA-256 and SCRAM-SHA-512, or by the mechanisms
that are named. PLAIN sends the password to the server, so it has to be asked for:
such a user can then be used by clients that know no SCRAM, over TLS.
The password is read from stdin, or from a file; never from the command line. Only
keys that are derived from it are stored.`
		cmd.Example = "  millrace users create ann < password.txt\n  millrace users create old --mechanism PLAIN --password-file password.txt"
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		req.Name = args[0]
		if create && len(req.Mechanisms) == 0 {
			req.Mechanisms = []string{authn.ScramSHA256.String(), authn.ScramSHA512.String()}
		}
		for _, m := range req.Mechanisms {
			if _, err := authn.ParseMechanism(m); err != nil {
				return usage("--mechanism: %v", err)
			}
		}
		password, err := e.password(file)
		if err != nil {
			return err
		}
		req.Password = password
		return e.withAccess(cmd, cf, func(ctx context.Context, a control.Access) error {
			u, err := a.SetUser(ctx, req)
			if err != nil {
				return err
			}
			return e.done(cmd, fmt.Sprintf("user %s logs in by %s", u.Name, strings.Join(namesOf(u), ", ")), u)
		})
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&req.Mechanisms, "mechanism", nil, "`NAME` of a way to log in: SCRAM-SHA-256, SCRAM-SHA-512 or PLAIN; may be repeated")
	fl.IntVar(&req.Iterations, "iterations", authn.DefaultIterations, fmt.Sprintf("hash the password `N` times, %d to %d", authn.MinIterations, authn.MaxIterations))
	fl.StringVar(&file, "password-file", "", "read the password from `FILE`, its first line")
	return cmd
}

// password reads one line: from a file, from a person who is not shown it, or from
// stdin.
func (e *Env) password(file string) (control.Secret, error) {
	in := e.Stdin
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return "", exitcode.With(exitcode.Input, err)
		}
		defer f.Close()
		in = f
	}
	var line []byte
	var err error
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(e.Stderr, "Password: ")
		line, err = term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(e.Stderr)
	} else {
		line, err = io.ReadAll(io.LimitReader(in, 64<<10))
	}
	if err != nil {
		return "", exitcode.With(exitcode.Environment, fmt.Errorf("reading the password: %w", err))
	}
	line, rest, _ := bytes.Cut(line, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	switch {
	case len(line) == 0:
		return "", usage("the password is empty: give it on stdin, or by --password-file")
	case len(bytes.TrimSpace(rest)) > 0:
		return "", usage("the password has more than one line")
	}
	return control.Secret(line), nil
}

func usersRm(e *Env, cf *clusterFlags) *cobra.Command {
	var req control.RemoveUser
	var yes bool
	cmd := &cobra.Command{
		Use:   "rm USER --yes",
		Short: "remove a user, or one of its ways to log in",
		Long: `Removes a user's credentials. Who is logged in stays so until the connection ends or
its login is over (server --kafka-session). Access rules of the user are kept.`,
		Example: "  millrace users rm ann --yes",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if req.Name = args[0]; !yes {
				return usage("this removes user %s; say --yes", req.Name)
			}
			return e.withAccess(cmd, cf, func(ctx context.Context, a control.Access) error {
				if err := a.RemoveUser(ctx, req); err != nil {
					return err
				}
				return e.done(cmd, "user "+req.Name+" is removed", map[string]string{"user": req.Name})
			})
		},
	}
	cmd.Flags().StringVar(&req.Mechanism, "mechanism", "", "only the credential for `NAME`")
	cmd.Flags().BoolVar(&yes, "yes", false, "yes, remove it")
	return cmd
}
