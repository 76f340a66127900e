package operator

import "slices"

// Age implements Aging. A key with rows that wait for the watermark stays: they have
// been read, and are owed an answer.
func (o *Over) Age(now int64) int {
	o.ages.now = now
	n := 0
	for slot := o.ages.expired(); slot >= 0; slot = o.ages.expired() {
		k := &o.byKey[slot]
		if k.waiting > 0 {
			o.ages.touch(slot)
			continue
		}
		o.gone += len(k.given)
		k.given = nil
		for _, a := range o.running {
			if a != nil {
				a.Resize(o.keys.Len())
				a.Clear(int(slot))
			}
		}
		o.keys.Delete(slot)
		n++
	}
	if o.lost += n; o.lost > 1024 && o.lost > o.keys.Len()/2 {
		o.tidy()
		o.compact()
	}
	return n
}

// tidy leaves the slots out whose key is forgotten.
func (o *Over) tidy() {
	if o.lost == 0 {
		return
	}
	var live []int32
	to := slices.Repeat([]int32{-1}, o.keys.Len())
	for slot := range int32(len(to)) {
		if !o.keys.Deleted(slot) {
			to[slot] = int32(len(live))
			o.byKey[len(live)] = o.byKey[slot]
			live = append(live, slot)
		}
	}
	for i, a := range o.running {
		if a == nil {
			continue
		}
		a.Resize(o.keys.Len())
		fresh := o.op.Calls[i].Bound.New()
		fresh.Resize(len(live))
		fresh.Merge(a, to)
		o.running[i] = fresh
	}
	o.keys, o.byKey, o.lost = o.keys.Take(live), o.byKey[:len(live)], 0
	for i, slot := range o.slot {
		if slot >= 0 { // its key is not forgotten already
			o.slot[i] = to[slot]
		}
	}
	o.ages.renumber(to)
}
