package kafkaproto

import (
	"math"
	"time"

	"github.com/millrace/millrace/storage/quota"
)

// spend counts an amount against the client's quotas and returns how long it is to
// wait. Clients of the data directory's owner have none.
func (c *call) spend(k quota.Kind, amount int) time.Duration {
	store := c.s.opts.Security.Access
	if store == nil || c.peer.pending || c.peer.owner || amount == 0 {
		return 0
	}
	return c.s.meters.Record(store.Quotas(), k, c.peer.user(), c.clientID, float64(amount))
}

// timed measures how long a request keeps its thread busy, up to where its handler
// begins to wait and says so by settled. The function it returns charges that.
func (c *call) timed() func() {
	start := c.s.opts.now()
	var busy time.Duration
	stopped := false
	stop := func() {
		if !stopped {
			busy, stopped = c.s.opts.now().Sub(start), true
		}
	}
	settled := c.settled
	c.settled = func() {
		stop()
		settled()
	}
	return func() {
		stop()
		c.throttle = max(c.throttle, c.spend(quota.RequestPercent, int(busy)))
	}
}

// throttleMillis is the wait as responses tell it.
func (c *call) throttleMillis() int32 {
	return int32(min(c.throttle.Milliseconds(), math.MaxInt32))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// after is closed some time after wait is.
func after(wait <-chan struct{}, d time.Duration) <-chan struct{} {
	out := make(chan struct{})
	time.AfterFunc(d, func() {
		if wait != nil {
			<-wait
		}
		close(out)
	})
	return out
}

// unmute waits until the client's quotas let its next request be read; false says
// that draining has started. Nobody waits longer than an idle connection lives.
func (s *Server) unmute(p *peer) bool {
	wait := min(p.mutedUntil.Sub(s.opts.now()), s.opts.IdleTimeout)
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}
