package userfunc

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/types"
)

// aggregateSpec is an aggregate as it was declared.
type aggregateSpec[S any, R Value] struct {
	name         string
	params       []types.Type
	ret          types.Type
	state        State[S, R]
	add, retract folder[S]
}

func (p *aggregateSpec[S, R]) make() fn.Accumulator {
	a := &accumulator[S, R]{spec: p}
	if p.retract != nil {
		return &retractor[S, R]{a}
	}
	return a
}

// accumulator holds one state a group.
type accumulator[S any, R Value] struct {
	spec   *aggregateSpec[S, R]
	states []S
	// failed are the groups without a result, and why. Of several reasons the
	// least is kept, so that it does not depend on the order of rows.
	failed map[int32]string

	args arguments
	rows batch.Sel
	buf  []byte

	// The row being folded, for whoever recovers.
	fold func(int32, *S) error
	at   int
}

// retractor is an accumulator whose aggregate takes rows back.
type retractor[S any, R Value] struct{ *accumulator[S, R] }

// Retract implements fn.Retractor.
func (a *retractor[S, R]) Retract(groups []int32, args []batch.Vec, _ *batch.Vec, sel batch.Sel) {
	a.each(a.spec.retract, groups, args, sel)
}

// Merge implements fn.Accumulator.
func (a *retractor[S, R]) Merge(o fn.Accumulator, into []int32) {
	a.merge(o.(*retractor[S, R]).accumulator, into)
}

// Resize implements fn.Accumulator.
func (a *accumulator[S, R]) Resize(n int) {
	if n > len(a.states) {
		a.states = append(a.states, make([]S, n-len(a.states))...)
	}
}

// Update implements fn.Accumulator.
func (a *accumulator[S, R]) Update(groups []int32, args []batch.Vec, _ *batch.Vec, sel batch.Sel) {
	a.each(a.spec.add, groups, args, sel)
}

// each folds the rows of sel in which no argument is NULL that must not be.
func (a *accumulator[S, R]) each(f folder[S], groups []int32, args []batch.Vec, sel batch.Sel) {
	a.args.take(args)
	a.rows = a.rows[:0]
	if sel == nil {
		for i := range int32(len(groups)) {
			a.take(i)
		}
	}
	for _, i := range sel {
		a.take(i)
	}
	if len(a.rows) == 0 {
		return
	}
	a.fold, a.at = f(&a.args, a.rows), 0
	for a.at < len(a.rows) {
		a.attempt(groups)
	}
	a.fold = nil
}

func (a *accumulator[S, R]) take(i int32) {
	for k, v := range a.args.args {
		if !a.spec.params[k].Nullable && v.IsNull(int(i)) {
			return
		}
	}
	a.rows = append(a.rows, i)
}

func (a *accumulator[S, R]) attempt(groups []int32) {
	defer func() {
		if p := recover(); p != nil {
			a.fail(groups[a.rows[a.at]], panicText(p))
			a.at++
		}
	}()
	for ; a.at < len(a.rows); a.at++ {
		i := a.rows[a.at]
		g := groups[i]
		if err := a.fold(i, &a.states[g]); err != nil {
			a.fail(g, err.Error())
		}
	}
}

func (a *accumulator[S, R]) fail(g int32, message string) {
	if a.failed == nil {
		a.failed = map[int32]string{}
	}
	if old, ok := a.failed[g]; !ok || message < old {
		a.failed[g] = message
	}
}

// guard runs f and returns its error, or what it panicked with.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New(panicText(p))
		}
	}()
	return f()
}

// Merge implements fn.Accumulator.
func (a *accumulator[S, R]) Merge(o fn.Accumulator, into []int32) {
	a.merge(o.(*accumulator[S, R]), into)
}

func (a *accumulator[S, R]) merge(b *accumulator[S, R], into []int32) {
	for g, to := range into {
		if g >= len(b.states) || to < 0 {
			continue
		}
		if err := guard(func() error { return a.spec.state.Merge(&a.states[to], &b.states[g]) }); err != nil {
			a.fail(to, err.Error())
		}
		if message, failed := b.failed[int32(g)]; failed {
			a.fail(to, message)
		}
	}
}

// The forms of a saved state, its first byte.
const (
	savedState   = 1 // what Save wrote
	savedFailure = 2 // why the group has no result
)

// AppendState implements fn.Accumulator.
func (a *accumulator[S, R]) AppendState(dst []byte, g int) []byte {
	message, failed := a.failed[int32(g)]
	if !failed {
		err := guard(func() error { a.buf = a.spec.state.Save(a.buf[:0], &a.states[g]); return nil })
		if err == nil {
			return append(append(dst, savedState), a.buf...)
		}
		message = err.Error()
	}
	return append(append(dst, savedFailure), message...)
}

// MergeState implements fn.Accumulator.
func (a *accumulator[S, R]) MergeState(g int, saved []byte) error {
	switch {
	case len(saved) > 0 && saved[0] == savedFailure:
		a.fail(int32(g), string(saved[1:]))
		return nil
	case len(saved) == 0 || saved[0] != savedState:
		return fmt.Errorf("the saved state of %s is damaged, or of another form", a.spec.name)
	}
	var s S
	if err := guard(func() error { return a.spec.state.Load(&s, saved[1:]) }); err != nil {
		return fmt.Errorf("loading a state of %s: %w", a.spec.name, err)
	}
	if err := guard(func() error { return a.spec.state.Merge(&a.states[g], &s) }); err != nil {
		a.fail(int32(g), err.Error())
	}
	return nil
}

// Emit implements fn.Accumulator.
func (a *accumulator[S, R]) Emit(groups []int32, where string, out *batch.Vec) {
	out.Reset(a.spec.ret, len(groups))
	set := setterOf[R](out)
	for k, g := range groups {
		message, failed := a.failed[g]
		if !failed {
			var r R
			err := guard(func() (err error) { r, err = a.spec.state.Result(&a.states[g]); return err })
			if err == nil {
				set(int32(k), r)
				continue
			}
			message = err.Error()
		}
		out.SetErr(k, batch.CodeUserFunction, where, failureText(a.spec.name, message))
	}
	out.PadOffsets()
}

// Clear implements fn.Accumulator.
func (a *accumulator[S, R]) Clear(g int) {
	var zero S
	a.states[g] = zero
	delete(a.failed, int32(g))
}

// Bytes implements fn.Accumulator.
func (a *accumulator[S, R]) Bytes() int64 {
	var zero S
	n := int64(cap(a.states)) * int64(unsafe.Sizeof(zero))
	for _, message := range a.failed {
		n += int64(len(message)) + 64
	}
	if size := a.spec.state.Bytes; size != nil {
		// An estimate that panics is left out, from the group on that it panicked for.
		_ = guard(func() error {
			for g := range a.states {
				n += size(&a.states[g])
			}
			return nil
		})
	}
	return n
}
