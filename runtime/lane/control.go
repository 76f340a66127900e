package lane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/runtime/slot"
)

// Done is closed when the lane has ended for good: finished, failed for good,
// or stopped by Stop or Kill. A lane that waits for a decision has not.
func (l *Lane) Done() <-chan struct{} { return l.done }

// Stop finishes what is open, seals, commits and ends the lane. It returns
// when that is done, or when ctx ends first; the lane then goes on stopping.
func (l *Lane) Stop(ctx context.Context) error {
	l.mu.Lock()
	l.stopping.Store(true)
	if l.retry != nil {
		l.retry.Stop()
	}
	if l.att == nil {
		if !l.state.Ended() {
			l.state = Stopped
		}
		l.end(l.state, l.err)
	} else {
		for _, d := range l.att.drives {
			d.member.Wake()
		}
	}
	l.mu.Unlock()
	select {
	case <-l.done:
	case <-ctx.Done():
		return fmt.Errorf("stopping lane %s: %w", l.cfg.Name, ctx.Err())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Kill ends the lane at once, as a crash would: nothing more is sealed or
// written. It returns when none of its goroutines is left.
func (l *Lane) Kill() {
	l.mu.Lock()
	l.killed = true
	if l.retry != nil {
		l.retry.Stop()
	}
	a := l.att
	if a == nil {
		l.end(Stopped, l.err)
	} else {
		a.cancel()
		for _, d := range a.drives {
			d.member.Wake()
		}
	}
	l.mu.Unlock()
	<-l.done
}

// Pause ends the lane's attempt as a crash would, and begins no other before
// Unpause. It returns when nothing of the attempt runs any more, or with ctx's
// error; the lane is then still pausing.
func (l *Lane) Pause(ctx context.Context) error {
	l.mu.Lock()
	if l.paused == nil {
		l.paused = make(chan struct{})
		if l.att == nil {
			close(l.paused)
		} else {
			l.att.cancel()
			for _, d := range l.att.drives {
				d.member.Wake()
			}
		}
	}
	if l.retry != nil {
		l.retry.Stop()
	}
	ended := l.paused
	l.mu.Unlock()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("pausing lane %s: %w", l.cfg.Name, ctx.Err())
	}
}

// Unpause begins a new attempt, also of a lane that was stopped or quarantined
// before, unless the lane has ended for good.
func (l *Lane) Unpause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused == nil {
		return
	}
	l.paused = nil
	select {
	case <-l.done:
		return
	default:
	}
	if l.att == nil && !l.stopping.Load() && !l.killed {
		l.failures = 0
		l.begin()
	}
}

// ResumeOptions are the decisions a stopped lane may wait for.
type ResumeOptions struct {
	// SkipLost goes on behind records that are gone.
	SkipLost bool
	// Rebuild gives up artefacts of which nothing is left; their offsets are
	// written again.
	Rebuild bool
}

// ErrNotStopped is returned by Resume for a lane that runs.
var ErrNotStopped = errors.New("lane is not stopped")

// Resume starts a lane that is quarantined, backing off or stopped.
func (l *Lane) Resume(o ResumeOptions) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.done:
		return fmt.Errorf("lane %s has ended: %w", l.cfg.Name, ErrNotStopped)
	default:
	}
	if l.att != nil || l.stopping.Load() || l.paused != nil {
		return fmt.Errorf("lane %s is %s: %w", l.cfg.Name, l.state, ErrNotStopped)
	}
	if l.retry != nil {
		l.retry.Stop()
	}
	l.failures, l.skipLost, l.rebuild = 0, o.SkipLost, o.Rebuild
	l.begin()
	return nil
}

// Roll makes the lane seal the open files of a table ("": of every one) soon.
func (l *Lane) Roll(table string) {
	l.eachOutput(func(o *output) {
		if table == "" || o.cfg.Table.Name == table {
			o.roll.Store(true)
		}
	})
	l.Wake()
}

// Wake makes the lane look for what is due.
func (l *Lane) Wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.att != nil {
		for _, d := range l.att.drives {
			d.member.Wake()
		}
	}
}

// MoveTo moves the lane to another slot, between batches.
func (l *Lane) MoveTo(s *slot.Slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cfg.Slot = s
	if l.att != nil {
		for _, d := range l.att.drives {
			d.member.MoveTo(s)
		}
	}
}

// Traffic is what the lane has computed since the last call.
func (l *Lane) Traffic() (bytes int64, computed time.Duration, files int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.running() {
		return 0, 0, 0
	}
	for _, d := range l.att.drives {
		b, c := d.member.Traffic()
		bytes, computed = bytes+b, computed+c
	}
	for _, o := range l.att.outputs {
		files += int(o.openFiles.Load())
	}
	return bytes, computed, files
}

func (l *Lane) eachOutput(f func(*output)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running() {
		for _, o := range l.att.outputs {
			f(o)
		}
	}
}

// running reports whether there is an attempt whose outputs are open; mu is
// held.
func (l *Lane) running() bool { return l.att != nil && l.state == Running }

// Config is what the lane was made of.
func (l *Lane) Config() *Config { return &l.cfg }

// State is the lane's state and, when it is not running, why.
func (l *Lane) State() (State, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state, l.err
}
