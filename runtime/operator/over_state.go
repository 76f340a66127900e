package operator

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
)

// Save implements Keyed: the texts of the calls, the watermark, then keys with what
// runs, then the rows, of which the first so many have been given, and with a time to
// live the ages of the keys.
func (o *Over) Save() []byte {
	o.tidy()
	dst := o.saveHead(0)
	dst = state.AppendHashes(dst, o.keys.Hashes())
	cols := o.keys.Columns()
	for i := range cols {
		dst = state.AppendVec(dst, &cols[i])
	}
	var buf []byte
	for _, a := range o.running {
		if a == nil {
			continue
		}
		a.Resize(o.keys.Len())
		for slot := range o.keys.Len() {
			buf = a.AppendState(buf[:0], slot)
			dst = state.AppendBytes(dst, buf)
		}
	}
	given, waiting := o.kept()
	dst = o.rows.save(o.rows.save(dst, given), waiting)
	if o.ages.on() {
		dst = o.ages.save(dst, slotsOf(0, o.keys.Len(), nil))
	}
	return dst
}

// texts are the names of what runs.
func (o *Over) texts() (out []string) {
	for i, a := range o.running {
		if a != nil {
			out = append(out, o.op.Calls[i].Text)
		}
	}
	return out
}

// Load implements Keyed: what Save or SaveTo has given.
func (o *Over) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	own := o.texts()
	if saved := readTexts(r, own); len(saved) != len(own) || slices.Contains(saved, -1) {
		return state.ErrCorrupt
	}
	fired, flags := r.Varint(), r.Byte()
	if flags >= 2*overMore {
		return state.ErrCorrupt
	}
	o.done = o.done || flags&overDone != 0
	load := o.loadWhole
	if flags&(overWaiting|overGroups) != 0 {
		load = o.loadParts
	}
	if err := load(r, groups, flags); err != nil {
		return err
	}
	o.fired = max(o.fired, fired)
	if o.carried {
		return o.takeBack() // of a subtask that had given nothing
	}
	return nil
}

// loadWhole reads what Save has given behind the head.
func (o *Over) loadWhole(r *state.Reader, groups state.Range, _ byte) error {
	cols, hashes, err := readKeys(r, o.types)
	if err != nil {
		return err
	}
	sel := batch.Sel{}
	for i, h := range hashes {
		if groups.Has(h) {
			sel = append(sel, int32(i))
		}
	}
	slots := slices.Repeat([]int32{-1}, len(hashes))
	o.find(cols, hashes, sel, slots)
	for i, a := range o.running {
		if a == nil {
			continue
		}
		a.Resize(o.keys.Len())
		empty := emptyState(&o.op.Calls[i])
		for _, slot := range slots {
			b := r.Bytes()
			if slot < 0 || r.Err() != nil {
				continue
			}
			o.carried = o.carried || o.op.Time < 0 && !bytes.Equal(b, empty)
			if err := a.MergeState(int(slot), b); err != nil {
				return err
			}
		}
	}
	for _, given := range []bool{true, false} {
		if err := o.loadRows(r, groups.Has, given); err != nil {
			return err
		}
	}
	at := slices.Repeat([]int64{o.ages.now}, len(hashes))
	if r.Rest() > 0 {
		at = o.ages.read(r, len(hashes))
	}
	if r.Err() != nil || r.Rest() > 0 {
		return state.ErrCorrupt
	}
	var ids []int32
	var times []int64
	for _, i := range sel {
		ids, times = append(ids, slots[i]), append(times, at[i])
	}
	o.ages.restore(ids, times)
	return o.spillOver()
}

// Kind implements Keyed.
func (*Over) Kind() string { return "Over" }

// Fingerprint implements Keyed.
func (o *Over) Fingerprint() uint64 {
	var ts []types.Type
	for _, f := range o.in.Fields {
		ts = append(ts, f.Type)
	}
	text := fmt.Sprint(o.op.Order)
	for i := range o.op.Calls {
		c := &o.op.Calls[i]
		text += fmt.Sprint(c.Text, c.Func, c.Frame, c.Offset)
	}
	return state.Fingerprint(append(ts, o.types...), text)
}

// Bytes implements Keyed.
func (o *Over) Bytes() int64 {
	n := o.keys.Bytes() + o.rows.bytes() + o.ages.bytes() + o.disk.bytes() + int64(40*cap(o.byKey)+16*cap(o.waiting)+12*cap(o.slot)+4*o.rows.batch.Len)
	for _, r := range o.runs {
		n += r.Memory()
	}
	for _, a := range o.running {
		if a != nil {
			n += a.Bytes()
		}
	}
	return n
}
