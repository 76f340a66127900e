package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/node"
	"github.com/millrace/millrace/jobs/userfunc"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// Env is what commands share: the streams, the clock, the global flags.
type Env struct {
	Version string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// StdoutTerminal and StderrTerminal say whether people are watching.
	StdoutTerminal, StderrTerminal bool
	// Width and StderrWidth are the terminal's width, 0 when stdout or stderr
	// is none.
	Width, StderrWidth int
	Now                func() time.Time
	// LookupEnv is os.LookupEnv.
	LookupEnv func(string) (string, bool)
	// FS is where the data directory and local tables lie; nil: the operating
	// system's.
	FS vfs.FS
	// Functions are the program's own functions; nil: none.
	Functions *userfunc.Set

	data     string
	out      string
	progress string
	config   string

	mu       sync.Mutex // jobs report from goroutines of their own
	barShown bool       // a progress line stands on stderr
}

// NewEnv is the environment of this process.
func NewEnv(version string) *Env {
	e := &Env{
		Version: version, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdoutTerminal: output.IsTerminal(os.Stdout), StderrTerminal: output.IsTerminal(os.Stderr),
		Now: time.Now, LookupEnv: os.LookupEnv,
	}
	if e.StdoutTerminal {
		e.Width = output.Width(os.Stdout, 80)
	}
	if e.StderrTerminal {
		e.StderrWidth = output.Width(os.Stderr, 80)
	}
	return e
}

// format is the value of -o.
func (e *Env) format() (output.Format, error) {
	f, err := output.ParseFormat(e.out)
	return f, exitcode.With(exitcode.Input, err)
}

// rows starts a stream of rows on stdout.
func (e *Env) rows(columns ...string) (*output.Rows, error) {
	f, err := e.format()
	if err != nil {
		return nil, err
	}
	return output.NewRows(e.Stdout, f.ForRows(e.StdoutTerminal), e.Width, columns...), nil
}

// note prints a line for people to stderr, in place of the progress line that
// may stand there.
func (e *Env) note(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clearBar()
	fmt.Fprintf(e.Stderr, format+"\n", args...)
}

// bar rewrites the progress line.
func (e *Env) bar(line string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.StderrWidth > 1 {
		line = runewidth.Truncate(line, e.StderrWidth-1, "…")
	}
	fmt.Fprintf(e.Stderr, "\r\x1b[K%s", line)
	e.barShown = true
}

// noBar takes the progress line away.
func (e *Env) noBar() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clearBar()
}

// clearBar is noBar with mu held.
func (e *Env) clearBar() {
	if e.barShown {
		fmt.Fprint(e.Stderr, "\r\x1b[K")
		e.barShown = false
	}
}

// api is the owner of the data directory: another process where there is one,
// else this one. close must be called.
func (e *Env) api(ctx context.Context, command string) (api control.API, close func() error, err error) {
	use := func() error {
		c, err := control.Dial(ctx, e.data)
		if err == nil {
			api, close = c, func() error { c.Close(); return nil }
		}
		return err
	}
	err = e.whileOwnedBriefly(ctx, func() error {
		err := use()
		if !errors.Is(err, control.ErrNoOwner) {
			return err
		}
		n, err := e.openOnce(ctx, command, e.connectors, topiclog.Options{}, true)
		if err == nil {
			api, close = n, n.Close
			return nil
		}
		var owned *node.OwnedError
		if errors.As(err, &owned) && use() == nil {
			return nil // another process became the owner in between
		}
		return err
	})
	return api, close, err
}

// open makes this process the owner of the data directory.
func (e *Env) open(ctx context.Context, command string) (*node.Node, error) {
	return e.openWith(ctx, command, e.connectors, topiclog.Options{})
}

// openWith is open with other connectors and options of the log store.
func (e *Env) openWith(ctx context.Context, command string, cs node.Connectors, store topiclog.Options) (n *node.Node, err error) {
	err = e.whileOwnedBriefly(ctx, func() (err error) {
		n, err = e.openOnce(ctx, command, cs, store, false)
		return err
	})
	return n, err
}

// openOnce fails with an OwnedError where another process is the owner.
func (e *Env) openOnce(ctx context.Context, command string, cs node.Connectors, store topiclog.Options, brief bool) (*node.Node, error) {
	n, err := node.Open(ctx, node.Options{
		Dir: e.data, Version: e.Version, Command: command, Connectors: cs, Now: e.Now, FS: e.FS, Brief: brief, Functions: e.Functions, Store: store,
	})
	var owned *node.OwnedError
	if errors.As(err, &owned) {
		return nil, exitcode.With(exitcode.Environment, err)
	}
	if err != nil {
		return nil, exitcode.With(exitcode.Environment, fmt.Errorf("opening the data directory %s: %w", e.data, err))
	}
	return n, nil
}

const (
	// briefly is how long a command waits for an owner that is about to end, such as
	// `jobs ls` that opened the directory for itself, or about to serve.
	briefly      = 5 * time.Second
	brieflyPause = 10 * time.Millisecond
)

// whileOwnedBriefly calls try again while it fails because of an owner of a moment,
// so that two commands at the same moment do not fail each other.
func (e *Env) whileOwnedBriefly(ctx context.Context, try func() error) error {
	until := time.Now().Add(briefly)
	for {
		err := try()
		var owned *node.OwnedError
		if !errors.As(err, &owned) || time.Now().After(until) || e.ownedToStay(ctx) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(brieflyPause):
		}
	}
}

// ownedToStay reports whether the owner serves and does not end by itself.
func (e *Env) ownedToStay(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	c, err := control.Dial(ctx, e.data)
	if err != nil {
		return false
	}
	defer c.Close()
	info, err := c.Info(ctx)
	return err == nil && !info.Brief
}

// withAPI runs f with the owner of the data directory.
func (e *Env) withAPI(cmd *cobra.Command, f func(context.Context, control.API) error) error {
	api, done, err := e.api(cmd.Context(), cmd.CommandPath())
	if err != nil {
		return err
	}
	err = f(cmd.Context(), api)
	return errors.Join(err, done())
}

// result prints the outcome of a one-shot verb: the envelope with -o json,
// else what human prints.
func (e *Env) result(cmd *cobra.Command, summary string, result any, human func(*output.Rows) error, columns ...string) error {
	f, err := e.format()
	if err != nil {
		return err
	}
	switch f {
	case output.JSON:
		return output.WriteEnvelope(e.Stdout, output.Envelope{Command: commandName(cmd), Ok: true, Summary: summary, Result: result})
	}
	rows := output.NewRows(e.Stdout, f.ForResult(), e.Width, columns...)
	if err := human(rows); err != nil {
		return err
	}
	return rows.Close()
}

// done prints the outcome of a verb that has nothing but a sentence to say.
func (e *Env) done(cmd *cobra.Command, summary string, result any) error {
	f, err := e.format()
	if err != nil {
		return err
	}
	if f == output.JSON {
		return output.WriteEnvelope(e.Stdout, output.Envelope{Command: commandName(cmd), Ok: true, Summary: summary, Result: result})
	}
	_, err = fmt.Fprintln(e.Stdout, summary)
	return err
}

// commandName is the command's path without the program: "topics ls".
func commandName(cmd *cobra.Command) string {
	_, name, _ := strings.Cut(cmd.CommandPath(), " ")
	return name
}

// usage is an error in the command line's own words.
func usage(format string, args ...any) error {
	return exitcode.With(exitcode.Input, fmt.Errorf(format, args...))
}
