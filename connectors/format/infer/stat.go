package infer

import (
	"bytes"
	"math"
	"strconv"

	"github.com/millrace/millrace/connectors/format/scalar"
)

// place is where a sample lies.
type place struct {
	partition int32
	offset    int64
}

func (p place) String() string {
	return strconv.Itoa(int(p.partition)) + ":" + strconv.FormatInt(p.offset, 10)
}

// stat is what was seen at one path.
type stat struct {
	name  string
	first place // where a value other than null was seen first
	// parents is how many objects could have had the key; for elements how
	// many there were.
	parents int64
	nulls   int64
	values  int64 // other than null
	kinds   map[string]int64
	firstOf map[string]place // by kind
	// integers
	min, max float64
	digits   int   // of the longest integer
	longest  place // where it was seen first
	// fits counts strings by the form of time they have, see forms.
	fits   map[form]int64
	frac   int // most fraction digits of a time
	object *objectStat
	elem   *stat
}

type objectStat struct {
	count  int64
	order  []string
	fields map[string]*stat
}

func newStat(name string) *stat {
	return &stat{name: name, kinds: map[string]int64{}, firstOf: map[string]place{}, fits: map[form]int64{}, min: math.Inf(1), max: math.Inf(-1)}
}

// add takes one value into account.
func (s *stat) add(v *value, at place, depth int) {
	if v.kind == 'n' {
		s.nulls++
		return
	}
	if s.values == 0 {
		s.first = at
	}
	s.values++
	switch v.kind {
	case 't':
		s.saw("boolean", at)
	case '0':
		s.addNumber(v.text, at)
	case '"':
		s.saw("string", at)
		for f, n := range formsOf(v.text) {
			s.fits[f]++
			s.frac = max(s.frac, n)
		}
	case '[':
		s.saw("array", at)
		if depth >= maxDepth {
			return
		}
		if s.elem == nil {
			s.elem = newStat("")
		}
		for _, e := range v.elems {
			s.elem.parents++
			s.elem.add(e, at, depth+1)
		}
	case '{':
		s.saw("object", at)
		if depth >= maxDepth {
			return
		}
		if s.object == nil {
			s.object = &objectStat{fields: map[string]*stat{}}
		}
		s.object.add(v, at, depth+1)
	}
}

func (s *stat) addNumber(text []byte, at place) {
	if bytes.ContainsAny(text, ".eE") {
		s.saw("number", at)
		if _, ok := scalar.Float64(text); !ok {
			s.saw("number beyond DOUBLE", at)
		}
		return
	}
	s.saw("integer", at)
	x, _ := strconv.ParseFloat(string(text), 64)
	s.min, s.max = min(s.min, x), max(s.max, x)
	n := len(bytes.TrimLeft(text, "-"))
	if _, ok := scalar.Int(text); !ok {
		n = max(n, 20) // more than BIGINT holds
	}
	if n > s.digits {
		s.digits, s.longest = n, at
	}
}

// saw counts a value of a kind.
func (s *stat) saw(kind string, at place) {
	if s.kinds[kind] == 0 {
		s.firstOf[kind] = at
	}
	s.kinds[kind]++
}

func (o *objectStat) add(v *value, at place, depth int) {
	o.count++
	for _, k := range v.keys {
		f := o.fields[k]
		if f == nil {
			f = newStat(k)
			o.fields[k] = f
			o.order = append(o.order, k)
		}
		f.add(v.fields[k], at, depth)
	}
}

// finish sets what depends on the whole of the samples.
func (o *objectStat) finish() {
	for _, f := range o.fields {
		f.parents = o.count
		f.finish()
	}
}

func (s *stat) finish() {
	if s.object != nil {
		s.object.finish()
	}
	if s.elem != nil {
		s.elem.finish()
	}
}

// form is a form of text that a column of times can have.
type form uint8

const (
	formDate form = iota
	formTime
	formSQL      // 2024-05-01 08:00:00
	formSQLZoned // 2024-05-01 08:00:00Z
	formISO      // 2024-05-01T08:00:00
	formISOZoned // 2024-05-01T08:00:00Z
	formOffset   // 2024-05-01T08:00:00+08:00, or Z
)

// standard is the json.timestamp-format.standard of a form, as a set: ISO
// forms can be read under both ISO standards.
func (f form) standards() []scalar.Standard {
	switch f {
	case formSQL, formSQLZoned:
		return []scalar.Standard{scalar.SQL}
	case formISO, formISOZoned:
		return []scalar.Standard{scalar.ISO8601, scalar.ISO8601WithOffset}
	case formOffset:
		return []scalar.Standard{scalar.ISO8601WithOffset}
	}
	return nil
}

func (f form) zoned() bool { return f == formSQLZoned || f == formISOZoned || f == formOffset }

var timestampForms = []struct {
	f     form
	std   scalar.Standard
	zoned bool
}{
	{formSQL, scalar.SQL, false}, {formSQLZoned, scalar.SQL, true}, {formISO, scalar.ISO8601, false},
	{formISOZoned, scalar.ISO8601, true}, {formOffset, scalar.ISO8601WithOffset, true},
}

// formsOf gives the forms that a text has, with its number of fraction digits.
func formsOf(text []byte) map[form]int {
	if len(text) < 8 || len(text) > 40 || text[0] < '0' || text[0] > '9' {
		return nil
	}
	var out map[form]int
	add := func(f form) {
		if out == nil {
			out = map[form]int{}
		}
		out[f] = fractionDigits(text)
	}
	if _, ok := scalar.Date(text); ok {
		add(formDate)
	}
	if _, ok := scalar.TimeOfDay(text, 3); ok {
		add(formTime)
	}
	for _, f := range timestampForms {
		if _, res := scalar.Timestamp(text, f.std, f.zoned, 9); res == scalar.OK {
			add(f.f)
		}
	}
	return out
}

func fractionDigits(text []byte) int {
	i := bytes.LastIndexByte(text, '.')
	if i < 0 {
		return 0
	}
	n := 0
	for i++; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
		n++
	}
	return n
}
