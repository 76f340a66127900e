package expr

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/types"
)

// Context is what evaluation needs besides a program and its input: session
// time zone, the batch's clock reading, random source, working memory. It
// belongs to one goroutine; it serves any number of programs and keeps
// working memory for each that it has run (Forget drops it).
type Context struct {
	fn.Context
	states map[*Program]*state
}

// NewContext returns a context. A nil zone is UTC; the zone is copied. seed
// feeds RAND and UUID. Set Now before each batch.
func NewContext(zone *types.Zone, seed uint64) *Context {
	if zone != nil {
		zone = zone.Clone()
	}
	return &Context{Context: *fn.NewContext(zone, seed), states: map[*Program]*state{}}
}

// Forget drops the working memory of a program.
func (c *Context) Forget(p *Program) { delete(c.states, p) }

// state is the working memory of one program in one context.
type state struct {
	stamp uint64
	in    *batch.Batch
	n     int
	done  []uint64     // by node: stamp of the evaluation it was done in
	res   []*batch.Vec // by node: the result
	own   []batch.Vec  // by node: memory of the result
	tmp   [][]batch.Vec
	sels  []batch.Sel  // by scope
	bufs  [][2][]int32 // by node: selections being built
	pre   [][]batch.ValueError
	args  [][]*batch.Vec
	slots []any     // by node: scratch of kernels
	sites []fn.Site // by node
	merge []*merge
	lists [][][]int32 // by node: rows of the branches of a CASE
}

func newState(p *Program) *state {
	n := len(p.nodes)
	st := &state{
		done: make([]uint64, n), res: make([]*batch.Vec, n), own: make([]batch.Vec, n),
		tmp: make([][]batch.Vec, n), sels: make([]batch.Sel, p.scopes), bufs: make([][2][]int32, n),
		pre: make([][]batch.ValueError, n), args: make([][]*batch.Vec, n), slots: make([]any, n),
		sites: make([]fn.Site, n), merge: make([]*merge, n), lists: make([][][]int32, n),
	}
	for i := range p.nodes {
		st.sites[i].Expr = p.nodes[i].e
	}
	return st
}
