package operator

import "slices"

// Age implements Aging. A key with rows that wait for the watermark stays: they have
// been read, and are owed an answer.
func (o *Over) Age(now int64) int {
	o.ages.now = now
	n := o.disk.expired + o.expire()
	o.disk.expired = 0
	if o.lost > 1024 && o.lost > o.keys.Len()/2 {
		o.tidy()
		o.compact()
	}
	return n
}

// expire implements grouped.
func (o *Over) expire() int {
	n := 0
	for slot := o.ages.expired(); slot >= 0; slot = o.ages.expired() {
		if o.byKey[slot].waiting > 0 {
			o.ages.touch(slot)
			continue
		}
		o.disk.forget(o.keys, slot)
		o.dropGroup(slot)
		n++
	}
	return n
}

// tidy leaves the slots out whose key is forgotten.
func (o *Over) tidy() {
	if o.lost == 0 {
		return
	}
	var live []int32
	var byKey []overKey
	to := slices.Repeat([]int32{-1}, o.keys.Len())
	for slot := range int32(len(to)) {
		if !o.keys.Deleted(slot) {
			to[slot] = int32(len(live))
			live, byKey = append(live, slot), append(byKey, o.byKey[slot])
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
	o.keys, o.byKey, o.lost = o.keys.Take(live), byKey, 0
	o.disk.renumber(to)
	for i, slot := range o.slot {
		if slot >= 0 { // its key is not forgotten already
			o.slot[i] = to[slot]
		}
	}
	o.ages.renumber(to)
}
