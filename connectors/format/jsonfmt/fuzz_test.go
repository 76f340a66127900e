package jsonfmt

import (
	"bytes"
	"encoding/json"
	"io"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/valyala/fastjson"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// oracle holds one schema of each way to read field "f": as text, as raw text,
// as numbers, nested, and not at all.
type oracle struct {
	text, skip, number, nested *fixture
	parser                     fastjson.Parser
}

func newOracle(t testing.TB) *oracle {
	return &oracle{
		text:   newFixture(t, []types.Field{field("f", types.NewString())}),
		skip:   newFixture(t, []types.Field{field("g", types.NewString())}),
		number: newFixture(t, []types.Field{field("f", types.NewDouble()), field("g", types.NewDecimal(38, 10))}),
		nested: newFixture(t, []types.Field{field("f", types.NewRow(
			field("a", types.NewArray(types.NewString())), field("f", types.NewMap(types.NewString(), types.NewArray(types.NewInt()))), field("g", types.NewBoolean())))}),
	}
}

// plainText replaces what the decoder takes and encoding/json does not: control
// characters in strings. ok is false for what is decided before syntax.
func plainText(b []byte) (text []byte, ok bool) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(b) || len(bytes.TrimLeft(b, " \t\r\n")) == 0 {
		return nil, false
	}
	text = slices.Clone(b)
	inString, escape := false, false
	for i, c := range text {
		switch {
		case c < 0x20 && (inString || c != '\t' && c != '\n' && c != '\r'):
			text[i] = 'x'
			escape = false
		case escape:
			escape = false
		case c == '\\':
			escape = inString
		case c == '"':
			inString = !inString
		}
	}
	return text, true
}

// documents splits a text as the decoder must, with encoding/json. valid is
// false when the record is malformed.
func documents(text []byte) (docs []json.RawMessage, valid bool) {
	trimmed := bytes.Trim(text, " \t\r\n")
	if trimmed[0] == '[' {
		if json.Unmarshal(trimmed, &docs) != nil || depth(trimmed) > maxDepth {
			return nil, false
		}
		for _, d := range docs {
			if d[0] != '{' {
				return nil, false
			}
		}
		return docs, true
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	for {
		var d json.RawMessage
		err := dec.Decode(&d)
		if err == io.EOF {
			return docs, true
		}
		if err != nil || d[0] != '{' || depth(d) > maxDepth {
			return nil, false
		}
		docs = append(docs, d)
		if end := dec.InputOffset(); end < int64(len(text)) && !strings.ContainsRune(" \t\r\n", rune(text[end])) {
			return nil, false
		}
	}
}

// depth is how deep a valid text nests.
func depth(b []byte) (deepest int) {
	d, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			d++
			deepest = max(deepest, d)
		case c == '}' || c == ']':
			d--
		}
	}
	return deepest
}

func (o *oracle) check(t *testing.T, record []byte) {
	text, ok := plainText(record)
	var docs []json.RawMessage
	valid := false
	switch {
	case ok:
		docs, valid = documents(text)
	case utf8.Valid(record):
		valid = true // white space only: empty
	}
	for _, f := range []*fixture{o.text, o.skip, o.number, o.nested} {
		f.begin()
		n := f.d.Decode(record, 0, f.a)
		f.a.EndRun(1, 0)
		f.a.Finish()
		if n != len(docs) && valid || !valid && n > 0 {
			t.Fatalf("%q: %d rows, notes %v; encoding/json: %v, %d documents", record, n, f.b.Notes, valid, len(docs))
		}
		if n == 0 && (f.b.Notes[0].Code == batch.CodeMalformed) == valid {
			t.Fatalf("%q: %v; encoding/json: %v", record, f.b.Notes, valid)
		}
	}
	if !ok || bytes.ContainsFunc(record, func(r rune) bool { return r < 0x20 }) {
		return
	}
	for i, d := range docs {
		o.compare(t, d, i)
	}
}

// compare checks the values of one document.
func (o *oracle) compare(t *testing.T, doc json.RawMessage, row int) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(doc, &m); err != nil {
		t.Fatal(err)
	}
	got := &o.text.b.Cols[0]
	raw, has := m["f"]
	// encoding/json matches keys after replacing broken surrogates, as U+FFFD.
	if !has || string(raw) == "null" {
		if !got.IsNull(row) || got.Err(row) != nil {
			t.Fatalf("%s: %s, want NULL", doc, show(got, row))
		}
		return
	}
	if raw[0] != '"' {
		if string(got.Bytes(row)) != string(raw) || got.IsNull(row) {
			t.Fatalf("%s: %s, want the text as it stands", doc, show(got, row))
		}
		o.compareNumber(t, doc, raw, row)
		return
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	if e := got.Err(row); e != nil {
		if !strings.Contains(s, "\ufffd") {
			t.Fatalf("%s: %s, want %q", doc, show(got, row), s)
		}
		return
	}
	if string(got.Bytes(row)) != s {
		t.Fatalf("%s: %s, want %q", doc, show(got, row), s)
	}
	if v, err := o.parser.ParseBytes(doc); err == nil && strings.Count(string(doc), `"f"`) == 1 && !strings.Contains(string(doc), `\u`) {
		if x := v.GetStringBytes("f"); string(x) != s {
			t.Fatalf("%s: fastjson has %q, encoding/json %q", doc, x, s)
		}
	}
}

func (o *oracle) compareNumber(t *testing.T, doc, raw json.RawMessage, row int) {
	if c := raw[0]; c != '-' && (c < '0' || c > '9') {
		return
	}
	var want float64
	got := &o.number.b.Cols[0]
	if err := json.Unmarshal(raw, &want); err != nil {
		if got.Err(row) == nil {
			t.Fatalf("%s: %s, want an error", doc, show(got, row))
		}
		return
	}
	if got.IsNull(row) || got.F64[row] != want {
		t.Fatalf("%s: %s, want %v", doc, show(got, row), want)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) { newOracle(t).check(t, b) })
}

var seeds = []string{
	`{"f":"x","g":1}`, `[{"f":1},{"f":-1.5e-3}]`, `{"f":"\ud83d\ude00\n"} {"f":[1,{"a":null}]}`, "\xef\xbb\xbf{}", `{"f":{"a":["x",1,null],"f":{"k":[1,2],"k":[]},"g":true}}`,
	`{"f":1e400}`, `{"f":0.1,"f":"日本"}`, `{"f":"` + strings.Repeat("a", 70) + `é"}`, `[]`, ` `, `{"x":[[[[[]]]]],"f":false}`, `{"f":"\ud800"}`,
}

// TestMutatedRecords changes bytes of real and made-up records and compares
// what is accepted, and with which values, with encoding/json and fastjson.
func TestMutatedRecords(t *testing.T) {
	seed := uint64(20210721)
	r := rand.New(rand.NewPCG(seed, 1))
	o := newOracle(t)
	var corpus [][]byte
	for _, s := range seeds {
		corpus = append(corpus, []byte(s))
	}
	for i, e := range githubEvents(t) {
		if i%40 == 0 {
			corpus = append(corpus, bytes.Replace(e, []byte(`"type":`), []byte(`"f":`), 1))
		}
	}
	alphabet := []byte("{}[]\",:\\ \t\n0123456789.eE+-truefalsnd\x00\x1f\x80\xc3\xa9\xe4\xb8\xad\xff/u")
	n := 40000
	if testing.Short() {
		n = 4000
	}
	for range n {
		b := slices.Clone(corpus[r.IntN(len(corpus))])
		for range 1 + r.IntN(3) {
			i := r.IntN(len(b) + 1)
			switch r.IntN(5) {
			case 0:
				b = slices.Insert(b, i, alphabet[r.IntN(len(alphabet))])
			case 1:
				if i < len(b) {
					b[i] = alphabet[r.IntN(len(alphabet))]
				}
			case 2:
				if i < len(b) {
					b = slices.Delete(b, i, min(len(b), i+1+r.IntN(3)))
				}
			case 3:
				b = b[:i]
			case 4:
				k := min(len(b), i+r.IntN(40))
				b = slices.Insert(b, r.IntN(len(b)+1), b[i:k]...)
			}
			if len(b) == 0 {
				b = []byte("{}")
			}
		}
		o.check(t, b)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestDecimalsAgainstBigRat compares rounding with exact arithmetic.
func TestDecimalsAgainstBigRat(t *testing.T) {
	seed := uint64(7)
	r := rand.New(rand.NewPCG(seed, 2))
	for range 20000 {
		p := 1 + r.IntN(38)
		s := r.IntN(p + 1)
		f := newFixture(t, []types.Field{field("m", types.NewDecimal(p, s))})
		var b strings.Builder
		if r.IntN(2) == 0 {
			b.WriteByte('-')
		}
		digits := func(n int) {
			for range n {
				b.WriteByte("0123456789555000"[r.IntN(16)])
			}
		}
		b.WriteByte("123456789"[r.IntN(9)])
		digits(r.IntN(p + 1))
		if r.IntN(3) > 0 {
			b.WriteByte('.')
			digits(1 + r.IntN(s+3))
		}
		if r.IntN(3) == 0 {
			b.WriteString([]string{"e5", "E-7", "e+2", "e-40", "e0"}[r.IntN(5)])
		}
		text := b.String()
		x, _ := new(big.Rat).SetString(text)
		f.decode(`{"m":` + text + `}`)
		got := show(&f.b.Cols[0], 0)
		want := roundHalfUp(x, s)
		limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(p)), nil)
		if new(big.Int).Abs(want).Cmp(limit) >= 0 {
			if !strings.HasPrefix(got, "E(") {
				t.Fatalf("seed %d: %s into DECIMAL(%d, %d): %s, want an error", seed, text, p, s, got)
			}
			continue
		}
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(s)), nil)
		exact := new(big.Rat).SetFrac(want, scale)
		if got != exact.FloatString(s) {
			t.Fatalf("seed %d: %s into DECIMAL(%d, %d): %s, want %s", seed, text, p, s, got, exact.FloatString(s))
		}
		if (f.count(0, format.Rounded) == 1) != (exact.Cmp(x) != 0) {
			t.Fatalf("seed %d: %s into DECIMAL(%d, %d): rounded %d", seed, text, p, s, f.count(0, format.Rounded))
		}
	}
}

func roundHalfUp(x *big.Rat, scale int) *big.Int {
	y := new(big.Rat).Mul(x, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
	n := new(big.Int).Abs(y.Num())
	n.Add(n.Lsh(n, 1), y.Denom())
	n.Quo(n, new(big.Int).Lsh(y.Denom(), 1))
	if x.Sign() < 0 {
		n.Neg(n)
	}
	return n
}
