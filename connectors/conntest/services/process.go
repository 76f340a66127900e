package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Command says how a server is started.
type Command struct {
	// Name is used in errors and for the log, Dir/Name.log.
	Name string
	Dir  string
	// Path and Args are the program; Env is added to this process's own.
	Path string
	Args []string
	Env  []string
	// Ready answers nil once the server works: a real call, not an open port,
	// where the server has one. It is asked again until then.
	Ready func(ctx context.Context) error
	// ReadyTimeout bounds the start; default 90 s (two busy cores).
	ReadyTimeout time.Duration
}

// Process is a server as a child process. It can be killed and started again under
// the same command.
type Process struct {
	command Command

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
	// logStart is where the log of the start that runs begins.
	logStart int64
}

const defaultReadyTimeout = 90 * time.Second

// Launch starts the command and waits until it is ready.
func Launch(ctx context.Context, c Command) (*Process, error) {
	if c.ReadyTimeout == 0 {
		c.ReadyTimeout = defaultReadyTimeout
	}
	p := &Process{command: c}
	return p, p.Start(ctx)
}

// LogPath is the file with what the server printed, over all its starts.
func (p *Process) LogPath() string {
	return filepath.Join(p.command.Dir, p.command.Name+".log")
}

// Log returns the end of the server's log.
func (p *Process) Log() string {
	b, err := os.ReadFile(p.LogPath())
	if err != nil {
		return err.Error()
	}
	return string(tail(b, 6000))
}

// Start starts the server again after Kill or Stop, and waits until it is ready.
func (p *Process) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		return fmt.Errorf("starting %s: it runs already", p.command.Name)
	}
	if err := os.MkdirAll(p.command.Dir, 0o755); err != nil {
		return fmt.Errorf("starting %s: %w", p.command.Name, err)
	}
	log, err := os.OpenFile(p.LogPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.command.Name, err)
	}
	defer log.Close()
	if p.logStart, err = log.Seek(0, io.SeekEnd); err != nil {
		return fmt.Errorf("starting %s: %w", p.command.Name, err)
	}
	cmd := exec.Command(p.command.Path, p.command.Args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.command.Dir, log, log
	cmd.Env = append(os.Environ(), p.command.Env...)
	done, err := startChild(cmd)
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.command.Name, err)
	}
	p.cmd, p.done = cmd, done
	if err := p.awaitReady(ctx); err != nil {
		p.signal(syscall.SIGKILL)
		<-done
		p.cmd = nil
		return fmt.Errorf("starting %s: %w\n%s", p.command.Name, err, p.Log())
	}
	return nil
}

// startChild starts cmd in a group of its own, so that a signal for the tests does not
// reach it; it dies with this process however that ends. ended is closed when it has.
func startChild(cmd *exec.Cmd) (ended chan struct{}, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	ended = make(chan struct{})
	started := make(chan error)
	go func() {
		// The death signal follows the thread that forked: this goroutine keeps it.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(ended)
		}
	}()
	return ended, <-started
}

// readyPoll is how often Ready is asked.
const readyPoll = 50 * time.Millisecond

func (p *Process) awaitReady(ctx context.Context) error {
	if p.command.Ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.command.ReadyTimeout)
	defer cancel()
	var last error
	for {
		select {
		case <-p.done:
			return errors.New("it ended before it was ready")
		default:
		}
		if last = p.command.Ready(ctx); last == nil {
			return nil
		}
		if err := pause(ctx, readyPoll); err != nil {
			return fmt.Errorf("not ready after %v: %w", p.command.ReadyTimeout, last)
		}
	}
}

// Kill ends the server by SIGKILL and waits until it is gone. Killing one that
// does not run does nothing.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	p.signal(syscall.SIGKILL)
	<-p.done
	p.cmd = nil
}

// Stop asks the server to end by SIGTERM, and kills it when ctx ends first.
func (p *Process) Stop(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-ctx.Done():
		p.signal(syscall.SIGKILL)
		<-p.done
	}
	p.cmd = nil
}

// Pause stops the server as it stands (SIGSTOP): connections stay open and nobody
// answers. Resume lets it go on.
func (p *Process) Pause()  { p.signalLocked(syscall.SIGSTOP) }
func (p *Process) Resume() { p.signalLocked(syscall.SIGCONT) }

func (p *Process) signalLocked(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		p.signal(s)
	}
}

// signal reaches the whole group: some servers start through a shell.
func (p *Process) signal(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }

// Done is closed when the server that runs now ends; nil when none runs.
func (p *Process) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return nil
	}
	return p.done
}

// Pid is the server's process id, 0 when none runs.
func (p *Process) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Usage returns the server's processor time and resident bytes, from /proc.
func (p *Process) Usage() (cpu time.Duration, rssBytes int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0, 0, fmt.Errorf("measuring %s: it does not run", p.command.Name)
	}
	if cpu, rssBytes, err = UsageOf(p.cmd.Process.Pid); err != nil {
		return 0, 0, fmt.Errorf("measuring %s: %w", p.command.Name, err)
	}
	return cpu, rssBytes, nil
}
