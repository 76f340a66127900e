package logictest

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
	"github.com/millrace/millrace/sql/syntax"
)

// unstable are words whose queries may give other rows each time: chance, the
// clock, and limits without a total order.
var unstable = []string{"RAND", "UNIX_TIMESTAMP", "UUID", "NOW", "PROCTIME", "CURRENT_", "LOCALTIME", "LIMIT", "OFFSET", "FETCH"}

// TestMutatedQueriesAgree runs mutated queries of the corpus over the tables
// of their file with the optimizer on and off, in batches of one row and of a
// thousand, restarted and not: the same rows come out and the same number of
// rows die (Invariant 7).
func TestMutatedQueriesAgree(t *testing.T) {
	mutatedQueries(t, 4711, 250, func(w Way) Executor { return Direct{} })
}

// TestMutatedQueriesOnEngine compares the direct evaluation with the engine.
func TestMutatedQueriesOnEngine(t *testing.T) {
	e := &Engine{}
	mutatedQueries(t, 4712, 60, func(w Way) Executor {
		if w.Name == "straight" {
			return Direct{}
		}
		return e
	})
	t.Logf("%d runs on the engine, %d crashes", e.Runs, e.Crashes)
}

func mutatedQueries(t *testing.T, seed uint64, rounds int, executor func(Way) Executor) {
	files, _ := filepath.Glob("testdata/*.slt")
	if len(files) == 0 {
		t.Fatal("no files")
	}
	ran := 0
	if testing.Short() {
		rounds /= 5
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		blocks, err := parse(string(text))
		if err != nil {
			t.Fatal(err)
		}
		f := &file{r: &Runner{Executor: Direct{}, Ways: Ways()}, t: t, name: name,
			given: sqltest.NewGiven(), out: sqltest.NewCollect(), session: compile.NewSession()}
		var queries []string
		for _, b := range blocks {
			switch {
			case !b.query && b.wantError == "":
				f.statement(b)
			case b.query && b.job == "":
				queries = append(queries, b.sql)
			}
		}
		if len(queries) == 0 {
			continue
		}
		// Of each file its own: another file changes nothing for the others.
		h := fnv.New64a()
		h.Write([]byte(filepath.Base(name)))
		rng := rand.New(rand.NewPCG(seed, h.Sum64()))
		for range rounds {
			sql := mutate(rng, queries)
			if slices.ContainsFunc(unstable, func(w string) bool { return strings.Contains(strings.ToUpper(sql), w) }) {
				continue
			}
			if f.agree(sql, seed, executor) {
				ran++
			}
		}
	}
	if ran < rounds/4 {
		t.Errorf("only %d mutated queries ran", ran)
	}
	t.Logf("%d mutated queries ran", ran)
}

// mutate changes one or two tokens of a query.
func mutate(rng *rand.Rand, queries []string) string {
	tokens := func(sql string) []string {
		toks, _ := syntax.Lex(diag.NewFile("x", sql), syntax.Options{})
		var out []string
		for _, tok := range toks {
			if tok.Kind != syntax.EOF {
				out = append(out, sql[tok.Start:tok.End])
			}
		}
		return out
	}
	toks := tokens(queries[rng.IntN(len(queries))])
	other := tokens(queries[rng.IntN(len(queries))])
	for range 1 + rng.IntN(2) {
		i, j := rng.IntN(len(toks)), rng.IntN(len(toks))
		switch rng.IntN(4) {
		case 0:
			toks[i] = ""
		case 1:
			toks[i], toks[j] = toks[j], toks[i]
		default:
			toks[i] = other[rng.IntN(len(other))]
		}
	}
	return strings.Join(toks, " ")
}

// agree runs a query several ways and compares; false if it does not compile
// or is none.
func (f *file) agree(sql string, seed uint64, executor func(Way) Executor) bool {
	f.t.Helper()
	var first string
	for i, w := range f.r.Ways {
		if w.Backfill {
			continue // nothing is late there
		}
		b := &block{sql: sql, query: true, dead: map[string]int{}}
		s := &compile.Session{Catalog: f.session.Catalog.Clone(), Settings: f.session.Settings.Clone()}
		u, ds := f.compile(b, s, w)
		if ds.HasErrors() || len(u.Statements) != 1 || u.Statements[0].Kind != compile.KindQuery {
			return false
		}
		f.out.Clear()
		out, err := executor(w).Run(context.Background(), lenient(u.Statements[0].Job, b), w.Run)
		if err != nil {
			f.t.Errorf("seed %d, %s: %s: %v\n%s", seed, f.name, w.Name, err, sql)
			return true
		}
		rows := f.out.Rows("result").Text(u.Zone())
		slices.Sort(rows)
		got := fmt.Sprintf("%s\ndead %d late %d", strings.Join(rows, "\n"), len(out.Dead), out.Late)
		if i == 0 {
			first = got
		} else if got != first {
			f.t.Errorf("seed %d, %s: %s gives\n%s\nstraight gives\n%s\n%s", seed, f.name, w.Name, got, first, sql)
			return true
		}
	}
	return true
}
