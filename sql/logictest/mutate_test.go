package logictest

import (
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

// TestMutatedStatementsNeverPanic compiles statements of the corpus with
// tokens dropped, doubled, swapped and taken from other statements. Whatever
// comes out is refused with a diagnostic or compiles; planning never fails by
// itself (code internal).
func TestMutatedStatementsNeverPanic(t *testing.T) {
	var all []string
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
			all = append(all, b.sql)
		}
	}
	if len(all) == 0 {
		t.Fatal("no statements")
	}
	const seed = 20240501
	rng := rand.New(rand.NewPCG(seed, 1))
	tokens := func(sql string) []string {
		f := diag.NewFile("x", sql)
		toks, _ := syntax.Lex(f, syntax.Options{})
		var out []string
		for _, tok := range toks {
			if tok.Kind != syntax.EOF {
				out = append(out, sql[tok.Start:tok.End])
			}
		}
		return out
	}
	session := compile.NewSession()
	opts := compile.Options{Registry: sqltest.Registry(sqltest.NewGiven()), Mode: compile.ModeSQL, ResultSink: sqltest.NewCollect(), Session: session}
	for _, sql := range all {
		compile.Compile([]compile.Source{{Name: "s", Text: sql}}, opts)
	}
	var last string
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("seed %d: %v\n%s", uint64(seed), p, last)
		}
	}()
	rounds := 4000
	if testing.Short() {
		rounds = 500
	}
	for range rounds {
		toks := tokens(all[rng.IntN(len(all))])
		if len(toks) < 2 {
			continue
		}
		other := tokens(all[rng.IntN(len(all))])
		for range 1 + rng.IntN(3) {
			i, j := rng.IntN(len(toks)), rng.IntN(len(toks))
			switch rng.IntN(4) {
			case 0:
				toks[i] = ""
			case 1:
				toks[i] += " " + toks[j]
			case 2:
				toks[i], toks[j] = toks[j], toks[i]
			default:
				if len(other) > 0 {
					toks[i] = other[rng.IntN(len(other))]
				}
			}
		}
		last = strings.Join(toks, " ")
		s := &compile.Session{Catalog: session.Catalog.Clone(), Settings: session.Settings.Clone()}
		o := opts
		o.Session = s
		_, ds := compile.Compile([]compile.Source{{Name: "mutated", Text: last}}, o)
		for _, d := range ds {
			if d.Code == diag.CodeInternal {
				t.Errorf("seed %d: %s\n%s", uint64(seed), d.Message, last)
			}
		}
	}
}
