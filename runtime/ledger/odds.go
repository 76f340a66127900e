package ledger

import (
	"iter"
	"slices"
)

// Odd is the outcome of one offset that is not exactly one written row which
// became exactly one row of the table.
type Odd struct {
	Offset   int64
	Written  int64
	Expanded int64
	Late     int64
	Filtered Tallies
	Dead     Tallies
}

// Read is the decoded rows of the offset.
func (o *Odd) Read() int64 { return o.Written + o.Late + o.Filtered.Sum() + o.Dead.Sum() }

// Odds are exceptions by ascending offset, kept as they are encoded: where rows
// are made of arrays every offset is one. The zero value is empty; of copies
// that share their memory only one may be added to.
type Odds struct {
	n      int
	last   int64 // offset of the last one
	packed []byte
}

// OddsOf returns a list of exceptions.
func OddsOf(list ...Odd) (l Odds) {
	for i := range list {
		l.Add(&list[i])
	}
	return l
}

// Len is the number of exceptions.
func (l *Odds) Len() int { return l.n }

// Add adds an exception; it is cheap when they come in ascending order.
func (l *Odds) Add(o *Odd) {
	if l.n > 0 && o.Offset < l.last {
		one := OddsOf(*o)
		l.Merge(&one)
		return
	}
	l.packed = appendInt(l.packed, o.Offset-l.last)
	l.packed = appendInt(appendInt(appendInt(l.packed, o.Written), o.Expanded), o.Late)
	l.packed = appendTallies(appendTallies(l.packed, o.Filtered), o.Dead)
	l.n, l.last = l.n+1, o.Offset
}

// Merge adds the exceptions of another list.
func (l *Odds) Merge(more *Odds) {
	switch {
	case more.n == 0:
		return
	case l.n == 0:
		*l = Odds{more.n, more.last, slices.Clone(more.packed)}
		return
	}
	next, stop := iter.Pull(more.All())
	defer stop()
	var out Odds
	x, ok := next()
	for o := range l.All() {
		for ; ok && x.Offset < o.Offset; x, ok = next() {
			out.Add(x)
		}
		out.Add(o)
	}
	for ; ok; x, ok = next() {
		out.Add(x)
	}
	*l = out
}

// Clip gives back memory that was kept for more, for a list that is kept.
func (l Odds) Clip() Odds {
	if cap(l.packed) > len(l.packed)+len(l.packed)/8 {
		l.packed = slices.Clone(l.packed)
	}
	return l
}

// All gives the exceptions in ascending order.
func (l *Odds) All() iter.Seq[*Odd] {
	return func(yield func(*Odd) bool) {
		d := decoder{b: l.packed}
		var last int64
		for range l.n {
			o := d.odd(last)
			last = o.Offset
			if !yield(&o) {
				return
			}
		}
	}
}

func (d *decoder) odd(last int64) (o Odd) {
	o = Odd{Offset: last + d.int64(), Written: d.int64(), Expanded: d.int64(), Late: d.int64()}
	o.Filtered, o.Dead = d.tallies(), d.tallies()
	return o
}

// odds reads a list and checks it.
func (d *decoder) odds() (l Odds) {
	n := d.count()
	start := d.b
	for range n {
		o := d.odd(l.last)
		if d.bad || o.Offset < l.last {
			d.bad = true
			return Odds{}
		}
		l.last = o.Offset
	}
	if n > 0 {
		l.n, l.packed = n, slices.Clone(start[:len(start)-len(d.b)])
	}
	return l
}
