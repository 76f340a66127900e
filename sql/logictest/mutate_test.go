package logictest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
	"github.com/millrace/millrace/sql/syntax"
)

// corpus is the statements of the golden files, cut into tokens, and a session
// that has what they declare.
type corpus struct {
	statements [][]string
	opts       compile.Options
}

func newCorpus(t testing.TB) *corpus {
	t.Helper()
	c := &corpus{opts: compile.Options{Registry: sqltest.Registry(sqltest.NewGiven()), Mode: compile.ModeSQL, ResultSink: sqltest.NewCollect(), Session: compile.NewSession()}}
	files, _ := filepath.Glob("testdata/*.slt")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		blocks, err := parse(string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			compile.Compile([]compile.Source{{Name: "s", Text: b.sql}}, c.opts)
			if toks := tokens(b.sql); len(toks) > 1 {
				c.statements = append(c.statements, toks)
			}
		}
	}
	if len(c.statements) == 0 {
		t.Fatal("no statements")
	}
	return c
}

func tokens(sql string) []string {
	toks, _ := syntax.Lex(diag.NewFile("x", sql), syntax.Options{})
	var out []string
	for _, tok := range toks {
		if tok.Kind != syntax.EOF {
			out = append(out, sql[tok.Start:tok.End])
		}
	}
	return out
}

// mutated is a statement with tokens dropped, doubled, swapped and taken from
// another one, as below decides: it gives a number from 0 to n-1.
func (c *corpus) mutated(below func(n int) int) string {
	toks := append([]string{}, c.statements[below(len(c.statements))]...)
	other := c.statements[below(len(c.statements))]
	for range 1 + below(3) {
		i, j := below(len(toks)), below(len(toks))
		switch below(4) {
		case 0:
			toks[i] = ""
		case 1:
			toks[i] += " " + toks[j]
		case 2:
			toks[i], toks[j] = toks[j], toks[i]
		default:
			toks[i] = other[below(len(other))]
		}
	}
	return strings.Join(toks, " ")
}

// compile compiles a text in a copy of the session: the plan of what it runs,
// and the diagnostics.
func (c *corpus) compile(text string, optimize bool) (string, diag.List) {
	o := c.opts
	o.Session = &compile.Session{Catalog: c.opts.Session.Catalog.Clone(), Settings: c.opts.Session.Settings.Clone()}
	o.NoOptimizer = !optimize
	u, ds := compile.Compile([]compile.Source{{Name: "mutated", Text: text}}, o)
	var plan strings.Builder
	for _, s := range u.Statements {
		if s.Job != nil {
			for _, n := range s.Job.Nodes {
				fmt.Fprintf(&plan, "%T %v\n", n.Op, n.Schema)
			}
		}
	}
	return plan.String(), ds
}

// check compiles a text: whatever it is, it is refused with diagnostics that
// lie in it or compiles, and never fails by itself (code internal); it does the
// same once more and as the formatter writes it, and the optimizer refuses
// nothing.
func (c *corpus) check(t testing.TB, text string) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%v\n%s", p, text)
			panic(p)
		}
	}()
	plan, ds := c.compile(text, true)
	for _, d := range ds {
		if d.Code == diag.CodeInternal {
			t.Errorf("%s\n%s", d.Message, text)
		}
		if d.Span.Start < 0 || d.Span.Start > d.Span.End || d.Span.End > len(text) {
			t.Errorf("%s at %d-%d of %d bytes\n%s", d.Message, d.Span.Start, d.Span.End, len(text), text)
		}
	}
	said := diag.Renderer{Width: 80}.String(ds)
	if p, again := c.compile(text, true); p != plan || (diag.Renderer{Width: 80}).String(again) != said {
		t.Errorf("compiled twice:\n%s\n%s\nand\n%s\n%s\n%s", said, plan, diag.Renderer{Width: 80}.String(again), p, text)
	}
	if _, plain := c.compile(text, false); codes(plain) != codes(ds) {
		t.Errorf("%q with the optimizer, %q without\n%s", codes(ds), codes(plain), text)
	}
	formatted, bad := syntax.Format(diag.NewFile("mutated", text))
	if bad.HasErrors() {
		return
	}
	if p, other := c.compile(formatted, true); p != plan || codes(other) != codes(ds) {
		t.Errorf("%q and a plan of\n%s, formatted %q\n%s\n%s\n%s", codes(ds), plan, codes(other), p, text, formatted)
	}
}

// codes are the codes of the errors, in order.
func codes(ds diag.List) string {
	var out []string
	for _, d := range ds {
		if d.Severity == diag.Error {
			out = append(out, string(d.Code))
		}
	}
	return strings.Join(out, " ")
}

// TestMutatedStatements checks statements of the corpus that were changed by
// chance.
func TestMutatedStatements(t *testing.T) {
	c := newCorpus(t)
	rounds := 1000
	if testing.Short() {
		rounds = 200
	}
	for seed := uint64(20240501); seed < 20240501+uint64(rounds); seed++ {
		if c.check(t, c.mutated(rand.New(rand.NewPCG(seed, 1)).IntN)); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// FuzzBind is TestMutatedStatements with the fuzzer's bytes in place of chance.
func FuzzBind(f *testing.F) {
	c := newCorpus(f)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 2))
		data := make([]byte, 32)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c.check(t, c.mutated(func(n int) int {
			x := 0
			for range min(2, len(data)) {
				x = x<<8 | int(data[0])
				data = data[1:]
			}
			return x % n
		}))
	})
}
