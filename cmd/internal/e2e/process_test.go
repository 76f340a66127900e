package e2e

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait; a healthy wait takes a small part of it even on
// a busy machine.
const patience = 2 * time.Minute

// buffer is a stream of a process, readable while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// process is a started millrace.
type process struct {
	t      testing.TB
	args   []string
	cmd    *exec.Cmd
	stdout buffer
	stderr buffer
	ended  chan struct{}
	state  *os.ProcessState
}

// launch starts a binary. It is killed when the test ends, if it still runs.
func launch(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, args: cmd.Args[1:], cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.stdout, &p.stderr
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", strings.Join(cmd.Args, " "), err)
	}
	go func() {
		_ = cmd.Wait() // the state tells
		p.state = cmd.ProcessState
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
	})
	return p
}

// running reports whether the process has not ended yet.
func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// kill sends SIGKILL and waits for the end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// terminate sends SIGTERM.
func (p *process) terminate() {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
}

// wait returns the exit code, -1 for a signal.
func (p *process) wait() int {
	p.t.Helper()
	return p.waitFor(patience)
}

// waitFor is wait with another patience.
func (p *process) waitFor(patience time.Duration) int {
	p.t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-p.ended:
	case <-timeout.C:
		// Its goroutines say what it hangs on.
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		<-p.ended
		p.t.Fatalf("millrace %s has not ended within %v\n%s", strings.Join(p.args, " "), patience, p.stderr.String())
	}
	return p.state.ExitCode()
}

// result is a process that has ended.
type result struct {
	args           []string
	code           int
	stdout, stderr string
}

// execute runs a binary to its end.
func execute(t testing.TB, cmd *exec.Cmd, stdin io.Reader) result {
	t.Helper()
	cmd.Stdin = stdin
	p := launch(t, cmd)
	code := p.wait()
	return result{args: p.args, code: code, stdout: p.stdout.String(), stderr: p.stderr.String()}
}

// must fails the test unless the process ended with the code.
func (r result) must(t testing.TB, code int) result {
	t.Helper()
	if r.code != code {
		t.Fatalf("millrace %s: exit code %d, want %d\nstdout: %s\nstderr: %s", strings.Join(r.args, " "), r.code, code, r.stdout, r.stderr)
	}
	return r
}

// says fails the test unless stderr or stdout has each of the texts.
func (r result) says(t testing.TB, texts ...string) result {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(r.stderr, text) && !strings.Contains(r.stdout, text) {
			t.Errorf("millrace %s does not say %q\nstdout: %s\nstderr: %s", strings.Join(r.args, " "), text, r.stdout, r.stderr)
		}
	}
	return r
}

// eventually polls until ok; last says what it waits for when it gives up.
func eventually(t testing.TB, what string, ok func() (bool, string)) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(patience)
	for {
		done, last := ok()
		if done {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s; at last: %s", patience, what, last)
		}
		<-tick.C
	}
}

// eventuallyOf is eventually for something that a process does: it fails at
// once when the process has ended.
func eventuallyOf(t testing.TB, p *process, what string, ok func() (bool, string)) {
	t.Helper()
	eventually(t, what, func() (bool, string) {
		done, last := ok()
		if !done && !p.running() {
			t.Fatalf("millrace %s ended with %d while waiting for %s (%s)\n%s", strings.Join(p.args, " "), p.state.ExitCode(), what, last, p.stderr.String())
		}
		return done, last
	})
}
