package operator

import (
	"encoding/binary"
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
	dst := appendTexts(nil, o.texts())
	dst = binary.AppendVarint(dst, o.fired)
	if o.done {
		dst = append(dst, 1)
	} else {
		dst = append(dst, 0)
	}
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

// Load implements Keyed.
func (o *Over) Load(payload []byte, groups state.Range) error {
	r := state.NewReader(payload)
	own := o.texts()
	if saved := readTexts(r, own); len(saved) != len(own) || slices.Contains(saved, -1) {
		return state.ErrCorrupt
	}
	fired := r.Varint()
	o.done = r.Byte() == 1
	hashes := r.Hashes()
	cols := make([]*batch.Vec, len(o.types))
	for i := range cols {
		if cols[i] = r.Vec(o.types[i]); cols[i].Len != len(hashes) {
			return state.ErrCorrupt
		}
	}
	sel := batch.Sel{}
	for i, h := range hashes {
		if groups.Has(h) {
			sel = append(sel, int32(i))
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	slots := slices.Repeat([]int32{-1}, len(hashes))
	o.find(cols, hashes, sel, slots)
	saved := slices.Clone(slots)
	for _, a := range o.running {
		if a == nil {
			continue
		}
		a.Resize(o.keys.Len())
		for _, slot := range slots {
			b := r.Bytes()
			if slot < 0 || r.Err() != nil {
				continue
			}
			if err := a.MergeState(int(slot), b); err != nil {
				return err
			}
		}
	}
	for _, given := range []bool{true, false} {
		var added batch.Sel
		if _, err := o.rows.load(r, groups, func(_ int, row int32) { added = append(added, row) }); err != nil {
			return err
		}
		slots = slices.Grow(slots[:0], o.rows.batch.Len)[:o.rows.batch.Len]
		o.find(o.rows.columns(o.op.Keys, nil), o.rows.hashes, added, slots)
		for _, row := range added {
			o.slot = append(o.slot, slots[row])
			if k := &o.byKey[slots[row]]; given {
				k.given = append(k.given, row)
			} else if err := o.wait(row); err != nil {
				return err
			}
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
		ids, times = append(ids, saved[i]), append(times, at[i])
	}
	o.ages.restore(ids, times)
	o.fired = max(o.fired, fired)
	return nil
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
	n := o.keys.Bytes() + o.rows.bytes() + o.ages.bytes() + int64(32*cap(o.byKey)+16*cap(o.waiting)+4*cap(o.slot)+4*o.rows.batch.Len)
	for _, a := range o.running {
		if a != nil {
			n += a.Bytes()
		}
	}
	return n
}
