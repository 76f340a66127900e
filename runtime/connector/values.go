package connector

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// OptionError is a fault in the options of a table. The SQL front end adds
// the position of the key or the value.
type OptionError struct {
	Key string
	// OnValue: the fault is the value, not the key.
	OnValue bool
	// Unknown: no such option; the front end adds the nearest name.
	Unknown bool
	// Missing: a required option is absent; Key is its name.
	Missing bool
	// Message is a sentence without the key's position.
	Message string
	// Hint is what to write instead, or "".
	Hint string
	// Among are the values that there are, for the one nearest to Word; Word "" is
	// the whole value.
	Among []string
	Word  string
}

func (e *OptionError) Error() string { return e.Message }

// WordError is what Option.Check says of a word inside a value that is none of those
// that may stand there.
type WordError struct {
	Word  string
	Among []string
}

func (e *WordError) Error() string {
	return fmt.Sprintf("%q is none of %s", e.Word, strings.Join(e.Among, ", "))
}

// Values are the checked options of a table, defaults applied.
type Values struct {
	set  map[string]string
	opts []Option
}

// Keys are the keys that a table of this connector may use, with the options
// of the named format; sorted, families with their '*'.
func (s *Spec) Keys(format string) []string {
	var keys []string
	for _, o := range s.options(format) {
		keys = append(keys, o.Key)
	}
	sort.Strings(keys)
	return keys
}

func (s *Spec) options(format string) []Option {
	opts := append([]Option{{Key: "connector", Required: true, Doc: "The connector's name."}}, s.Options...)
	if len(s.Formats) == 0 {
		return opts
	}
	f := Option{Key: "format", Type: OptEnum, Default: s.DefaultFormat, Required: s.DefaultFormat == "", Refused: s.RefusedFormats, Doc: "How values are encoded."}
	for _, x := range s.Formats {
		f.Enum = append(f.Enum, x.Name)
	}
	opts = append(opts, f)
	if format == "" {
		format = s.DefaultFormat
	}
	for _, x := range s.Formats {
		if x.Name == format {
			opts = append(opts, x.Options...)
		}
	}
	return opts
}

// Resolve checks the options of a WITH clause against the spec. It reports
// every fault, in the order of the keys given.
func (s *Spec) Resolve(with map[string]string) (Values, []*OptionError) {
	opts := s.options(with["format"])
	v := Values{set: map[string]string{}, opts: opts}
	var errs []*OptionError
	keys := make([]string, 0, len(with))
	for k := range with {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		o := find(opts, k)
		if o == nil {
			errs = append(errs, &OptionError{Key: k, Unknown: true,
				Message: fmt.Sprintf("unknown option %q for connector %q", k, s.Name)})
			continue
		}
		if err := o.check(with[k]); err != nil {
			oe := &OptionError{Key: k, OnValue: true, Message: err.Error(), Among: o.Enum}
			var word *WordError
			if errors.As(err, &word) {
				oe.Word, oe.Among = word.Word, word.Among
			}
			errs = append(errs, oe)
			continue
		}
		v.set[k] = with[k]
	}
	for i := range opts {
		if _, ok := with[opts[i].Key]; !ok && opts[i].Required {
			errs = append(errs, &OptionError{Key: opts[i].Key, Missing: true,
				Message: fmt.Sprintf("connector %q needs option %q", s.Name, opts[i].Key)})
		}
	}
	if len(errs) == 0 {
		for _, validate := range s.validators(with["format"]) {
			if err := validate(v); err != nil {
				var oe *OptionError
				if !errors.As(err, &oe) {
					oe = &OptionError{Key: "connector", OnValue: true, Message: err.Error()}
				}
				errs = append(errs, oe)
			}
		}
	}
	return v, errs
}

// validators are the checks of the connector and of the format in use.
func (s *Spec) validators(format string) []func(Values) error {
	var out []func(Values) error
	if s.Validate != nil {
		out = append(out, s.Validate)
	}
	if format == "" {
		format = s.DefaultFormat
	}
	for i := range s.Formats {
		if f := &s.Formats[i]; f.Name == format && f.Validate != nil {
			out = append(out, f.Validate)
		}
	}
	return out
}

func find(opts []Option, key string) *Option {
	for i := range opts {
		k := opts[i].Key
		if k == key || strings.HasSuffix(k, "*") && len(key) >= len(k) && strings.HasPrefix(key, k[:len(k)-1]) {
			return &opts[i]
		}
	}
	return nil
}

func (o *Option) check(value string) error {
	var err error
	switch o.Type {
	case OptBool:
		if value != "true" && value != "false" {
			err = fmt.Errorf("%q is neither true nor false", value)
		}
	case OptInt:
		var n int64
		if n, err = strconv.ParseInt(value, 10, 64); err != nil {
			err = fmt.Errorf("%q is not an integer", value)
		} else if (o.Min != 0 || o.Max != 0) && (n < o.Min || n > o.Max) {
			err = fmt.Errorf("%d is outside %d to %d", n, o.Min, o.Max)
		}
	case OptFloat:
		if _, err = strconv.ParseFloat(value, 64); err != nil {
			err = fmt.Errorf("%q is not a number", value)
		}
	case OptDuration:
		_, err = ParseDuration(value)
	case OptBytes:
		_, err = ParseBytes(value)
	case OptEnum:
		if why := o.Refused[value]; why != "" {
			err = errors.New(why)
		} else if !slices.Contains(o.Enum, value) {
			err = fmt.Errorf("%q is none of %s", value, strings.Join(o.Enum, ", "))
		}
	}
	if err == nil && o.Check != nil {
		err = o.Check(value)
	}
	return err
}

// Has reports whether the table sets the key itself.
func (v Values) Has(key string) bool { _, ok := v.set[key]; return ok }

// With is the values with some set to others; "" takes a key away. What is set must
// be what Resolve accepts.
func (v Values) With(set map[string]string) Values {
	out := Values{set: maps.Clone(v.set), opts: v.opts}
	for k, x := range set {
		if x == "" {
			delete(out.set, k)
		} else {
			out.set[k] = x
		}
	}
	return out
}

// Family returns the set keys that start with prefix, without it.
func (v Values) Family(prefix string) map[string]string {
	out := map[string]string{}
	for k, x := range v.set {
		if strings.HasPrefix(k, prefix) {
			out[k[len(prefix):]] = x
		}
	}
	return out
}

// String is the value of a key, its default when not set. Asking for an
// undeclared key is a programming error and panics.
func (v Values) String(key string) string {
	if s, ok := v.set[key]; ok {
		return s
	}
	if o := find(v.opts, key); o != nil {
		return o.Default
	}
	panic("BUG: undeclared option " + key)
}

// Bool, Int, Float, Duration and Bytes are String parsed; values were
// checked by Resolve. An absent option without default is the zero value.
func (v Values) Bool(key string) bool { return v.String(key) == "true" }

// Int is an OptInt value.
func (v Values) Int(key string) int64 {
	n, _ := strconv.ParseInt(v.String(key), 10, 64)
	return n
}

// Float is an OptFloat value.
func (v Values) Float(key string) float64 {
	f, _ := strconv.ParseFloat(v.String(key), 64)
	return f
}

// Duration is an OptDuration value.
func (v Values) Duration(key string) time.Duration {
	d, _ := ParseDuration(v.String(key))
	return d
}

// Bytes is an OptBytes value in bytes.
func (v Values) Bytes(key string) int64 {
	n, _ := ParseBytes(v.String(key))
	return n
}

// List is an OptList value; empty when not set.
func (v Values) List(key string) []string {
	s := v.String(key)
	if s == "" {
		return nil
	}
	parts := strings.Split(s, ";")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

var durationUnits = map[string]time.Duration{
	"": time.Millisecond, "ms": time.Millisecond, "milli": time.Millisecond, "millis": time.Millisecond,
	"millisecond": time.Millisecond, "milliseconds": time.Millisecond,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
	"us": time.Microsecond, "micro": time.Microsecond, "micros": time.Microsecond, "microsecond": time.Microsecond, "microseconds": time.Microsecond,
	"ns": time.Nanosecond, "nano": time.Nanosecond, "nanos": time.Nanosecond, "nanosecond": time.Nanosecond, "nanoseconds": time.Nanosecond,
}

var byteUnits = map[string]int64{
	"": 1, "b": 1, "bytes": 1,
	"k": 1 << 10, "kb": 1 << 10, "kibibytes": 1 << 10,
	"m": 1 << 20, "mb": 1 << 20, "mebibytes": 1 << 20,
	"g": 1 << 30, "gb": 1 << 30, "gibibytes": 1 << 30,
	"t": 1 << 40, "tb": 1 << 40, "tebibytes": 1 << 40,
}

func number(s string) (n int64, unit string, err error) {
	s = strings.TrimSpace(s)
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	n, err = strconv.ParseInt(s[:i], 10, 64)
	return n, strings.ToLower(strings.TrimSpace(s[i:])), err
}

// ParseDuration reads Flink's form of a duration: a whole number and a unit,
// "10 s", "1min", "500 ms"; without a unit it is milliseconds.
func ParseDuration(s string) (time.Duration, error) {
	n, unit, err := number(s)
	u, ok := durationUnits[unit]
	if err != nil || !ok || u > 0 && n > int64(1<<63-1)/int64(u) {
		return 0, fmt.Errorf("%q is not a duration such as 10 s, 5 min, 1 h, 1 d", s)
	}
	return time.Duration(n) * u, nil
}

// ParseBytes reads Flink's form of a memory size: a whole number and a unit
// in powers of 1024, "128MB", "64 kb"; without a unit it is bytes.
func ParseBytes(s string) (int64, error) {
	n, unit, err := number(s)
	u, ok := byteUnits[unit]
	if err != nil || !ok || n > (1<<63-1)/u {
		return 0, fmt.Errorf("%q is not a size such as 128MB, 64 kb, 1024", s)
	}
	return n * u, nil
}
