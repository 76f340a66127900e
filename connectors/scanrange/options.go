package scanrange

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
)

// Values of 'scan.startup.mode' and 'scan.bounded.mode'.
const (
	Group     = "group-offsets"
	Earliest  = "earliest-offset"
	Latest    = "latest-offset"
	Timestamp = "timestamp"
	Specific  = "specific-offsets"
	Unbounded = "unbounded"
)

// CheckOffsets is the check of an option that ParseOffsets reads.
func CheckOffsets(s string) error {
	_, err := ParseOffsets(s)
	return err
}

// ParseOffsets reads "partition:0,offset:42;partition:1,offset:300".
func ParseOffsets(s string) (map[int32]int64, error) {
	out := map[int32]int64{}
	for _, item := range strings.Split(s, ";") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		p, o, ok := strings.Cut(item, ",")
		ps, isP := strings.CutPrefix(strings.TrimSpace(p), "partition:")
		os, isO := strings.CutPrefix(strings.TrimSpace(o), "offset:")
		pn, perr := strconv.ParseInt(ps, 10, 32)
		on, oerr := strconv.ParseInt(os, 10, 64)
		if !ok || !isP || !isO || perr != nil || oerr != nil || pn < 0 || on < 0 {
			return nil, fmt.Errorf("%q is not of the form partition:0,offset:42;partition:1,offset:300", item)
		}
		if _, dup := out[int32(pn)]; dup {
			return nil, fmt.Errorf("partition %d is given twice", pn)
		}
		out[int32(pn)] = on
	}
	return out, nil
}

// Check finds options of start and end that contradict each other.
func Check(v connector.Values) error {
	if err := checkMode(v, "scan.startup."); err != nil {
		return err
	}
	if err := CheckEnd(v); err != nil {
		return err
	}
	if v.String("scan.startup.mode") == Timestamp && v.String("scan.bounded.mode") == Timestamp &&
		v.Int("scan.bounded.timestamp-millis") < v.Int("scan.startup.timestamp-millis") {
		return &connector.OptionError{Key: "scan.bounded.timestamp-millis", OnValue: true, Message: `"scan.bounded.timestamp-millis" lies before "scan.startup.timestamp-millis": reading would end before it starts`}
	}
	return offsetsInOrder(v)
}

// CheckEnd is Check of the options of the end alone, for tables that have no others.
func CheckEnd(v connector.Values) error { return checkMode(v, "scan.bounded.") }

// checkMode finds values that the mode does not use, and uses that have no value.
func checkMode(v connector.Values, prefix string) error {
	mode := prefix + "mode"
	for _, x := range []struct{ key, value string }{
		{prefix + "timestamp-millis", Timestamp},
		{prefix + "specific-offsets", Specific},
	} {
		uses := v.String(mode) == x.value
		if v.Has(x.key) && !uses {
			return &connector.OptionError{Key: x.key, Message: fmt.Sprintf("%q has no effect without %q = '%s'", x.key, mode, x.value)}
		}
		if uses && !v.Has(x.key) {
			return &connector.OptionError{Key: mode, OnValue: true, Message: fmt.Sprintf("%q = '%s' needs %q", mode, x.value, x.key)}
		}
	}
	return nil
}

// offsetsInOrder refuses a partition whose end lies before its start.
func offsetsInOrder(v connector.Values) error {
	if v.String("scan.startup.mode") != Specific || v.String("scan.bounded.mode") != Specific {
		return nil
	}
	starts, err := ParseOffsets(v.String("scan.startup.specific-offsets"))
	if err != nil {
		return err
	}
	ends, err := ParseOffsets(v.String("scan.bounded.specific-offsets"))
	if err != nil {
		return err
	}
	for _, p := range slices.Sorted(maps.Keys(ends)) {
		if start, ok := starts[p]; ok && ends[p] < start {
			return &connector.OptionError{Key: "scan.bounded.specific-offsets", OnValue: true,
				Message: fmt.Sprintf(`"scan.bounded.specific-offsets" ends partition %d at %d, before %d, where "scan.startup.specific-offsets" starts it`, p, ends[p], start)}
		}
	}
	return nil
}
