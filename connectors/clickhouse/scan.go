package clickhouse

import (
	"github.com/millrace/millrace/runtime/connector"
)

// scanOptionList are the options of a table that is read; the names are Flink's but for
// the filter.
func scanOptionList() []connector.Option {
	return []connector.Option{
		{Key: keyFilter, Type: connector.OptString,
			Doc: "A condition in ClickHouse's SQL that rows which are read must meet, e.g. `dt = today() - 1`: the server reads nothing else. It is part of a position: with another filter a reading starts anew."},
		{Key: keyRangeColumn, Type: connector.OptString,
			Doc: "An integer column by whose values each table partition is cut into ranges, which are read side by side."},
		{Key: keyRanges, Type: connector.OptInt, Default: "1", Min: 1, Max: 1024, Doc: "How many ranges."},
		{Key: keyRangeLower, Type: connector.OptInt,
			Doc: "The smallest value of the first range. As in Flink, rows outside the bounds are not read. Unset: all rows are, NULL in the first range."},
		{Key: keyRangeUpper, Type: connector.OptInt, Doc: "The largest value of the last range."},
	}
}

func validateScan(v connector.Values) error {
	switch {
	case v.Has(keyRangeColumn) != v.Has(keyRanges):
		return &connector.OptionError{Key: keyRangeColumn, Message: "'" + keyRangeColumn + "' and '" + keyRanges + "' belong together"}
	case v.Has(keyRangeLower) != v.Has(keyRangeUpper):
		return &connector.OptionError{Key: keyRangeLower, Message: "'" + keyRangeLower + "' and '" + keyRangeUpper + "' belong together"}
	case v.Has(keyRangeLower) && !v.Has(keyRangeColumn):
		return &connector.OptionError{Key: keyRangeLower, Message: "'" + keyRangeLower + "' has no effect without '" + keyRangeColumn + "'"}
	case v.Has(keyRangeLower) && v.Int(keyRangeLower) > v.Int(keyRangeUpper):
		return &connector.OptionError{Key: keyRangeLower, OnValue: true, Message: "the lower bound is above the upper one"}
	}
	return nil
}
