package fn_test

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/internal/exprtext"
	"github.com/millrace/millrace/runtime/types"
)

// textProgram compiles an expression over columns s and p of STRING.
func textProgram(t testing.TB, src string) *expr.Program {
	t.Helper()
	schema := textSchema()
	e, err := exprtext.Parse(library(t), schema, src)
	if err != nil {
		t.Fatal(err)
	}
	p, err := expr.Compile([]expr.Expr{e}, schema, expr.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func textSchema() *batch.Schema {
	return &batch.Schema{Fields: []types.Field{{Name: "s", Type: types.NewString()}, {Name: "p", Type: types.NewString()}}}
}

func textBatch(s, p []string) *batch.Batch {
	b := &batch.Batch{Schema: textSchema(), Len: len(s), Cols: make([]batch.Vec, 2)}
	for c, vals := range [][]string{s, p} {
		b.Cols[c].Reset(types.NewString(), len(vals))
		for i, v := range vals {
			b.Cols[c].PutString(i, v)
		}
	}
	return b
}

func draw(r *rand.Rand, alphabet []string, n int) string {
	var b strings.Builder
	for ; n > 0; n-- {
		b.WriteString(alphabet[r.IntN(len(alphabet))])
	}
	return b.String()
}

func TestLikeAgainstRegexp(t *testing.T) {
	const seed = 21
	r := rand.New(rand.NewPCG(seed, 0))
	var texts, pats []string
	for i := 0; i < 3000; i++ {
		texts = append(texts, draw(r, []string{"a", "b", "日", "%", "_", `\`}, r.IntN(7)))
		pats = append(pats, draw(r, []string{"a", "b", "日", "%", "_", `!%`, `!_`, `\`, "%"}, r.IntN(6)))
	}
	out := make([]batch.Vec, 1)
	textProgram(t, "LIKE(s, p, '!')").Eval(expr.NewContext(nil, 0), textBatch(texts, pats), nil, out)
	for i := range texts {
		re := "(?s)^"
		escaped := false
		for _, c := range pats[i] {
			switch {
			case escaped:
				re, escaped = re+regexp.QuoteMeta(string(c)), false
			case c == '!':
				escaped = true
			case c == '%':
				re += ".*"
			case c == '_':
				re += "."
			default:
				re += regexp.QuoteMeta(string(c))
			}
		}
		if want := regexp.MustCompile(re + "$").MatchString(texts[i]); out[0].Bool(i) != want {
			t.Fatalf("seed %d: %q LIKE %q is %v", seed, texts[i], pats[i], !want)
		}
	}
}

func TestIsJSONAgainstStandardLibrary(t *testing.T) {
	const seed = 22
	r := rand.New(rand.NewPCG(seed, 0))
	pieces := []string{"{", "}", "[", "]", ",", ":", `"a"`, `"\u00e9"`, `"\q"`, "1", "-0", "01", "1.5e3", "1.", "true", "nul", "null", " ", "\t", `"x`, `\`, "1e", "{}", "[]", `{"a":1}`}
	var texts []string
	for i := 0; i < 20000; i++ {
		texts = append(texts, draw(r, pieces, r.IntN(7)))
	}
	out := make([]batch.Vec, 1)
	textProgram(t, "s IS JSON").Eval(expr.NewContext(nil, 0), textBatch(texts, texts), nil, out)
	valid := 0
	for i, s := range texts {
		// A raw tab inside a string is the one thing that is taken beyond the RFC.
		want := json.Valid([]byte(s))
		if want {
			valid++
		}
		if got := out[0].Bool(i); got != want && !strings.Contains(s, "\t") {
			t.Fatalf("seed %d: %q IS JSON is %v", seed, s, got)
		}
	}
	if valid < 500 {
		t.Fatalf("only %d valid texts", valid)
	}
}

func FuzzJSONAndPath(f *testing.F) {
	f.Add(`{"a":[1,{"b":"\u0041"}]}`, "$.a[1].b")
	f.Add(`[1,2]`, "lax $[*]")
	value, query := textProgram(f, "JSON_VALUE(s, p)"), textProgram(f, "JSON_QUERY(s, p)")
	ctx := expr.NewContext(nil, 0)
	f.Fuzz(func(t *testing.T, doc, path string) {
		out := make([]batch.Vec, 1)
		value.Eval(ctx, textBatch([]string{doc}, []string{path}), nil, out)
		out[0] = batch.Vec{}
		query.Eval(ctx, textBatch([]string{doc}, []string{path}), nil, out)
		if json.Valid([]byte(doc)) && !out[0].IsNull(0) && !json.Valid(out[0].Bytes(0)) {
			t.Fatalf("JSON_QUERY(%q, %q) is no JSON: %q", doc, path, out[0].Bytes(0))
		}
	})
}

// TestProgramIsSharedByGoroutines runs one program with a context each.
func TestProgramIsSharedByGoroutines(t *testing.T) {
	p := textProgram(t, "CASE WHEN REGEXP(s, p) THEN UPPER(s) || JSON_VALUE(s, '$.a') WHEN s LIKE p THEN s ELSE COALESCE(p, s) END")
	var wg sync.WaitGroup
	got := make([]string, 4)
	for g := range got {
		wg.Add(1)
		go func() {
			defer wg.Done()
			ctx := expr.NewContext(nil, 0)
			out := make([]batch.Vec, 1)
			var b strings.Builder
			for n := 1; n < 50; n++ {
				var s, pat []string
				for i := 0; i < n; i++ {
					s, pat = append(s, strings.Repeat("a", i%5)), append(pat, strings.Repeat("a", i%3)+"%")
				}
				p.Eval(ctx, textBatch(s, pat), nil, out)
				for i := 0; i < n; i++ {
					b.WriteString(out[0].Text(i))
				}
			}
			got[g] = b.String()
		}()
	}
	wg.Wait()
	for g := range got {
		if got[g] != got[0] || got[g] == "" {
			t.Fatalf("goroutine %d saw another result", g)
		}
	}
}
