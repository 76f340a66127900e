package datagen

import (
	"context"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/connectors/numbered"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

const (
	keyRate   = "rows-per-second"
	keyRows   = "number-of-rows"
	keySeed   = "seed"
	keyStart  = "start-time"
	keyFields = "fields."
)

// Clock is the time that rates and timestamps go by.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f once after d, from any goroutine; stop cancels.
	AfterFunc(d time.Duration, f func()) (stop func())
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) func() {
	t := time.AfterFunc(d, f)
	return func() { t.Stop() }
}

// Connector is the connector `datagen`.
type Connector struct {
	clock Clock
	spec  connector.Spec
}

// New makes the connector; a nil clock is the system's.
func New(clock Clock) *Connector {
	if clock == nil {
		clock = systemClock{}
	}
	return &Connector{clock: clock, spec: connector.Spec{
		Name:    "datagen",
		Summary: "Makes rows up: random values and sequences.",
		Doc: "Columns are random by default; `fields.<column>.kind` = `sequence` counts from `start` to `end`. " +
			"A row depends only on the seed and its number, so a replay makes the same rows.",
		Source:    true,
		BoundedBy: keyRows,
		Options: []connector.Option{
			{Key: keyRate, Type: connector.OptInt, Default: "10000", Min: 1, Max: 1 << 40, Doc: "Rows a second."},
			{Key: keyRows, Type: connector.OptInt, Min: 0, Max: math.MaxInt64, Doc: "How many rows there are; unset: no end."},
			{Key: keySeed, Type: connector.OptInt, Default: "0", Doc: "Another seed makes other rows. (Not in Flink.)"},
			{Key: keyStart, Type: connector.OptString, Check: func(s string) error { _, err := parseStart(s); return err },
				Doc: "RFC 3339 time of the first row; times go on from there by `rows-per-second` instead of lying before the clock. (Not in Flink.)"},
			{Key: "scan.parallelism", Type: connector.OptInt, Check: func(string) error { return fmt.Errorf("not_yet: several partitions") }, Doc: "Not yet."},
			{Key: keyFields + "*", Type: connector.OptString, Doc: "`fields.<column>.kind` (`random`, `sequence`), `.min`, `.max`, `.length`, `.var-len`, `.null-rate`, `.max-past`, `.start`, `.end`."},
		},
		Guarantee: "Replays make the same rows, times excepted unless `start-time` is set.",
	}}
}

// Spec implements connector.Connector.
func (c *Connector) Spec() *connector.Spec { return &c.spec }

func parseStart(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, fmt.Errorf("%q is not a time such as 2024-05-01T08:00:00Z", s)
	}
	return t, nil
}

// OpenSource implements connector.SourceConnector.
func (c *Connector) OpenSource(_ context.Context, t *connector.Table) (connector.Source, error) {
	s := &source{Source: numbered.Source{Table: t.Name, Rows: connector.Unbounded,
		Changed: "the table, its columns or its seed have changed", Fewer: "the table has fewer rows now"},
		clock: c.clock, table: t, rate: t.Options.Int(keyRate)}
	if t.Options.Has(keyRows) {
		s.Rows = t.Options.Int(keyRows)
	}
	if t.Options.Has(keyStart) {
		start, err := parseStart(t.Options.String(keyStart))
		if err != nil {
			return nil, err
		}
		s.start = start
	}
	settings, err := fieldSettings(t)
	if err != nil {
		return nil, err
	}
	seed := uint64(t.Options.Int(keySeed))
	for i, col := range t.Columns {
		if col.Metadata != "" {
			return nil, fmt.Errorf("column %s: datagen has no metadata", col.Name)
		}
		f, end, err := s.column(col.Field, settings[col.Name], mix(seed^uint64(i+1)*0x9e3779b97f4a7c15))
		if err != nil {
			return nil, err
		}
		s.fill = append(s.fill, f)
		s.Rows = min(s.Rows, end)
	}
	s.ID = topicOf(t, seed)
	return s, nil
}

// setting is the options of one column.
type setting map[string]string

var settingNames = []string{"kind", "min", "max", "max-past", "length", "var-len", "null-rate", "start", "end"}

// fieldSettings sorts `fields.<column>.<name>` by column. Column names may
// have dots: the longest column that fits is meant.
func fieldSettings(t *connector.Table) (map[string]setting, error) {
	out := map[string]setting{}
	family := t.Options.Family(keyFields)
	keys := make([]string, 0, len(family))
	for k := range family {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		i := strings.LastIndexByte(k, '.')
		known := false
		for _, n := range settingNames {
			known = known || i >= 0 && k[i+1:] == n
		}
		if !known {
			return nil, &connector.OptionError{Key: keyFields + k, Unknown: true,
				Message: fmt.Sprintf("option %q is none of fields.<column>.%s", keyFields+k, strings.Join(settingNames, ", "))}
		}
		name := k[:i]
		found := false
		for _, c := range t.Columns {
			found = found || c.Name == name
		}
		if !found {
			return nil, &connector.OptionError{Key: keyFields + k, Unknown: true, Message: fmt.Sprintf("the table has no column %q", name)}
		}
		if out[name] == nil {
			out[name] = setting{}
		}
		out[name][k[i+1:]] = family[k]
	}
	return out, nil
}

// column compiles one column; end is the row at which its sequence ends.
func (s *source) column(f types.Field, set setting, seed uint64) (fill func(*filler), end int64, err error) {
	fail := func(name, message string) (func(*filler), int64, error) {
		return nil, 0, &connector.OptionError{Key: keyFields + f.Name + "." + name, OnValue: true, Message: message}
	}
	end = connector.Unbounded
	switch set["kind"] {
	case "sequence":
		first, err1 := strconv.ParseInt(set["start"], 10, 64)
		last, err2 := strconv.ParseInt(set["end"], 10, 64)
		switch {
		case err1 != nil:
			return fail("start", "a sequence needs an integer 'start'")
		case err2 != nil:
			return fail("end", "a sequence needs an integer 'end'")
		case last < first:
			return fail("end", "the sequence ends before it starts")
		case last-first < 0:
			return fail("end", "the sequence is too long")
		}
		fill, ok := sequence(f.Type, first, last)
		if !ok {
			return fail("kind", fmt.Sprintf("%s cannot be a sequence", f.Type))
		}
		return fill, last - first + 1, nil
	case "", "random":
		g := &random{clock: s, seed: seed, set: set}
		value, name, err := g.of(f.Type)
		if err != nil {
			return fail(name, err.Error())
		}
		nulls := 0.0
		if v, ok := set["null-rate"]; ok {
			if nulls, err = strconv.ParseFloat(v, 64); err != nil || nulls < 0 || nulls > 1 {
				return fail("null-rate", fmt.Sprintf("%q is not between 0 and 1", v))
			}
			if nulls > 0 && !f.Type.Nullable {
				return fail("null-rate", "the column is NOT NULL")
			}
		}
		return withNulls(value, nulls, mix(seed)), end, nil
	}
	return fail("kind", fmt.Sprintf("%q is none of random, sequence", set["kind"]))
}
