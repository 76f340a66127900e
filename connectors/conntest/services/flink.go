package services

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// FlinkVersion is the one that StartFlink starts.
const FlinkVersion = "2.3.0"

//go:embed FlinkSession.java
var flinkSession string

// Flink is a Flink cluster and its SQL sessions in one Java process, which needs
// a JDK 17 (its compiler runs the session's source). It answers one statement at
// a time.
type Flink struct {
	log string
	cmd *exec.Cmd

	mu  sync.Mutex
	in  io.WriteCloser
	out *bufio.Reader
}

// FlinkRows are the rows of a query.
type FlinkRows struct {
	// Types are the columns' types as Flink's summary writes them.
	Types []string `json:"types"`
	// Rows have a value's text in UTC, nil for NULL, in the form of the runtime's
	// own text of values. Entries of maps are sorted by key.
	Rows [][]*string `json:"rows"`
	// Kinds are +I, -U, +U and -D, one a row.
	Kinds []string `json:"kinds"`
}

// FlinkError is a statement that Flink refused (Stage "plan") or that failed as
// it ran ("run"); constant expressions fail in either.
type FlinkError struct {
	Stage   string
	Message string
}

// Error implements error.
func (e *FlinkError) Error() string { return e.Stage + ": " + e.Message }

// FlinkOptions say how StartFlinkWith starts.
type FlinkOptions struct {
	// Dir holds the log.
	Dir string
	// JVM are the flags of java; nil: SmallJVM(1024).
	JVM []string
	// Jars are fetched beside those of the table API, Classpath is there already.
	Jars      []Jar
	Classpath []string
	// Before are a program and its arguments that start java, such as taskset.
	Before []string
}

// flinkJars are the table API with what plans, runs and reads files.
func flinkJars(ctx context.Context, more []Jar) (string, error) {
	var jars []Jar
	for _, a := range []string{"flink-clients", "flink-table-api-java-bridge", "flink-table-planner-loader", "flink-table-runtime", "flink-connector-files", "flink-json"} {
		jars = append(jars, Jar{Group: "org.apache.flink", Artifact: a, Version: FlinkVersion})
	}
	return Jars(ctx, "flink", append(append(jars, more...), Jar{Group: "org.slf4j", Artifact: "slf4j-nop", Version: "1.7.36"})...)
}

// StartFlink starts a cluster for functional tests; dir holds its log. It takes
// some seconds. Session must come before Run.
func StartFlink(ctx context.Context, dir string) (*Flink, error) {
	return StartFlinkWith(ctx, FlinkOptions{Dir: dir})
}

// StartFlinkWith is StartFlink with options.
func StartFlinkWith(ctx context.Context, o FlinkOptions) (*Flink, error) {
	java, err := JavaPath()
	if err != nil {
		return nil, err
	}
	jars, err := flinkJars(ctx, o.Jars)
	if err != nil {
		return nil, err
	}
	if o.JVM == nil {
		o.JVM = SmallJVM(1024)
	}
	source := filepath.Join(o.Dir, "FlinkSession.java")
	if err := writeFiles(map[string]string{source: flinkSession}); err != nil {
		return nil, err
	}
	f := &Flink{log: filepath.Join(o.Dir, "flink.log")}
	log, err := os.Create(f.log)
	if err != nil {
		return nil, fmt.Errorf("starting Flink: %w", err)
	}
	defer log.Close()
	args := slices.Concat(o.Before, []string{java}, o.JVM, []string{"-Duser.timezone=UTC", "-Djava.io.tmpdir=" + o.Dir, "-cp",
		strings.Join(append([]string{jars + "/*"}, o.Classpath...), ":"), source})
	f.cmd = exec.Command(args[0], args[1:]...)
	f.cmd.Dir, f.cmd.Stderr = o.Dir, log
	if f.in, err = f.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	f.out = bufio.NewReader(out)
	if _, err := startChild(f.cmd); err != nil {
		return nil, fmt.Errorf("starting Flink: %w", err)
	}
	if _, err := f.answer(ctx); err != nil {
		f.Close()
		return nil, fmt.Errorf("starting Flink (it needs apt-get install openjdk-17-jdk-headless): %w\n%s", err, f.tail())
	}
	return f, nil
}

// Session begins a session without tables; settings are those of SET.
func (f *Flink) Session(ctx context.Context, settings map[string]string) error {
	if settings == nil {
		settings = map[string]string{}
	}
	_, err := f.ask(ctx, map[string]any{"reset": settings})
	return err
}

// Run runs one statement of the session to its end. What Flink itself says
// against it is a *FlinkError. INSERT gives the one row that Flink gives.
func (f *Flink) Run(ctx context.Context, sql string) (*FlinkRows, error) {
	return f.ask(ctx, map[string]any{"sql": sql})
}

func (f *Flink) ask(ctx context.Context, request map[string]any) (*FlinkRows, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	if _, err := f.in.Write(append(b, '\n')); err != nil {
		return nil, fmt.Errorf("asking Flink: %w\n%s", err, f.tail())
	}
	rows, err := f.answer(ctx)
	var refused *FlinkError
	if err != nil && !errors.As(err, &refused) {
		err = fmt.Errorf("asking Flink: %w\n%s", err, f.tail())
	}
	return rows, err
}

func (f *Flink) answer(ctx context.Context) (*FlinkRows, error) {
	type line struct {
		b   []byte
		err error
	}
	got := make(chan line, 1)
	go func() {
		b, err := f.out.ReadBytes('\n')
		got <- line{b, err}
	}()
	var l line
	select {
	case l = <-got:
	case <-ctx.Done():
		f.Close()
		return nil, ctx.Err()
	}
	if l.err != nil {
		return nil, l.err
	}
	var a struct {
		FlinkRows
		Stage, Error string
	}
	if err := json.Unmarshal(l.b, &a); err != nil {
		return nil, fmt.Errorf("reading the answer %q: %w", l.b, err)
	}
	if a.Error != "" {
		return nil, &FlinkError{a.Stage, a.Error}
	}
	return &a.FlinkRows, nil
}

func (f *Flink) tail() string {
	b, err := os.ReadFile(f.log)
	if err != nil {
		return err.Error()
	}
	return string(tail(b, 6000))
}

// PID is the process, in which everything runs.
func (f *Flink) PID() int { return f.cmd.Process.Pid }

// Close ends the process. Nothing may be asked after it.
func (f *Flink) Close() {
	_ = f.in.Close()
	_ = syscall.Kill(-f.cmd.Process.Pid, syscall.SIGKILL)
}
