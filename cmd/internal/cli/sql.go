package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

func sqlCommand(e *Env) *cobra.Command {
	var job jobFlags
	var queries []string
	var script string
	var q control.Query
	cmd := &cobra.Command{
		Use:   "sql [-e QUERY] [-f FILE]",
		Short: "ask in SQL: topics and what jobs wrote",
		Long: `Runs SQL statements and prints their rows: with -e one text, with -f files, with
--script a file ('-' is stdin), else what is typed, each statement ended by ';'.
Files of -f come before -e and --script: the DDL of the tables. Queries read up to
the present end of their tables.

--job NAME makes the tables of a job known without its DDL.`,
		Example: "  millrace sql --job github-events -e 'SELECT * FROM actor_hour ORDER BY pushes DESC LIMIT 5'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if q.Set, err = job.variables(); err != nil {
				return err
			}
			ddl, err := job.read(nil)
			if err != nil {
				return err
			}
			return e.withAPI(cmd, func(ctx context.Context, api control.API) error {
				switch {
				case len(queries) > 0 && script != "":
					return usage("-e and --script are both given")
				case len(queries) > 0:
					q.Files = append(ddl, control.SQLFile{Name: "-e", Text: strings.Join(queries, ";\n")})
					return e.query(ctx, api, q)
				case script != "":
					f, err := e.readAll(script)
					if err != nil {
						return err
					}
					q.Files = append(ddl, f)
					return e.query(ctx, api, q)
				case len(ddl) > 0:
					q.Files = ddl
					return e.query(ctx, api, q)
				}
				return e.shell(ctx, api, q)
			})
		},
	}
	job.register(cmd)
	cmd.Flags().StringArrayVarP(&queries, "execute", "e", nil, "run this `QUERY` and leave")
	cmd.Flags().StringVar(&script, "script", "", "run `FILE` and leave; - is stdin")
	cmd.Flags().StringVar(&q.Job, "job", "", "know the tables of job `NAME`")
	cmd.Flags().BoolVar(&q.SafeNumbers, "safe-numbers", false, "DECIMAL and BIGINT beyond 2^53 as JSON strings")
	return cmd
}

// query runs a query and prints its results.
func (e *Env) query(ctx context.Context, api control.API, q control.Query) error {
	p := &resultPrinter{e: e}
	err := api.Query(ctx, q, p)
	return errors.Join(err, p.close())
}

// resultPrinter prints results as they come.
type resultPrinter struct {
	e     *Env
	cols  []control.Column
	rows  *output.Rows
	lines *bufio.Writer
	n     int
}

func (p *resultPrinter) Begin(cols []control.Column) error {
	p.cols, p.n = cols, 0
	f, err := p.e.format()
	if err != nil {
		return err
	}
	if f.ForRows(p.e.StdoutTerminal) == output.JSONL {
		p.lines = bufio.NewWriterSize(p.e.Stdout, 64<<10)
		return nil
	}
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = c.Name
	}
	p.rows, err = p.e.rows(names...)
	return err
}

func (p *resultPrinter) Row(object json.RawMessage) error {
	p.n++
	if p.lines != nil {
		p.lines.Write(object)
		return p.lines.WriteByte('\n')
	}
	cells, err := cellsOf(object, p.cols)
	if err != nil {
		return err
	}
	return p.rows.Write(cells...)
}

// Done ends a statement; what it has to say beyond its rows is for people.
func (p *resultPrinter) Done(message string) error {
	if err := p.close(); err != nil {
		return err
	}
	if message != "" {
		p.e.note("%s", message)
	}
	return nil
}

func (p *resultPrinter) close() error {
	var err error
	if p.lines != nil {
		err = p.lines.Flush()
	}
	if p.rows != nil {
		err = errors.Join(err, p.rows.Close())
	}
	p.lines, p.rows = nil, nil
	return err
}

// cellsOf takes an object apart, in the order of its columns. Columns of one
// name are told apart by their order.
func cellsOf(object json.RawMessage, cols []control.Column) ([]output.Cell, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	dec.UseNumber()
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("reading a result row: %w", err)
	}
	cells := make([]output.Cell, 0, len(cols))
	for dec.More() {
		if _, err := dec.Token(); err != nil {
			return nil, fmt.Errorf("reading a result row: %w", err)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, fmt.Errorf("reading a result row: %w", err)
		}
		c := output.Cell{Text: string(raw), JSON: raw}
		switch raw[0] {
		case 'n':
			c = output.Null()
		case '"':
			if err := json.Unmarshal(raw, &c.Text); err != nil {
				return nil, fmt.Errorf("reading a result row: %w", err)
			}
		case '{', '[', 't', 'f':
		default:
			c.Right = true
		}
		cells = append(cells, c)
	}
	for len(cells) < len(cols) {
		cells = append(cells, output.Null())
	}
	return cells, nil
}

// shell reads statements from stdin until its end or \q.
func (e *Env) shell(ctx context.Context, api control.API, q control.Query) (err error) {
	if e.StdoutTerminal {
		fmt.Fprintln(e.Stdout, `Statements end with ';'. \? lists the commands, \q leaves.`)
	}
	s := shellState{e: e, api: api, q: q}
	in, done, err := e.lines(&s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, exitcode.With(exitcode.Environment, done())) }()
	for {
		prompt := "millrace> "
		if s.text != "" {
			prompt = "       -> "
		}
		line, err := in.readLine(prompt)
		if errors.Is(err, io.EOF) {
			if e.StdoutTerminal {
				fmt.Fprintln(e.Stdout)
			}
			break
		}
		if err != nil {
			return exitcode.With(exitcode.Environment, err)
		}
		if s.text == "" && strings.HasPrefix(strings.TrimSpace(line), `\`) {
			if leave := s.command(ctx, strings.TrimSpace(line)); leave {
				return nil
			}
		} else if err := s.line(ctx, line); err != nil {
			return err
		}
	}
	if strings.TrimSpace(s.text) != "" {
		return s.run(ctx, s.text)
	}
	return s.failed
}

// shellState is the statements typed so far: DDL and settings stay.
type shellState struct {
	e      *Env
	api    control.API
	q      control.Query
	ddl    []control.SQLFile
	text   string
	timing bool
	failed error
}

func (s *shellState) command(ctx context.Context, line string) (leave bool) {
	switch fields := strings.Fields(line); fields[0] {
	case `\q`:
		return true
	case `\timing`:
		s.timing = !s.timing
		s.e.note("timing is %s", map[bool]string{true: "on", false: "off"}[s.timing])
	case `\d`:
		stmt := "SHOW TABLES;"
		if len(fields) > 1 {
			stmt = "DESCRIBE " + fields[1] + ";"
		}
		if err := s.run(ctx, stmt); err != nil {
			s.e.note("%v", err)
		}
	case `\?`:
		s.e.note("\\d         tables\n\\d TABLE   the columns of a table\n\\timing    show how long statements take, or no longer\n\\q         leave")
	default:
		s.e.note(`%s: there are \d [TABLE], \timing, \? and \q`, fields[0])
	}
	return false
}

// line adds a line and runs what is complete.
func (s *shellState) line(ctx context.Context, line string) error {
	s.text += line + "\n"
	if !complete(s.text) {
		return nil
	}
	text := s.text
	s.text = ""
	err := s.run(ctx, text)
	if err == nil {
		if keeps(text) {
			s.ddl = append(s.ddl, control.SQLFile{Name: fmt.Sprintf("typed-%d", len(s.ddl)+1), Text: text})
		}
		return nil
	}
	if ctx.Err() != nil || !s.e.StdoutTerminal {
		return err // a script ends at its first fault
	}
	var remote *control.Error
	if errors.As(err, &remote) && remote.Rendered != "" {
		fmt.Fprintln(s.e.Stderr, strings.TrimRight(remote.Rendered, "\n"))
	} else {
		s.e.note("%v", err)
	}
	return nil
}

// complete reports whether the text ends with a semicolon, which must not be
// part of a string, a quoted name or a comment; a comment may follow it.
func complete(text string) bool {
	if !strings.Contains(text, ";") {
		return false
	}
	tokens, faults := syntax.Lex(diag.NewFile("typed", text), syntax.Options{})
	for _, f := range faults {
		switch f.Code {
		case diag.CodeUnterminatedString, diag.CodeUnterminatedName, diag.CodeUnterminatedComment:
			return false
		}
	}
	// The last token is the end.
	if len(tokens) < 2 {
		return false
	}
	last := tokens[len(tokens)-2]
	return last.Kind == syntax.Op && last.Text == ";"
}

// keeps reports statements that later ones build on.
func keeps(text string) bool {
	word := strings.ToUpper(strings.TrimSpace(text))
	return strings.HasPrefix(word, "CREATE") || strings.HasPrefix(word, "SET") || strings.HasPrefix(word, "RESET") || strings.HasPrefix(word, "DROP")
}

func (s *shellState) run(ctx context.Context, text string) error {
	q := s.q
	q.Files = append(append([]control.SQLFile{}, s.ddl...), control.SQLFile{Name: "typed", Text: text})
	start := time.Now()
	err := s.e.query(ctx, s.api, q)
	if s.timing {
		s.e.note("%.3f s", time.Since(start).Seconds())
	}
	return err
}
