package slot

import (
	"cmp"
	"slices"
)

// Load is the measured traffic of one lane.
type Load struct {
	// Name orders lanes of equal load, so that packing is stable.
	Name string
	// Share is the part of one slot's time that the lane needs, 0..1 and above
	// (EWMA of computing time); before anything was measured, by partitions.
	Share float64
	// Files is the open files it holds.
	Files int
	// Pin is a slot that the lane must stay in, -1: none.
	Pin int
}

// PackOptions bound slots.
type PackOptions struct {
	// Slots is how many there are.
	Slots int
	// Hot is the share from which a lane gets a slot of its own; 0: 0.5.
	Hot float64
	// OpenFiles bounds a slot; 0: unbounded.
	OpenFiles int
	// Hysteresis is how much fuller, in shares, a slot must be than the best
	// alternative before a lane moves; 0: 0.2.
	Hysteresis float64
}

// Pack places lanes on slots: first-fit decreasing, hot lanes alone as long as
// there are slots, and a lane stays where it is unless moving makes a real
// difference. now is the placement so far, -1 for new lanes. The result has
// a slot for each lane.
func Pack(lanes []Load, now []int, o PackOptions) []int {
	o.Slots = max(o.Slots, 1)
	if o.Hot == 0 {
		o.Hot = 0.5
	}
	if o.Hysteresis == 0 {
		o.Hysteresis = 0.2
	}
	order := make([]int, len(lanes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(lanes[b].Share, lanes[a].Share), cmp.Compare(lanes[a].Name, lanes[b].Name))
	})
	p := packing{o: o, share: make([]float64, o.Slots), files: make([]int, o.Slots), hot: make([]bool, o.Slots)}
	out := make([]int, len(lanes))
	for _, i := range order {
		out[i] = p.place(lanes[i], current(now, i))
	}
	return out
}

func current(now []int, i int) int {
	if i < len(now) {
		return now[i]
	}
	return -1
}

type packing struct {
	o     PackOptions
	share []float64
	files []int
	hot   []bool
}

func (p *packing) place(l Load, at int) int {
	best := -1
	for s := range p.share {
		if best < 0 || p.better(l, s, best) {
			best = s
		}
	}
	switch {
	case l.Pin >= 0 && l.Pin < p.o.Slots:
		best = l.Pin
	case at >= 0 && at < p.o.Slots && p.fits(l, at) && p.hot[at] == p.hot[best] &&
		p.share[at]-p.share[best] <= p.o.Hysteresis:
		best = at
	}
	p.share[best] += l.Share
	p.files[best] += l.Files
	// The last slot without a hot lane stays open for the small ones.
	if l.Share >= p.o.Hot && p.cold() > 1 {
		p.hot[best] = true
	}
	return best
}

func (p *packing) fits(l Load, s int) bool {
	return p.o.OpenFiles == 0 || p.files[s]+l.Files <= p.o.OpenFiles
}

// better reports whether slot a is a better place than b: one with room for
// the files, then one without a hot lane, then the emptier one.
func (p *packing) better(l Load, a, b int) bool {
	if fa, fb := p.fits(l, a), p.fits(l, b); fa != fb {
		return fa
	}
	if p.hot[a] != p.hot[b] {
		return !p.hot[a]
	}
	return p.share[a] < p.share[b]
}

func (p *packing) cold() int {
	n := 0
	for _, h := range p.hot {
		if !h {
			n++
		}
	}
	return n
}
