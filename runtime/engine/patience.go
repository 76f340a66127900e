package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/runtime/connector"
)

const (
	// sayAfter is how long a server may take to answer before the start says so.
	sayAfter        = 2 * time.Second
	firstStartPause = 100 * time.Millisecond
	lastStartPause  = 2 * time.Second
)

// patiently opens a table, again while its server is away, for 'start.retry-timeout'
// at most: the same rule for all connectors. *connector.AwayError: it stayed away.
func (r *Run) patiently(ctx context.Context, what string, open func(context.Context) error) error {
	began := r.clock.Now()
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	over := r.clock.AfterFunc(r.opts.StartRetry, cancel)
	defer over.Stop()
	said := make(chan struct{}, 1) // has room: nothing was said yet
	say := func(why string) {
		select {
		case said <- struct{}{}:
			r.notice("%s: its server does not answer%s; it is tried for %v ('start.retry-timeout')", what, why, r.opts.StartRetry)
		default:
		}
	}
	slow := r.clock.AfterFunc(sayAfter, func() { say("") })
	defer slow.Stop()
	pause := firstStartPause
	for {
		err := open(bounded)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w: %w", what, ctx.Err(), err)
		}
		if bounded.Err() != nil {
			// The time is over; an error that says so is no cause of its own.
			return &connector.AwayError{What: what, For: r.clock.Now().Sub(began), Err: err}
		}
		if !connector.IsAway(err) {
			return fmt.Errorf("%s: %w", what, err)
		}
		say(fmt.Sprintf(" (%v)", err))
		ready := make(chan struct{})
		t := r.clock.AfterFunc(pause, func() { close(ready) })
		select {
		case <-ready:
		case <-bounded.Done():
			t.Stop()
			if ctx.Err() == nil {
				return &connector.AwayError{What: what, For: r.clock.Now().Sub(began), Err: err}
			}
			return fmt.Errorf("%s: %w: %w", what, ctx.Err(), err)
		}
		pause = min(2*pause, lastStartPause)
	}
}
