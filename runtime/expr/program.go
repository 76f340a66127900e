package expr

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/types"
)

// Options of Compile; the zero value works.
type Options struct {
	// NoSharing evaluates each reference of a common subexpression anew. The
	// results are the same; it is for tests and for runs with the optimizer
	// off.
	NoSharing bool
}

// Program is a compiled list of expressions. It is immutable and safe for use
// by many goroutines, each with its own Context.
type Program struct {
	nodes  []node
	roots  []int
	owner  []bool // root i writes into out[i]'s memory
	gone   []int  // nodes whose memory leaves with the results
	types  []types.Type
	scopes int
	input  *batch.Schema
}

// node is one step. Lazy operands are evaluated in scopes of their own.
type node struct {
	e      Expr
	args   []int
	scopes []int // scope of args[i] where it is lazy, else -1
	scope  int
	typ    types.Type
	kernel fn.Kernel
}

// Compile prepares expressions over the columns of input.
func Compile(exprs []Expr, input *batch.Schema, opts Options) (*Program, error) {
	c := &compiler{p: &Program{input: input}, opts: opts, ids: map[string]int{}, keys: map[Expr]int{}, random: map[Expr]bool{}}
	root := c.newScope(nil)
	for _, e := range exprs {
		c.collect(root, e)
	}
	seen := map[int]bool{}
	for _, e := range exprs {
		if err := check(e, input); err != nil {
			return nil, err
		}
		id := c.compile(e, root)
		c.p.roots = append(c.p.roots, id)
		c.p.owner = append(c.p.owner, !seen[id] && !c.aliases(id))
		c.p.gone = c.bases(c.p.gone, id)
		seen[id] = true
		c.p.types = append(c.p.types, e.Type())
	}
	c.p.scopes = c.scopes
	return c.p, nil
}

// check verifies that columns exist with the type the tree claims.
func check(e Expr, input *batch.Schema) error {
	var err error
	Walk(e, func(n Expr) bool {
		c, ok := n.(*Column)
		if !ok || err != nil {
			return err == nil
		}
		if c.Index < 0 || c.Index >= len(input.Fields) {
			err = fmt.Errorf("column %d (%s) is not among the %d columns of the input", c.Index, c.Name, len(input.Fields))
		} else if t := input.Fields[c.Index].Type; !t.EqualIgnoringNull(c.T) {
			err = fmt.Errorf("column %s is %s in the input, the expression takes it as %s", c.Name, t, c.T)
		}
		return true
	})
	return err
}

// Types are the types of the results.
func (p *Program) Types() []types.Type { return p.types }

// Eval computes the program over the rows of sel (nil: all) of in.
//
// out has one Vec an expression. On return out[i].Len is in.Len; rows outside
// sel are unspecified but readable. A result may be Flat, Const or Dict.
//
// Memory: a result that is a bare column, a field of one, a cast that changes
// the type alone, or equal to an earlier result shares the memory of that, and
// a Dict result shares the codes of its column; any other result is written
// into memory of out[i] itself, which is re-used. So pass either zero Vecs, or the
// Vecs that an earlier Eval of this program filled and that nobody reads any
// more; never Vecs that others hold.
//
// Errors in data are values in out[i].Errs; Eval itself cannot fail.
func (p *Program) Eval(ctx *Context, in *batch.Batch, sel batch.Sel, out []batch.Vec) {
	st := ctx.states[p]
	if st == nil {
		st = newState(p)
		ctx.states[p] = st
	}
	if sel == nil {
		sel = ctx.All(in.Len)
	}
	st.stamp = ctx.NextEval()
	st.in, st.n, st.sels[0] = in, in.Len, sel
	r := run{p: p, st: st, ctx: ctx}
	for i, id := range p.roots {
		if p.owner[i] {
			st.own[id] = out[i]
		}
	}
	for i, id := range p.roots {
		res := r.eval(id)
		out[i] = *res
	}
	for _, id := range p.gone {
		st.own[id] = batch.Vec{} // the memory is the caller's now
	}
	st.in = nil
}

type compiler struct {
	p      *Program
	opts   Options
	scopes int
	ids    map[string]int // numbers of keys
	keys   map[Expr]int   // of nodes that were seen
	random map[Expr]bool  // what perCall said
}

// key is a number that is equal exactly for expressions of equal meaning over
// one schema. Operands count by their numbers, so that a deep tree costs no more
// than its nodes.
func (c *compiler) key(e Expr) int {
	if id, ok := c.keys[e]; ok {
		return id
	}
	var b strings.Builder
	writeKey(&b, e)
	for _, a := range Children(e) {
		b.WriteByte(',')
		b.WriteString(strconv.Itoa(c.key(a)))
	}
	id, ok := c.ids[b.String()]
	if !ok {
		id = len(c.ids)
		c.ids[b.String()] = id
	}
	c.keys[e] = id
	return id
}

// perCall reports whether e gives another value at each evaluation.
func (c *compiler) perCall(e Expr) bool {
	if p, ok := c.random[e]; ok {
		return p
	}
	call, is := e.(*Call)
	p := is && call.Determinism() == fn.PerCall
	for _, a := range Children(e) {
		p = c.perCall(a) || p
	}
	c.random[e] = p
	return p
}

// scope is a set of rows over which nodes are evaluated: the root's is the
// whole selection, a lazy operand's the rows that need it.
type scope struct {
	id     int
	parent *scope
	eager  map[int]bool // what is evaluated here in any case
	memo   map[int]int
}

func (c *compiler) newScope(parent *scope) *scope {
	s := &scope{id: c.scopes, parent: parent, eager: map[int]bool{}, memo: map[int]int{}}
	c.scopes++
	return s
}

// collect notes what evaluating e in s always evaluates.
func (c *compiler) collect(s *scope, e Expr) {
	s.eager[c.key(e)] = true
	for i, a := range Children(e) {
		if i == 0 || !lazy(e) {
			c.collect(s, a)
		}
	}
}

// lazy reports whether operands after the first may stay unevaluated.
func lazy(e Expr) bool {
	switch e.(type) {
	case *Logic, *Case, *Coalesce:
		return true
	}
	return false
}

func (c *compiler) compile(e Expr, s *scope) int {
	k := c.key(e)
	if !c.opts.NoSharing && !c.perCall(e) {
		// The outermost scope that evaluates e anyway: its result holds for
		// every narrower one.
		for a := s; a != nil; a = a.parent {
			if a.eager[k] {
				s = a
			}
		}
		if id, ok := s.memo[k]; ok {
			return id
		}
	}
	n := node{e: e, scope: s.id, typ: e.Type()}
	for i, a := range Children(e) {
		sc, id := s, -1
		if i > 0 && lazy(e) {
			sc = c.newScope(s)
			c.collect(sc, a)
			id = sc.id
		}
		n.args = append(n.args, c.compile(a, sc))
		n.scopes = append(n.scopes, id)
	}
	switch e := e.(type) {
	case *Call:
		n.kernel = e.Bound.Kernel
	case *Cast:
		n.kernel = e.kernel
	case *In:
		n.kernel = newInSet(e).kernel
	}
	c.p.nodes = append(c.p.nodes, n)
	id := len(c.p.nodes) - 1
	s.memo[k] = id
	return id
}

// aliases reports whether a node's result is memory of another node or of
// the input.
func (c *compiler) aliases(id int) bool {
	switch e := c.p.nodes[id].e.(type) {
	case *Column, *Field, *RowOf:
		return true
	case *Cast:
		return e.kernel == nil
	}
	return false
}

// bases appends the nodes whose own memory the result of id shows.
func (c *compiler) bases(dst []int, id int) []int {
	dst = append(dst, id)
	if c.aliases(id) {
		for _, a := range c.p.nodes[id].args {
			dst = c.bases(dst, a)
		}
	}
	return dst
}
