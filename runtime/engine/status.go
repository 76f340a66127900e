package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
)

// rate is the samples of rows read that a table's speed is taken from.
type rate struct {
	at   []time.Time
	read []int64
}

const (
	rateSamples = 11
	rateEvery   = time.Second
)

// perSecond is the speed over the samples.
func (r *rate) perSecond() float64 {
	n := len(r.at)
	if n < 2 {
		return 0
	}
	if d := r.at[n-1].Sub(r.at[0]).Seconds(); d > 0 {
		// A lane that has just ended is no longer in the sum.
		return float64(max(r.read[n-1]-r.read[0], 0)) / d
	}
	return 0
}

func (r *rate) add(at time.Time, read int64) {
	if n := len(r.at); n > 0 && at.Sub(r.at[n-1]) < rateEvery {
		return
	}
	if len(r.at) == rateSamples {
		r.at, r.read = r.at[1:], r.read[1:]
	}
	r.at, r.read = append(r.at, at), append(r.read, read)
}

// sample takes the tables' rates.
func (r *Run) sample(now time.Time) {
	r.mu.Lock()
	last := r.sampled
	r.mu.Unlock()
	if now.Sub(last) < rateEvery {
		return
	}
	sums := map[string]int64{}
	for _, l := range r.snapshot() {
		rows := l.Rows()
		for i := range rows {
			sums[rows[i].Table.Name] += rows[i].Counts.Read
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sampled = now
	for name, n := range sums {
		x := r.rates[name]
		if x == nil {
			x = &rate{}
			r.rates[name] = x
		}
		x.add(now, n)
	}
}

// Rows are the equations now: those of the ledger, and where a lane runs, its
// own, with the rows that are open.
func (r *Run) Rows() []ledger.Row {
	type key struct {
		table     string
		partition ledger.CursorKey
	}
	keyOf := func(x *ledger.Row) key {
		return key{x.Table.Name, ledger.CursorKey{Output: x.Table.ID, Topic: x.Topic, Partition: x.Partition}}
	}
	live := map[key]ledger.Row{}
	moving := map[*ledger.Table]map[ledger.SourceKey]int64{}
	for _, t := range r.tables {
		if t.standby != nil {
			moving[t.fact] = r.book.Moving(t.fact.ID)
		}
	}
	for _, l := range r.snapshot() {
		for _, row := range l.Rows() {
			n := min(moving[row.Table][ledger.SourceKey{Topic: row.Topic, Partition: row.Partition}], row.Counts.Written)
			row.Counts.Written, row.Open = row.Counts.Written-n, row.Open+n
			live[keyOf(&row)] = row
		}
	}
	var out []ledger.Row
	for _, row := range r.book.Rows() {
		if x, ok := live[keyOf(&row)]; ok {
			row = x
			delete(live, keyOf(&row))
		}
		out = append(out, row)
	}
	for _, row := range live {
		out = append(out, row)
	}
	slices.SortFunc(out, func(a, b ledger.Row) int {
		return cmp.Or(cmp.Compare(a.Table.Name, b.Table.Name), cmp.Compare(a.TopicName, b.TopicName),
			slices.Compare(a.Topic[:], b.Topic[:]), cmp.Compare(a.Partition, b.Partition))
	})
	return out
}

// Status describes the run now.
func (r *Run) Status() Status {
	s := Status{Started: r.start, Rows: r.Rows()}
	for _, l := range r.snapshot() {
		x := l.Status()
		s.Recovering = s.Recovering || x.State == lane.Starting
		s.Lanes = append(s.Lanes, x)
	}
	slices.SortFunc(s.Lanes, func(a, b lane.Status) int { return cmp.Compare(a.Name, b.Name) })
	if r.keyed != nil {
		s.Stages = r.keyed.Status()
	}
	names := make([]string, 0, len(r.tables))
	for name := range r.tables {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		s.Tables = append(s.Tables, r.tableStatus(r.tables[name], &s))
	}
	return s
}

func (r *Run) tableStatus(t *table, s *Status) TableStatus {
	x := TableStatus{Name: t.fact.Name, Exchange: t.sink == nil, Files: t.files.Load()}
	for i := range s.Rows {
		if row := &s.Rows[i]; row.Table.ID == t.fact.ID {
			x.Counts.Add(&row.Counts)
			x.Open += row.Open
		}
	}
	x.Committed = x.Counts.Written
	for i := range s.Lanes {
		for _, o := range s.Lanes[i].Outputs {
			if o.Table != t.fact.Name {
				continue
			}
			x.OpenFiles += o.Files
			if !o.NextFile.IsZero() && (x.NextFile.IsZero() || o.NextFile.Before(x.NextFile)) {
				x.NextFile = o.NextFile
			}
		}
	}
	for _, c := range r.book.Closes(t.fact.ID) {
		if c.Step == ledger.Announced {
			x.Announced++
		} else {
			x.OpenPartitions++
		}
	}
	if t.closer != nil {
		if err := t.closer.lastErr(); err != nil {
			x.AnnounceError = err.Error()
		}
	}
	x.Home = r.homeStatus(t)
	r.mu.Lock()
	if v := r.rates[t.fact.Name]; v != nil {
		x.RowsPerSecond = v.perSecond()
	}
	r.mu.Unlock()
	return x
}
