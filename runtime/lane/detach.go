package lane

import (
	"slices"
)

// detach takes the other outputs away from a drive that one output has
// blocked for too long: they go on with a drive of their own, from where each
// of them is. The blocked output keeps the old one.
func (l *Lane) detach(d *drive, blocked *output) {
	l.mu.Lock()
	a := d.att
	if l.att != a || a.ctx.Err() != nil || l.stopping.Load() {
		l.mu.Unlock()
		return
	}
	d.mu.Lock()
	if len(d.outputs) < 2 || !slices.Contains(d.outputs, blocked) || blocked.blockedSince.Load() == 0 && !blocked.rewriting.Load() {
		d.mu.Unlock()
		l.mu.Unlock()
		return
	}
	others := slices.DeleteFunc(slices.Clone(d.outputs), func(o *output) bool { return o == blocked })
	d.outputs = []*output{blocked}
	for _, o := range others {
		o.mu.Lock()
		o.tracker.Rebase(-d.read.Load()) // a new reader counts from 0
		o.mu.Unlock()
	}
	d.mu.Unlock()
	blocked.detached.Store(true)
	a.starts++
	l.mu.Unlock()
	l.notice("table %s is blocked for %v and reads on its own until it has caught up", blocked.cfg.Table.Name, l.opts.DetachAfter)

	next, err := l.startDrive(a.ctx, a, others)
	l.mu.Lock()
	a.starts--
	if err != nil {
		a.fail(err)
		l.settle(a)
		l.mu.Unlock()
		l.progress()
		return
	}
	a.drives = append([]*drive{next}, a.drives...)
	l.mu.Unlock()
	next.begin()
	l.progress()
}

// askToRejoin offers the output of a detached drive that has caught up to the
// main one, and parks the drive until it has an answer.
func (l *Lane) askToRejoin(d *drive) (parked bool) {
	if !d.caught {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := d.att
	if l.att != a || len(a.drives) < 2 || a.drives[0] == d || l.stopping.Load() {
		return false
	}
	d.caught = false // an answer is final until the next batch
	l.wants = append(l.wants, d)
	a.drives[0].member.Wake()
	return true
}

// adopt answers the drives that want to rejoin. It runs on the main drive,
// between batches: an output is taken back when it is at or past the main
// drive's position everywhere; it skips what it has processed already.
func (l *Lane) adopt(d *drive) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := d.att
	if l.att != a || len(a.drives) == 0 || a.drives[0] != d || len(l.wants) == 0 {
		return
	}
	for _, x := range l.wants {
		x.mu.Lock()
		ahead := true
		for _, o := range x.outputs {
			for p := range d.ends {
				ahead = ahead && o.tracker.Next(int32(p)).Offset >= d.ends[p].Offset
			}
		}
		if ahead {
			d.mu.Lock()
			for _, o := range x.outputs {
				o.detached.Store(false)
				o.mu.Lock()
				o.tracker.Rebase(d.read.Load() - x.read.Load())
				o.mu.Unlock()
				d.outputs = append(d.outputs, o)
			}
			d.mu.Unlock()
			x.outputs = nil
		}
		x.mu.Unlock()
		x.member.Wake()
	}
	l.wants = nil
}

// parked reports whether a drive waits for the main one's answer.
func (l *Lane) parked(d *drive) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.wants, d); i >= 0 {
		if len(d.att.drives) > 1 && d.att.drives[0] != d && !l.stopping.Load() {
			return true
		}
		l.wants = slices.Delete(l.wants, i, i+1) // nobody is left to answer
	}
	return false
}
