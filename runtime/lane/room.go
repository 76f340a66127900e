package lane

import "context"

// headroom seals everything before a unit of several writes when the writer has
// been full at less than twice what it holds: a unit that has begun cannot make
// room by sealing its own groups.
func (o *output) headroom(ctx context.Context, d *drive, members []int) error {
	writes := 0
	for _, m := range members {
		for _, sel := range o.sink.touched[m].sels {
			if len(sel) > 0 {
				writes++
			}
		}
	}
	full := o.lane.fullAt.Load()
	if writes < 2 || full == 0 || 2*o.sink.writer.HeldBytes() <= full {
		return nil
	}
	return o.commit(ctx, d, o.tracker.Due(DueInput{All: true}))
}

// makeRoom seals the group that began first. Once rows of the unit are in the
// writer its own groups are not to be sealed: they hold rows of this batch that
// are not placed yet.
func (o *output) makeRoom(ctx context.Context, d *drive, members []int, started bool) error {
	own := func(g *group) bool {
		for _, m := range members {
			if b := o.tracker.buckets[o.sink.touched[m].id]; b != nil && b.group == g {
				return true
			}
		}
		return false
	}
	if !started {
		own = nil
	}
	g := o.tracker.Oldest(own)
	if g == nil {
		return errTooBig
	}
	return o.commit(ctx, d, []*group{g})
}

// limitFiles keeps the slot's open files within their budget.
func (o *output) limitFiles(ctx context.Context, d *drive) error {
	for d.setOpenFiles() {
		g := o.tracker.Oldest(nil)
		if g == nil {
			return nil
		}
		if err := o.commit(ctx, d, []*group{g}); err != nil {
			return err
		}
	}
	return nil
}
