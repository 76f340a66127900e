package cli

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/sql/assist"
	"github.com/millrace/millrace/sql/compile"
)

// shellLines gives the shell its lines. io.EOF is the end.
type shellLines interface {
	readLine(prompt string) (string, error)
}

// plainLines reads lines as they come, for scripts.
type plainLines struct {
	in     *bufio.Scanner
	prompt func(string)
}

func (p *plainLines) readLine(prompt string) (string, error) {
	p.prompt(prompt)
	if p.in.Scan() {
		return p.in.Text(), nil
	}
	if err := p.in.Err(); err != nil {
		return "", err
	}
	return "", io.EOF
}

// editedLines reads lines from a person: editing, history, completion by Tab.
type editedLines struct {
	t *term.Terminal
	// raw switches the terminal's own editing off while a line is read, and gives
	// the way back.
	raw func() (restore func() error, err error)
}

func (l *editedLines) readLine(prompt string) (string, error) {
	restore, err := l.raw()
	if err != nil {
		return "", err
	}
	l.t.SetPrompt(prompt)
	line, err := l.t.ReadLine()
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil // a pasted line is a line
	}
	return line, errors.Join(err, restore())
}

// newEditedLines makes an editor over a terminal's two directions.
func newEditedLines(rw io.ReadWriter, width, height int, raw func() (func() error, error), h *history, complete func(line string, pos int) assist.Completion) *editedLines {
	t := term.NewTerminal(rw, "")
	if width > 0 && height > 0 {
		_ = t.SetSize(width, height) // the default serves as well
	}
	t.History = h
	t.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' {
			return "", 0, false
		}
		c := complete(line, pos)
		if len(c.Items) == 0 || c.Start < 0 || c.Start > pos {
			return line, pos, true
		}
		word := c.Items[0].Insert
		if len(c.Items) > 1 {
			word = commonPrefix(c.Items)
			if len(word) <= pos-c.Start {
				_, _ = io.WriteString(t, listed(c.Items)) // the terminal is gone: ReadLine says so
				return line, pos, true
			}
		}
		return line[:c.Start] + word + line[pos:], c.Start + len(word), true
	}
	return &editedLines{t: t, raw: raw}
}

// commonPrefix is what all items begin with.
func commonPrefix(items []assist.Item) string {
	p := items[0].Insert
	for _, it := range items[1:] {
		for !strings.HasPrefix(it.Insert, p) {
			p = p[:len(p)-1]
		}
	}
	return strings.ToValidUTF8(p, "")
}

// listed is some items for people.
func listed(items []assist.Item) string {
	const most = 60
	var labels []string
	for i, it := range items {
		if i == most {
			labels = append(labels, "...")
			break
		}
		labels = append(labels, it.Label)
	}
	return strings.Join(labels, "  ") + "\n"
}

// shellComplete completes a line of the shell behind the statements before it.
func (s *shellState) complete(o compile.Options, line string, pos int) assist.Completion {
	if s.text == "" && strings.HasPrefix(strings.TrimSpace(line), `\`) {
		return assist.Completion{}
	}
	var files []compile.Source
	for _, list := range [][]control.SQLFile{s.q.Files, s.ddl} {
		for _, f := range list {
			files = append(files, compile.Source{Name: f.Name, Text: f.Text})
		}
	}
	files = append(files, compile.Source{Name: "typed", Text: s.text + line})
	c, err := assist.Complete(files, "typed", len(s.text)+pos, o)
	if err != nil {
		return assist.Completion{} // no reason to disturb who types
	}
	c.Start -= len(s.text)
	return c
}

// history is the lines typed, newest last, also in a file that its owner alone
// may read. It implements term.History.
type history struct {
	lines []string
	path  string // "" keeps none
}

// historyLines bounds the history.
const historyLines = 1000

// historyPath is where the lines are kept: XDG's folder for state.
func (e *Env) historyPath() string {
	if dir, ok := e.LookupEnv("XDG_STATE_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "millrace", "sql_history")
	}
	if home, ok := e.LookupEnv("HOME"); ok && filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "millrace", "sql_history")
	}
	return ""
}

// openHistory reads the history; without one it starts empty.
func openHistory(path string) *history {
	h := &history{path: path}
	b, err := os.ReadFile(path)
	if err != nil {
		return h
	}
	h.lines = strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	h.lines = h.lines[max(0, len(h.lines)-historyLines):]
	return h
}

// Add implements term.History.
func (h *history) Add(line string) {
	if strings.TrimSpace(line) == "" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	h.lines = h.lines[max(0, len(h.lines)-historyLines):]
}

// Len implements term.History.
func (h *history) Len() int { return len(h.lines) }

// At implements term.History: 0 is the newest.
func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }

// save writes the file anew.
func (h *history) save() error {
	if h.path == "" || len(h.lines) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(h.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(h.lines, "\n") + "\n")
	return errors.Join(err, f.Chmod(0o600), f.Close())
}

// lines is how the shell reads: edited where a person types, else plainly. done
// must be called.
func (e *Env) lines(s *shellState) (r shellLines, done func() error, err error) {
	stdin, ok := e.Stdin.(*os.File)
	if !ok || !e.StdoutTerminal || !term.IsTerminal(int(stdin.Fd())) {
		in := bufio.NewScanner(e.Stdin)
		in.Buffer(nil, 16<<20)
		prompt := func(p string) {
			if e.StdoutTerminal {
				_, _ = io.WriteString(e.Stdout, p) // a closed stdout shows at the first result
			}
		}
		return &plainLines{in: in, prompt: prompt}, func() error { return nil }, nil
	}
	registry, err := connectors(nil, nil)
	if err != nil {
		return nil, nil, err
	}
	fd := int(stdin.Fd())
	raw := func() (func() error, error) {
		state, err := term.MakeRaw(fd)
		return func() error { return term.Restore(fd, state) }, err
	}
	o := compile.Options{Registry: registry, Functions: e.Functions.Extra(), Vars: e.vars(s.q.Set)}
	h := openHistory(e.historyPath())
	_, height, err := term.GetSize(fd)
	if err != nil {
		height = 24
	}
	rw := struct {
		io.Reader
		io.Writer
	}{stdin, e.Stdout}
	return newEditedLines(rw, e.Width, height, raw, h, func(line string, pos int) assist.Completion { return s.complete(o, line, pos) }), h.save, nil
}
