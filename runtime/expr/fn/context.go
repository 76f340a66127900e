package fn

import (
	"fmt"
	"math/rand/v2"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// Context is what kernels may know besides their arguments, and their
// scratch memory. It belongs to one goroutine.
type Context struct {
	// Zone is the session time zone.
	Zone *types.Zone
	// Now is the clock reading of the batch, microseconds since 1970 UTC; the
	// caller sets it once before each Eval.
	Now int64
	// Rand feeds RAND, RAND_INTEGER and UUID.
	Rand *rand.Rand
	// ParseNulls counts values for which TRY_CAST, TO_TIMESTAMP and TO_DATE
	// gave NULL because their text has no image.
	ParseNulls int64

	site    *Site
	scratch *any
	stamp   uint64
	evals   uint64
	json    []*jsonCache
	jsonAt  int
	all     batch.Sel
}

// NewContext returns a context with session zone UTC when zone is nil.
// seed feeds the random functions.
func NewContext(zone *types.Zone, seed uint64) *Context {
	if zone == nil {
		zone = types.UTC()
	}
	return &Context{Zone: zone, Rand: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))}
}

// Fail records an error value for a row of out; rows must come ascending.
func (c *Context) Fail(out *batch.Vec, row int32, code batch.Code, format string, args ...any) {
	out.SetErr(int(row), code, c.Where(), fmt.Sprintf(format, args...))
}

// Slot is memory of type T that is kept for the call being evaluated; the first
// time it is zero.
func Slot[T any](c *Context) *T {
	if t, ok := (*c.scratch).(*T); ok {
		return t
	}
	t := new(T)
	*c.scratch = t
	return t
}

// Where is the text of the expression being evaluated.
func (c *Context) Where() string {
	if c.site == nil {
		return ""
	}
	return c.site.Text()
}

// Site is a place that calls a kernel; it belongs to one goroutine.
type Site struct {
	// Expr is the call. Its text, which errors name, is made when the first one
	// does: that of a deep tree is long, at each of its nodes.
	Expr fmt.Stringer
	text string
}

// Text is that of the expression.
func (s *Site) Text() string {
	if s.text == "" {
		s.text = s.Expr.String()
	}
	return s.text
}

// All is the selection of rows 0..n-1; valid until the next call with a
// larger n and not to be written.
func (c *Context) All(n int) batch.Sel {
	for len(c.all) < n {
		c.all = append(c.all, int32(len(c.all)))
	}
	return c.all[:n:n]
}

// NextEval gives the number of a new evaluation, unique in the context; for
// runtime/expr.
func (c *Context) NextEval() uint64 {
	c.evals++
	return c.evals
}

// Call runs a kernel with the context of its call site. Errors name site,
// scratch is a slot that is kept between calls of that site, stamp the
// number of the evaluation, during which argument memory does not change. It
// is for runtime/expr.
func (c *Context) Call(k Kernel, site *Site, scratch *any, stamp uint64,
	args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	w, s := c.site, c.scratch
	if stamp != c.stamp {
		c.jsonAt = 0
	}
	c.site, c.scratch, c.stamp = site, scratch, stamp
	k(c, args, sel, out)
	c.site, c.scratch = w, s
}

// Cut shortens a value for a message to 64 bytes, on a rune boundary.
func Cut[T string | []byte](s T) string {
	if len(s) <= 64 {
		return string(s)
	}
	n := 64
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return string(s[:n]) + "..."
}
