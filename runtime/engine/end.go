package engine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace/runtime/lane"
)

// ended reports whether no lane of a bounded run will do anything more.
func (r *Run) ended(lanes []*laneOf) bool {
	if err := r.book.Broken(); err != nil {
		r.fail(err)
		r.changed()
		return false
	}
	finished := true
	for _, l := range lanes {
		switch state, _ := l.State(); state {
		case lane.Starting, lane.Running, lane.BackingOff:
			return false
		case lane.Finished:
		default:
			finished = false
		}
	}
	return r.job.Bounded && (!finished || r.keyedEnded())
}

// keyedEnded reports whether the keyed stages have ended, and looks again when
// they do.
func (r *Run) keyedEnded() bool {
	if r.keyed == nil {
		return true
	}
	select {
	case <-r.keyed.Done():
		return true
	default:
		r.watchKeyed()
		return false
	}
}

// over reports whether a bounded run whose lanes have ended has nothing left
// to do, and why it failed if it did.
func (r *Run) over(lanes []*laneOf, pending bool) bool {
	var failed []string
	for _, l := range lanes {
		if state, err := l.State(); state != lane.Finished {
			failed = append(failed, fmt.Sprintf("lane %s is %s: %v", l.Config().Name, state, err))
			if err != nil {
				r.remember(err)
			}
		}
	}
	if len(failed) > 0 {
		r.endKeyed()
		for _, l := range lanes {
			if s, _ := l.State(); s != lane.Finished {
				l.Kill()
			}
		}
		r.fail(&LanesError{Lanes: failed, errs: r.remembered()})
		return true
	}
	if r.keyed != nil {
		if err := r.keyed.Err(); err != nil {
			r.fail(err)
			return true
		}
	}
	if pending {
		if err := r.announceErr(); err != nil {
			r.fail(err)
			return true
		}
	}
	return !pending
}

// announceErr is a failure to announce partitions, once the lanes are done and
// nothing else can come.
func (r *Run) announceErr() error {
	for _, t := range r.tables {
		if t.closer != nil {
			if err := t.closer.finalErr(); err != nil {
				return err
			}
		}
	}
	return nil
}

// LanesError ends a bounded run whose lanes did not all finish. It unwraps to
// their errors.
type LanesError struct {
	Lanes []string
	errs  []error
}

func (e *LanesError) Error() string { return strings.Join(e.Lanes, "\n") }

// Unwrap gives the lanes' own errors.
func (e *LanesError) Unwrap() []error { return e.errs }

func (r *Run) remember(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.laneErrs {
		if errors.Is(x, err) {
			return
		}
	}
	r.laneErrs = append(r.laneErrs, err)
}

func (r *Run) remembered() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.laneErrs
}

func (r *Run) endKeyed() {
	if r.keyed == nil {
		return
	}
	if err := r.keyed.Stop(r.ctx); err != nil {
		r.remember(err)
	}
}

// watchKeyed looks again when the keyed stages have ended.
func (r *Run) watchKeyed() {
	if r.watching {
		return
	}
	r.watching = true
	go func() {
		select {
		case <-r.keyed.Done():
			r.changed()
		case <-r.ctx.Done():
		}
	}()
}
