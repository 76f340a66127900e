package ledger

import (
	"cmp"
	"slices"
)

// Reason says why rows were filtered or are dead: a stable code, and the
// column where it applies.
type Reason struct{ Code, Column string }

// ReasonWhere is the reason of rows that a WHERE did not let pass.
const ReasonWhere = "where"

// ReasonUnnest is the reason of rows whose UNNEST gave no element.
const ReasonUnnest = "unnest_empty"

// ReasonInTime is the reason of rows that a table of late rows does not take.
const ReasonInTime = "in_time"

// Tally is a number of rows for a reason.
type Tally struct {
	Reason
	Rows int64
}

// Tallies are sorted by reason, without zero rows.
type Tallies []Tally

// Sum is the rows of all reasons.
func (t Tallies) Sum() int64 {
	var n int64
	for i := range t {
		n += t[i].Rows
	}
	return n
}

// Add adds rows for a reason, keeping the order.
func (t *Tallies) Add(r Reason, rows int64) {
	if rows == 0 {
		return
	}
	i, ok := slices.BinarySearchFunc(*t, r, func(x Tally, r Reason) int {
		return cmp.Or(cmp.Compare(x.Code, r.Code), cmp.Compare(x.Column, r.Column))
	})
	if !ok {
		*t = slices.Insert(*t, i, Tally{Reason: r})
	}
	(*t)[i].Rows += rows
	if (*t)[i].Rows == 0 {
		*t = slices.Delete(*t, i, i+1)
	}
}

// AddAll adds o to t.
func (t *Tallies) AddAll(o Tallies) {
	for i := range o {
		t.Add(o[i].Reason, o[i].Rows)
	}
}

// Counts are the rows of one output and source partition, in decoded rows
// except where said.
type Counts struct {
	// Records of the log, of which Lost are gone for good (they are in no
	// other number).
	Records, Lost int64
	Read          int64
	Written       int64
	// Folded: merged into a keyed stage by a completed checkpoint.
	Folded   int64
	Late     int64
	Filtered Tallies
	Dead     Tallies
	// Expanded is the rows that the table got for the Written ones; another
	// number only behind UNNEST and where one row is inserted several times.
	Expanded int64
}

// Add adds o to c.
func (c *Counts) Add(o *Counts) {
	c.Records += o.Records
	c.Lost += o.Lost
	c.Read += o.Read
	c.Written += o.Written
	c.Folded += o.Folded
	c.Late += o.Late
	c.Expanded += o.Expanded
	c.Filtered.AddAll(o.Filtered)
	c.Dead.AddAll(o.Dead)
}

// Clone returns a copy that shares nothing.
func (c *Counts) Clone() Counts {
	d := *c
	d.Filtered, d.Dead = slices.Clone(c.Filtered), slices.Clone(c.Dead)
	return d
}

// Open is what the equation leaves for open rows: read minus everything that
// became of rows. 0 below a resume position.
func (c *Counts) Open() int64 {
	return c.Read - c.Written - c.Folded - c.Late - c.Filtered.Sum() - c.Dead.Sum()
}

// Fate is what became of a decoded row.
type Fate uint8

// The fates; their order is that of MinuteCounts.
const (
	FateWritten Fate = iota
	FateFolded
	FateFiltered
	FateDead
	FateLate
	NumFates
)

// MinuteCounts are rows by fate of one minute. Rows read are their sum.
type MinuteCounts [NumFates]int64

// Add adds o to m.
func (m *MinuteCounts) Add(o *MinuteCounts) {
	for i := range m {
		m[i] += o[i]
	}
}
