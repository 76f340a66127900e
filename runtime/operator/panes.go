package operator

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/runtime/watermark"
)

// FiredError says that a row came for a window that has been emitted: whoever
// handed it over did not keep the rules of lateness.
type FiredError struct {
	// EndTime is the window's end and Watermark what the stage has fired up to,
	// both in ms.
	EndTime, Watermark int64
}

func (e *FiredError) Error() string {
	return fmt.Sprintf("BUG: a row of the window that ends at %d ms was handed over after the watermark %d ms had fired it", e.EndTime, e.Watermark)
}

// panes are the open windows of a subtask, each with a table that is dropped
// whole when it fires.
type panes struct {
	window   graph.Window
	lateness int64
	// held: windows stay when their lateness has passed, until they are let go.
	held     bool
	fired    int64
	keyTypes []types.Type
	open     []*pane // by end
	make     func() *aggTable
	last     *pane
	spiller  spiller
	sels     []paneRows
	spans    []Span
}

type pane struct {
	Span
	*aggTable
	shown *shownRows // where rows go out more than once
	dirty bool       // rows have come since all its rows went out
	gap   bool       // its rows went out without a generation
}

type paneRows struct {
	p   *pane
	sel batch.Sel
}

func newPanes(w graph.Window, lateness int64, keyTypes []types.Type, make func() *aggTable) *panes {
	return &panes{window: w, lateness: lateness, fired: batch.NoWatermark, keyTypes: keyTypes, make: make, spiller: spiller{fresh: make}}
}

// of finds or makes the pane of a window.
func (p *panes) of(s Span) (*pane, error) {
	if p.last != nil && p.last.Span == s {
		return p.last, nil
	}
	at, ok := slices.BinarySearchFunc(p.open, s, func(x *pane, s Span) int { return compareSpans(x.Span, s) })
	if !ok {
		if watermark.Late(p.fired, s.EndTime, p.lateness) {
			return nil, &FiredError{s.EndTime, p.fired}
		}
		p.open = slices.Insert(p.open, at, &pane{Span: s, aggTable: p.make()})
	}
	p.last = p.open[at]
	return p.last, nil
}

// compareSpans orders windows by when they fire.
func compareSpans(a, b Span) int {
	switch {
	case a.EndTime != b.EndTime:
		if a.EndTime < b.EndTime {
			return -1
		}
		return 1
	case a.Start < b.Start:
		return -1
	case a.Start > b.Start:
		return 1
	}
	return 0
}

// split divides rows by window. time has no NULL and no error in sel.
func (p *panes) split(ws *Windows, time *batch.Vec, sel batch.Sel) ([]paneRows, error) {
	p.sels = p.sels[:0]
	k := -1
	for _, row := range sel {
		var err error
		if k, err = p.put(k, ws.Of(timeOf(time, row)), row); err != nil {
			return nil, err
		}
	}
	return p.sels, nil
}

// splitGiven divides rows by the window in their columns, which has no error in
// sel. A row that is late for its window is left out: it counts for others, or
// the lane would have kept it.
func (p *panes) splitGiven(ws *Windows, b *batch.Batch, sel batch.Sel) ([]paneRows, error) {
	p.sels = p.sels[:0]
	k := -1
	for _, row := range sel {
		s := ws.given(b, int(row))
		if refuses(b, row, s.EndTime, p.lateness) {
			continue
		}
		var err error
		if k, err = p.put(k, s, row); err != nil {
			return nil, err
		}
	}
	return p.sels, nil
}

// splitAll divides rows by all their windows that take them. time has no NULL and no
// error in sel.
func (p *panes) splitAll(ws *Windows, b *batch.Batch, time int, sel batch.Sel) ([]paneRows, error) {
	p.sels = p.sels[:0]
	k := -1
	for _, row := range sel {
		p.spans = ws.All(p.spans[:0], timeOf(&b.Cols[time], row))
		for _, s := range p.spans {
			if refuses(b, row, s.EndTime, p.lateness) {
				continue
			}
			var err error
			if k, err = p.put(k, s, row); err != nil {
				return nil, err
			}
		}
	}
	return p.sels, nil
}

// timeOf is the time in a column of any encoding.
func timeOf(v *batch.Vec, row int32) int64 {
	i := int(row)
	for v.Enc == batch.Dict {
		v, i = v.Dict, int(v.Codes[i])
	}
	return v.Int64(i)
}

// put adds a row to the rows of a window's pane; k is where the last one went.
func (p *panes) put(k int, s Span, row int32) (int, error) {
	pn, err := p.of(s)
	if err != nil {
		return k, err
	}
	if k < 0 || p.sels[k].p != pn {
		k = slices.IndexFunc(p.sels, func(x paneRows) bool { return x.p == pn })
		if k < 0 {
			k = p.more(pn)
		}
	}
	p.sels[k].sel = append(p.sels[k].sel, row)
	return k, nil
}

func (p *panes) more(pn *pane) int {
	k := len(p.sels)
	if k < cap(p.sels) {
		p.sels = p.sels[:k+1]
		p.sels[k].p, p.sels[k].sel = pn, p.sels[k].sel[:0]
	} else {
		p.sels = append(p.sels, paneRows{p: pn, sel: batch.Sel{}})
	}
	return k
}

// due takes out the panes that a watermark fires, in order of their ends.
func (p *panes) due(time int64) []*pane {
	n := 0
	for n < len(p.open) && (time == batch.MaxWatermark || watermark.Late(time, p.open[n].EndTime, p.lateness)) {
		n++
	}
	out := slices.Clone(p.open[:n])
	p.open = slices.Delete(p.open, 0, n)
	p.last = nil
	p.fired = max(p.fired, time)
	return out
}

func (p *panes) bytes() int64 {
	var n int64
	for _, x := range p.open {
		n += x.bytes()
	}
	return n
}

// save appends the watermark, then each pane: its window and table.
func (p *panes) save(dst []byte) []byte {
	dst = binary.AppendVarint(dst, p.fired)
	dst = binary.AppendUvarint(dst, uint64(len(p.open)))
	for _, x := range p.open {
		dst = x.Span.append(dst)
		dst = x.aggTable.save(dst)
	}
	return dst
}

// spill moves tables to disk.
func (p *panes) spill() error {
	tables := make([]*aggTable, len(p.open))
	for i, x := range p.open {
		tables[i] = x.aggTable
	}
	return p.spiller.spill(tables)
}

// spilled reports tables on disk.
func (p *panes) spilled() bool {
	return slices.ContainsFunc(p.open, func(x *pane) bool { return len(x.runs) > 0 })
}

// saveTo is save in parts: a window is there once for each piece of its table.
func (p *panes) saveTo(to *state.Payload, dst []byte) {
	dst = binary.AppendVarint(dst, p.fired)
	w := p.spiller.parts(to, func(n int, _ bool) []byte { return binary.AppendUvarint(slices.Clip(dst), uint64(n)) })
	for _, x := range p.open {
		x.saveParts(w, x.Span.append(nil))
	}
	w.finish()
}

// restored lets go of the panes that have no keys of the task.
func (p *panes) restored() {
	p.open = slices.DeleteFunc(p.open, func(x *pane) bool { return x.empty() })
	p.last = nil
}

func (p *panes) load(r *state.Reader, groups state.Range, to, branches []int) error {
	fired := max(p.fired, r.Varint())
	if p.fired = fired; p.held {
		p.fired = batch.NoWatermark
	}
	for range r.Count() {
		s := readSpan(r)
		if err := r.Err(); err != nil {
			return err
		}
		x, err := p.of(s)
		if err != nil {
			return state.ErrCorrupt
		}
		if err := x.load(r, p.keyTypes, groups, to, branches); err != nil {
			return err
		}
		if p.spiller.over(p.bytes()) {
			if err := p.spill(); err != nil {
				return err
			}
		}
	}
	if r.Rest() > 0 {
		return state.ErrCorrupt
	}
	p.fired = fired
	p.restored()
	return r.Err()
}

// fingerprint is what the panes' state depends on.
func (p *panes) fingerprint() uint64 { return windowFingerprint(p.keyTypes, p.window) }

// windowFingerprint is what the state of windows depends on.
func windowFingerprint(keyTypes []types.Type, w graph.Window) uint64 {
	zone := ""
	if w.Zone != nil {
		zone = w.Zone.String()
	}
	var text string
	switch w.Kind {
	case graph.Tumble:
		text = fmt.Sprintf("TUMBLE %d %d %s", w.Size, w.Offset, zone)
	case graph.Hop:
		text = fmt.Sprintf("HOP %d %d %d %s", w.Step, w.Size, w.Offset, zone)
	case graph.Cumulate:
		text = fmt.Sprintf("CUMULATE %d %d %d %s", w.Step, w.Size, w.Offset, zone)
	case graph.Session:
		text = fmt.Sprintf("SESSION %d", w.Size)
	case graph.Given:
		text = "GIVEN " + zone
	}
	if w.Processing {
		text += " processing"
	}
	return state.Fingerprint(keyTypes, text)
}

// putBound fills a column with one bound of a window: the wall clock in
// TIMESTAMP, the instant in TIMESTAMP_LTZ columns.
func putBound(v *batch.Vec, t types.Type, n int, wall, instant int64) {
	v.Reset(t, n)
	if t.Kind == types.TimestampLTZ {
		wall = instant
	}
	wall *= t.UnitsPerSecond() / 1000
	for i := range v.I64 {
		v.I64[i] = wall
	}
}

// putBounds fills window_start and window_end, and window_time where there is a
// third column.
func putBounds(cols []batch.Vec, fields []types.Field, n int, s Span) {
	for i := range cols {
		switch i {
		case 0:
			putBound(&cols[i], fields[i].Type, n, s.Start, s.EndTime-(s.End-s.Start))
		case 1:
			putBound(&cols[i], fields[i].Type, n, s.End, s.EndTime)
		case 2:
			putBound(&cols[i], fields[i].Type, n, s.End-1, s.EndTime-1)
		}
	}
}
