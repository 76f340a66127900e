package keyed

import "github.com/millrace/millrace/runtime/pace"

// age lets go of state whose time to live is over, before a message meets it. Where
// nothing comes nothing grows.
func (t *task) age() {
	for _, k := range t.aging {
		t.expired.Add(int64(k.Age(t.r.now().Sub(t.r.began).Milliseconds())))
	}
}

// measureRows is after how many rows a task looks at the size of its state, however
// few messages they came in.
const measureRows = 16_384

// limits keeps the state within its budget. Invariant 8.
func (t *task) limits() error {
	if t.messages++; t.messages < t.r.opts.MeasureEvery && t.entered < measureRows {
		return nil
	}
	t.messages, t.entered = 0, 0
	n := t.measure()
	t.hold(n)
	if n > t.r.opts.SpillBytes && t.spill != nil {
		var err error
		if n, err = t.spillState(); err != nil {
			return err
		}
	}
	if n > t.r.opts.StateBytes {
		return t.limitError(n)
	}
	return nil
}

// hold has the collector follow the size of the state.
func (t *task) hold(n int64) {
	pace.Hold(n - t.held)
	t.held = n
}

// measure adds up the state.
func (t *task) measure() int64 {
	var n int64
	for _, k := range t.states {
		n += k.Bytes()
	}
	t.bytes.Store(n)
	return n
}
