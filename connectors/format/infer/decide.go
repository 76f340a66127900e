package infer

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/connectors/format/scalar"
	"github.com/millrace/millrace/runtime/types"
)

const (
	// maxDepth is how deep types are nested; what lies deeper is STRING.
	maxDepth = 12
	// mapKeys is the number of different keys from which an object may be a
	// MAP: if most keys are rare, they are data and no names.
	mapKeys = 48
)

// decider turns statistics into types under one timestamp standard.
type decider struct{ standard scalar.Standard }

// fields are the types of an object's keys.
func (d *decider) fields(o *objectStat) (out []types.Field) {
	for _, k := range o.order {
		if k != "" { // SQL has no empty name
			out = append(out, types.Field{Name: k, Type: d.typeOf(o.fields[k])})
		}
	}
	return out
}

// bigintDigits is the most digits that integers of a BIGINT column have; a
// number of so many that does not fit counts as longer.
const bigintDigits = 19

func (d *decider) typeOf(s *stat) types.Type {
	kinds := make([]string, 0, len(s.kinds))
	for k := range s.kinds {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	switch strings.Join(kinds, ",") {
	case "boolean":
		return types.NewBoolean()
	case "integer":
		switch {
		case s.digits <= bigintDigits:
			return types.NewBigInt()
		case s.digits <= types.MaxPrecision:
			return types.NewDecimal(types.MaxPrecision, 0)
		}
	case "number":
		return types.NewDouble()
	case "integer,number":
		// A DOUBLE holds 15 digits for certain.
		if s.digits <= 15 {
			return types.NewDouble()
		}
	case "string":
		return d.stringType(s)
	case "array":
		if s.elem == nil || s.elem.values == 0 {
			return types.NewArray(types.NewString())
		}
		return types.NewArray(d.typeOf(s.elem))
	case "object":
		if s.object != nil {
			return d.objectType(s.object)
		}
	}
	return types.NewString()
}

func (d *decider) stringType(s *stat) types.Type {
	f, ok := s.timeForm(d.standard)
	if !ok {
		return types.NewString()
	}
	precision := 3
	if s.frac > 6 {
		precision = 9
	} else if s.frac > 3 {
		precision = 6
	}
	switch {
	case f == formDate:
		return types.NewDate()
	case f == formTime:
		if s.frac > 3 {
			return types.NewString()
		}
		return types.NewTime(3 * min(1, s.frac))
	case f.zoned():
		return types.NewTimestampLTZ(precision)
	}
	return types.NewTimestamp(precision)
}

// timeForm is the form that all texts have and that can be read under std.
func (s *stat) timeForm(std scalar.Standard) (form, bool) {
	for f := formDate; f <= formOffset; f++ {
		if s.fits[f] != s.values || s.values == 0 {
			continue
		}
		if f == formDate || f == formTime || slices.Contains(f.standards(), std) {
			return f, true
		}
	}
	return 0, false
}

func (d *decider) objectType(o *objectStat) types.Type {
	if o.isMap() {
		all := newStat("")
		for _, f := range o.fields {
			all.merge(f)
		}
		t := d.typeOf(all)
		if t.IsNested() {
			// Objects of different keys have no type of their own here.
			t = types.NewString()
		}
		return types.NewMap(types.NewString(), t)
	}
	fields := d.fields(o)
	if len(fields) == 0 {
		return types.NewMap(types.NewString(), types.NewString())
	}
	return types.NewRow(fields...)
}

// isMap reports whether keys are data: there are many, and most of them are in
// few of the objects.
func (o *objectStat) isMap() bool {
	if len(o.order) < mapKeys {
		return false
	}
	rare := 0
	for _, f := range o.fields {
		if (f.values+f.nulls)*10 <= o.count || o.count < 10 && f.values+f.nulls == 1 {
			rare++
		}
	}
	return rare*2 > len(o.order)
}

// merge takes the scalars of another path into account; what is nested in it
// is not looked at.
func (s *stat) merge(o *stat) {
	s.values += o.values
	s.nulls += o.nulls
	s.min, s.max = min(s.min, o.min), max(s.max, o.max)
	if o.digits > s.digits {
		s.digits, s.longest = o.digits, o.longest
	}
	s.frac = max(s.frac, o.frac)
	for k, n := range o.kinds {
		if s.kinds[k] == 0 {
			s.firstOf[k] = o.firstOf[k]
		}
		s.kinds[k] += n
	}
	for f, n := range o.fits {
		s.fits[f] += n
	}
}

// chooseStandard picks the timestamp form that most values can be read under;
// of two equal ones the stricter.
func chooseStandard(root *objectStat) scalar.Standard {
	var counts [3]int64
	var visit func(s *stat)
	object := func(o *objectStat) {
		for _, k := range o.order {
			visit(o.fields[k])
		}
	}
	visit = func(s *stat) {
		for std := scalar.SQL; std <= scalar.ISO8601WithOffset; std++ {
			if f, ok := s.timeForm(std); ok && f >= formSQL {
				counts[std] += s.values
			}
		}
		if s.object != nil {
			object(s.object)
		}
		if s.elem != nil {
			visit(s.elem)
		}
	}
	object(root)
	best := scalar.SQL
	for std := scalar.ISO8601; std <= scalar.ISO8601WithOffset; std++ {
		if counts[std] > counts[best] {
			best = std
		}
	}
	return best
}

// epoch is the unit of an integer column of times, "" for none. Numbers alone
// do not tell an epoch from an id, so the name must say so, too.
func (s *stat) epoch() string {
	if s.kinds["integer"] != s.values || s.values == 0 || !soundsLikeTime(s.name) {
		return ""
	}
	const from, to = 946684800, 4102444800 // the years 2000 to 2099
	for _, u := range []struct {
		unit  string
		scale float64
	}{{"s", 1}, {"ms", 1e3}, {"us", 1e6}, {"ns", 1e9}} {
		if s.min >= from*u.scale && s.max < to*u.scale {
			return u.unit
		}
	}
	return ""
}

var timeWords = []string{"ts", "time", "timestamp", "at", "date", "epoch", "when", "created", "updated", "modified", "started", "ended", "expires"}

// soundsLikeTime looks at the last word of a name, in snake or camel case.
func soundsLikeTime(name string) bool {
	for _, unit := range []string{"_ms", "_us", "_ns", "_s", "_sec", "_seconds", "_millis", "_micros", "_nanos", "Ms", "Millis", "Sec", "Seconds"} {
		if t := strings.TrimSuffix(name, unit); t != name && t != "" {
			name = t
			break
		}
	}
	last := 0
	for i := 1; i < len(name); i++ {
		if name[i-1] == '_' || name[i-1] == '-' || name[i-1] == '.' || name[i] >= 'A' && name[i] <= 'Z' && name[i-1] >= 'a' {
			last = i
		}
	}
	w := strings.ToLower(name[last:])
	if slices.Contains(timeWords, w) {
		return true
	}
	return strings.HasSuffix(w, "time") || strings.HasSuffix(w, "timestamp")
}
