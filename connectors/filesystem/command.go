package filesystem

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/millrace/millrace/runtime/connector"
)

// command is a program that is run for each partition that is announced.
type command struct {
	words   []string
	timeout time.Duration
}

// outputBytes is how much of a command's output an error shows, from its end.
const outputBytes = 2048

// commandGrace is how long what a command has left running may hold its output.
const commandGrace = time.Second

// placeholder is what looks like one; {"a": 1} does not.
var placeholder = regexp.MustCompile(`\{[A-Za-z_-]+\}`)

// placeholders are what words of a command may name.
func placeholders() []string {
	return []string{"{job}", "{database}", "{table}", "{partition}", "{location}"}
}

// splitCommand splits a command into words at blanks; quotes, '...' or "...", hold a
// word together. No shell is involved.
func splitCommand(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	begun, quote := false, rune(0)
	for _, r := range s {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && (r == ' ' || r == '\t' || r == '\n' || r == '\r'):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed", quote)
	}
	if begun {
		words = append(words, word.String())
	}
	if len(words) == 0 || words[0] == "" {
		return nil, errors.New("it names no program")
	}
	return words, nil
}

func checkCommand(s string) error {
	words, err := splitCommand(s)
	if err != nil {
		return err
	}
	for i, w := range words {
		for _, p := range placeholder.FindAllString(w, -1) {
			if i == 0 {
				return fmt.Errorf("%s: the program is fixed; only its arguments may name the partition", p)
			}
			if !slices.Contains(placeholders(), p) {
				return &connector.WordError{Word: p, Among: placeholders()}
			}
		}
	}
	return nil
}

// CommandError is a command that did not announce a partition.
type CommandError struct {
	Program string
	// Reason is how it ended: "exit code 3".
	Reason string
	// Output is the end of what it wrote, to stdout and stderr.
	Output string
	// Final: trying again would not help.
	Final bool
}

func (e *CommandError) Error() string {
	s := "command " + e.Program + ": " + e.Reason
	if e.Output != "" {
		s += fmt.Sprintf("; its output ends with %q", e.Output)
	}
	return s
}

// Retryable implements connector.Retryable.
func (e *CommandError) Retryable() bool { return !e.Final }

// finalCodes are exit codes that say that no later try will be different: by
// sysexits.h wrong usage (64) and configuration (78), by the shell a program that
// cannot be executed (126) or found (127).
var finalCodes = map[int]bool{64: true, 78: true, 126: true, 127: true}

// run runs the command for a partition, and waits for its end. lock is the path of the
// lock that one run of it at a time holds.
func (c *command) run(ctx context.Context, job, lock string, p *connector.PartitionFacts) error {
	with := strings.NewReplacer("{job}", job, "{database}", p.Database, "{table}", p.Table, "{partition}", p.TablePartition, "{location}", p.Location)
	args := make([]string, 0, len(c.words))
	for _, w := range c.words[1:] {
		args = append(args, with.Replace(w))
	}
	values, err := json.Marshal(p.ValueMap())
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	held, holder, err := takeLock(limited, lock)
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil && limited.Err() != nil:
		return &CommandError{Program: c.words[0], Reason: fmt.Sprintf("a run of it that a crash left behind, process group %s, has not ended after %s", holder, c.timeout)}
	case err != nil:
		return &CommandError{Program: c.words[0], Reason: err.Error()}
	}
	defer giveBack(held)
	x := exec.CommandContext(limited, c.words[0], args...)
	x.Env = environment(os.Environ(), job, p, string(values))
	var out tail
	x.Stdout, x.Stderr = &out, &out
	x.ExtraFiles = []*os.File{held}
	var done func()
	x.SysProcAttr, done = childAttributes()
	defer done()
	x.Cancel = func() error { return syscall.Kill(-x.Process.Pid, syscall.SIGKILL) }
	x.WaitDelay = commandGrace
	if err = x.Start(); err == nil {
		nameHolder(held, x.Process.Pid)
		err = x.Wait()
	}
	if errors.Is(err, exec.ErrWaitDelay) && limited.Err() == nil {
		// It has ended well; what it left behind still had its output open.
		err = nil
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := &CommandError{Program: c.words[0], Reason: err.Error(), Output: out.String()}
	var exit *exec.ExitError
	switch {
	case limited.Err() != nil:
		e.Reason = fmt.Sprintf("stopped after %s, '%s'", c.timeout, keyCommandTimeout)
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		e.Reason, e.Final = fmt.Sprintf("exit code %d", exit.ExitCode()), finalCodes[exit.ExitCode()]
	case !errors.As(err, &exit):
		// It could not be started.
		e.Final = errors.Is(err, exec.ErrNotFound) || errors.Is(err, exec.ErrDot) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission)
	}
	return e
}

// environment is what a command finds: that of the process without what is Millrace's
// own in it, among that the secrets of job files, and what it is told of the partition.
func environment(process []string, job string, p *connector.PartitionFacts, values string) []string {
	count := func(n int64) string {
		if n < 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	env := slices.DeleteFunc(process, func(v string) bool { return strings.HasPrefix(v, "MILLRACE_") })
	return append(env, "MILLRACE_JOB="+job, "MILLRACE_DATABASE="+p.Database, "MILLRACE_TABLE="+p.Table,
		"MILLRACE_PARTITION="+p.TablePartition, "MILLRACE_PARTITION_VALUES="+values, "MILLRACE_LOCATION="+p.Location,
		"MILLRACE_FILES="+count(p.Files), "MILLRACE_BYTES="+count(p.Bytes), "MILLRACE_ROWS="+count(p.Rows))
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.b = append(t.b, b...)
	if over := len(t.b) - outputBytes; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string { return string(bytes.TrimSpace(bytes.ToValidUTF8(t.b, []byte("?")))) }
