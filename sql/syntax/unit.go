package syntax

import (
	"maps"
	"slices"
	"strings"
)

// unitNames spell the units, by Unit.
var unitNames = [...]string{
	"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "QUARTER", "WEEK", "MILLISECOND", "MICROSECOND", "NANOSECOND",
	"DECADE", "CENTURY", "MILLENNIUM", "EPOCH", "DOW", "ISODOW", "DOY", "ISOYEAR",
}

// String spells the unit in upper case.
func (u Unit) String() string { return unitNames[u] }

// unitSet maps words to units; with plural also DAYS and the like.
func unitSet(plural bool, units ...Unit) map[string]Unit {
	m := make(map[string]Unit)
	for _, u := range units {
		m[u.String()] = u
		if plural {
			m[u.String()+"S"] = u
		}
	}
	return m
}

func allUnits() []Unit {
	var us []Unit
	for u := range unitNames {
		us = append(us, Unit(u))
	}
	return us
}

var (
	intervalUnits = unitSet(true, UnitYear, UnitQuarter, UnitMonth, UnitWeek, UnitDay, UnitHour, UnitMinute, UnitSecond)
	extractUnits  = unitSet(false, allUnits()...)
	roundUnits    = unitSet(false, UnitYear, UnitQuarter, UnitMonth, UnitWeek, UnitDay, UnitHour, UnitMinute, UnitSecond,
		UnitMillisecond, UnitMicrosecond, UnitNanosecond, UnitDecade, UnitCentury, UnitMillennium)
	diffUnits = withOdbc(roundUnits)
)

// withOdbc adds the SQL_TSI_ spellings that TIMESTAMPADD and TIMESTAMPDIFF take as well.
func withOdbc(units map[string]Unit) map[string]Unit {
	m := maps.Clone(units)
	for w, u := range units {
		m["SQL_TSI_"+w] = u
	}
	return m
}

// unitWords lists words for the nearest-name hint.
func unitWords(units map[string]Unit) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(units)), func(w string) bool { return strings.HasPrefix(w, "SQL_TSI_") })
}
