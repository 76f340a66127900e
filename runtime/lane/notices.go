package lane

import (
	"fmt"
	"slices"
	"strings"
)

// shownOffsets is how many offsets of one reason a start line names: a lane of
// a hundred partitions says where it goes on in one line, not in a hundred.
const shownOffsets = 8

// startLines says where an output goes on, one line for each reason.
func startLines(table, topic string, cs []savedCursor) []string {
	var reasons []string
	byReason := map[string][]savedCursor{}
	for _, c := range cs {
		if byReason[c.from] == nil {
			reasons = append(reasons, c.from)
		}
		byReason[c.from] = append(byReason[c.from], c)
	}
	lines := make([]string, 0, len(reasons))
	for _, r := range reasons {
		lines = append(lines, fmt.Sprintf("table %s: topic %s %s (%s)", table, topic, whereFrom(byReason[r]), r))
	}
	return lines
}

// whereFrom is "partition 0 from offset 7", "partitions 0-2 from offset 0" or
// "partitions 0, 2 from offsets 7, 9".
func whereFrom(cs []savedCursor) string {
	partitions := make([]int32, len(cs))
	equal := true
	for i := range cs {
		partitions[i] = cs[i].Partition
		equal = equal && cs[i].Offset == cs[0].Offset
	}
	which := "partitions " + numberRanges(partitions)
	if len(cs) == 1 {
		which = fmt.Sprintf("partition %d", cs[0].Partition)
	}
	if equal {
		return fmt.Sprintf("%s from offset %d", which, cs[0].Offset)
	}
	var list []string
	for i := range min(len(cs), shownOffsets) {
		list = append(list, fmt.Sprint(cs[i].Offset))
	}
	s := which + " from offsets " + strings.Join(list, ", ")
	if len(cs) > shownOffsets {
		s += fmt.Sprintf(" and %d more", len(cs)-shownOffsets)
	}
	return s
}

// numberRanges writes numbers as "0-2, 5".
func numberRanges(ns []int32) string {
	ns = slices.Clone(ns)
	slices.Sort(ns)
	var parts []string
	for i := 0; i < len(ns); {
		j := i
		for j+1 < len(ns) && ns[j+1] == ns[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, fmt.Sprint(ns[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", ns[i], ns[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}
