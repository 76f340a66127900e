package clickhouse

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// keyFunc is a function of a partition key. Whatever it gives must be as fine as
// what the server makes of it: rows of one value lie in one partition.
type keyFunc uint8

const (
	keyValue keyFunc = iota // the column itself
	keyDay
	keyMonth
	keyYear
	keyWeek
	keyHour
	keyModulo
	keyDivide
)

// keyFuncs are ClickHouse's functions by name.
var keyFuncs = map[string]keyFunc{
	"toDate": keyDay, "toDate32": keyDay, "toYYYYMMDD": keyDay, "toStartOfDay": keyDay,
	"toYYYYMM": keyMonth, "toStartOfMonth": keyMonth, "toYear": keyYear, "toStartOfYear": keyYear,
	"toMonday": keyWeek, "toStartOfHour": keyHour, "modulo": keyModulo, "intDiv": keyDivide,
}

// partitionKey is one part of a table's partition key.
type partitionKey struct {
	text   string // of ClickHouse
	source int    // place of the column in the batch
	col    *column
	fn     keyFunc
	by     int64       // of modulo and intDiv
	from   *types.Zone // of a TIMESTAMP's wall clock
	zone   *types.Zone // of the function
}

var moduloText = regexp.MustCompile("^(`[^`]+`|\\w+) % (\\d+)$")

// partitionKeys reads PARTITION BY as the server prints it.
func partitionKeys(text string, b *binding, zone *types.Zone) ([]partitionKey, error) {
	text = strings.TrimSpace(text)
	if text == "" || text == "tuple()" {
		return nil, nil
	}
	if strings.HasPrefix(text, "tuple(") {
		text = strings.TrimPrefix(text, "tuple")
	}
	parts := []string{text}
	if strings.HasPrefix(text, "(") && strings.HasSuffix(text, ")") {
		parts = splitTop(text[1 : len(text)-1])
	}
	var keys []partitionKey
	for _, p := range parts {
		k, err := newPartitionKey(strings.TrimSpace(p), b, zone)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// splitTop splits at commas outside parentheses and quotes.
func splitTop(s string) []string {
	var out []string
	depth, from, quote := 0, 0, byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0:
			if c == '\\' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '\'' || c == '`':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			out = append(out, s[from:i])
			from = i + 1
		}
	}
	return append(out, s[from:])
}

func newPartitionKey(text string, b *binding, zone *types.Zone) (partitionKey, error) {
	k := partitionKey{text: text, by: 1}
	if m := moduloText.FindStringSubmatch(text); m != nil {
		text = "modulo(" + m[1] + ", " + m[2] + ")"
	}
	e, err := parseType(text)
	if err != nil {
		return k, fmt.Errorf("not_yet: %s; columns, and %s of columns are known", k.text, keyFuncNames)
	}
	name := e.name
	if strings.HasSuffix(text, ")") {
		fn, ok := keyFuncs[e.name]
		if !ok || len(e.args) != 1 || len(e.args[0].args) > 0 || strings.HasSuffix(e.args[0].text, ")") {
			return k, fmt.Errorf("not_yet: %s; columns, and %s of columns are known", k.text, keyFuncNames)
		}
		k.fn, name, k.by = fn, e.args[0].name, int64(e.number(0, 1))
	}
	at := -1
	for i, n := range b.names {
		if n == name && b.columns[i] != b.artifact {
			at = i
		}
	}
	if at < 0 {
		return k, fmt.Errorf("column %s is not written by this table, so that a row's partition is not known", name)
	}
	k.col, k.source = b.columns[at], b.source[at]
	if k.from, k.zone, err = k.zones(e, zone); err != nil {
		return k, err
	}
	return k, k.check()
}

const keyFuncNames = "toDate, toYYYYMMDD, toStartOfDay, toStartOfHour, toMonday, toYYYYMM, toStartOfMonth, toYear, intDiv and %"

// zones are the column's zone and the function's.
func (k *partitionKey) zones(e *chType, server *types.Zone) (from, zone *types.Zone, err error) {
	from = server
	if name := k.col.ch.zone(); name != "" && strings.HasPrefix(k.col.ch.name, "DateTime") {
		if from, err = types.LoadZone(name); err != nil {
			return nil, nil, err
		}
	}
	zone = from
	if len(e.texts) > 0 && k.fn != keyValue {
		zone, err = types.LoadZone(e.texts[0])
	}
	return from, zone, err
}

func (k *partitionKey) check() error {
	t := k.col.sql
	bytes := t.IsString() || t.IsBinary()
	switch k.fn {
	case keyValue:
		if bytes || t.IsInteger() || t.Kind == types.Boolean || t.Kind == types.Date || t.IsTimestamp() {
			return nil
		}
	case keyModulo, keyDivide:
		if t.IsInteger() && k.by > 0 {
			return nil
		}
	case keyHour:
		if t.IsTimestamp() {
			return nil
		}
	default:
		if t.IsTimestamp() || t.Kind == types.Date {
			return nil
		}
	}
	return fmt.Errorf("not_yet: %s of a column of type %s", k.text, t.WithNullable(true))
}

// values gives the key of rows as numbers. Text columns are looked at directly.
func (k *partitionKey) values(v *batch.Vec, rows []int32, s *scratch) []int64 {
	xs := s.integers(v, rows)
	switch k.fn {
	case keyValue:
		return xs
	case keyModulo:
		for i, x := range xs {
			xs[i] = x % k.by
		}
		return xs
	case keyDivide:
		for i, x := range xs {
			xs[i] = x / k.by
		}
		return xs
	}
	units, days := int64(1), true
	if k.col.sql.IsTimestamp() {
		units, days = k.col.sql.UnitsPerSecond(), false
	}
	from, zone := s.zone(k.from), s.zone(k.zone)
	for i, x := range xs {
		if days {
			xs[i] = k.ofDay(x)
			continue
		}
		if k.col.sql.Kind == types.Timestamp {
			x = from.ToInstant(x, units)
		}
		sec := types.FloorDiv(x, units)
		off := zone.OffsetAt(sec)
		if k.fn == keyHour {
			// The offset belongs to the key: an hour that comes twice is two.
			xs[i] = types.FloorDiv(sec+off, 3600)<<20 | (off + 1<<19)
			continue
		}
		xs[i] = k.ofDay(types.FloorDiv(sec+off, 86400))
	}
	return xs
}

func (k *partitionKey) ofDay(day int64) int64 {
	switch k.fn {
	case keyMonth:
		y, m, _ := types.CivilFromDays(day)
		return y*100 + int64(m)
	case keyYear:
		y, _, _ := types.CivilFromDays(day)
		return y
	case keyWeek:
		return day - types.FloorMod(day+3, 7)
	}
	return day
}

// appendName appends "key=value" for people and the ledger.
func (k *partitionKey) appendName(dst []byte, text []byte, x int64) []byte {
	dst = append(dst, k.text...)
	dst = append(dst, '=')
	switch {
	case text != nil:
		return strconv.AppendQuote(dst, string(text))
	case k.fn == keyDay, k.fn == keyWeek, k.fn == keyValue && k.col.sql.Kind == types.Date:
		return types.AppendDate(dst, x)
	case k.fn == keyValue && k.col.sql.IsTimestamp():
		return types.AppendTimestamp(dst, x, k.col.sql, ' ')
	case k.fn == keyHour:
		hour := x >> 20
		dst = types.AppendDate(dst, types.FloorDiv(hour, 24))
		dst = append(dst, ' ', byte('0'+types.FloorMod(hour, 24)/10), byte('0'+types.FloorMod(hour, 24)%10))
		off := x&(1<<20-1) - 1<<19
		if off == 0 {
			return dst
		}
		return strconv.AppendInt(append(dst, ' '), off/60, 10)
	}
	return strconv.AppendInt(dst, x, 10)
}
