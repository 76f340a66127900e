package jobtest

import (
	"io"
	"sort"
	"sync"

	"github.com/millrace/millrace/runtime/connector"
)

// given is the given records of one test by source table. It gives them out step by
// step: behind those of the current step the input of every table waits, and it ends
// behind the last step. It is safe for concurrent use while steps do not change.
type given struct {
	tables map[string]*givenTable
	steps  int
	// step is the current one; steps: there is none any more.
	step int

	mu sync.Mutex
	// unread are the partitions that may have more to read in this step.
	unread map[partition]bool
	read   chan struct{} // closed when nothing is unread
}

// partition is one of a source table.
type partition struct {
	table string
	id    int32
}

func newGiven(t *Test) *given {
	g := &given{tables: map[string]*givenTable{}, steps: len(t.steps)}
	add := func(step int, from []givenTable) {
		for _, x := range from {
			tab := g.tables[x.table]
			if tab == nil {
				tab = &givenTable{table: x.table, line: x.line}
				g.tables[x.table] = tab
			}
			for _, rec := range x.records {
				rec.step = step
				tab.records = append(tab.records, rec)
			}
		}
	}
	add(0, t.given)
	for i, st := range t.steps {
		add(i, st.given)
	}
	return g
}

// begin begins a step, between two runs of the job. The channel is closed when every
// record up to this step was read and given to everything that takes it.
func (g *given) begin(step int) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.step, g.unread, g.read = step, map[partition]bool{}, make(chan struct{})
	return g.read
}

// expect is told of each table before anything is read.
func (g *given) expect(s *givenSource) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for p := range s.parts {
		g.unread[partition{s.table.Name, int32(p)}] = true
	}
}

// there is how many records of a partition there are in this step.
func (g *given) there(records []givenRecord) int64 {
	return int64(sort.Search(len(records), func(i int) bool { return records[i].step > g.step }))
}

// over is what a reader that has nothing more says. It is asked for more when all that
// it gave was processed.
func (g *given) over(table string, splits []givenSplit) error {
	if g.step >= g.steps {
		return io.EOF
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.unread) == 0 {
		return connector.ErrNoData
	}
	for i := range splits {
		delete(g.unread, partition{table, splits[i].partition})
	}
	if len(g.unread) == 0 {
		close(g.read)
	}
	return connector.ErrNoData
}
