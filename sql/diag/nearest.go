package diag

import (
	"strings"
	"unicode/utf8"
)

// Nearest returns the candidate that is nearest to name, if one is near enough to be a misspelling of it:
// at most a third of the longer name's characters (at least one) inserted, left out, changed or swapped
// with their neighbor, not counting case. Of equally near ones the first wins. If none is near, the one
// candidate that name abbreviates ("uid" for "user_id"), or that abbreviates name, is returned.
func Nearest(name string, candidates []string) (string, bool) {
	best, bestDist := "", -1
	lower := strings.ToLower(name)
	for _, c := range candidates {
		if c == "" || c == name {
			continue
		}
		limit := max(1, max(utf8.RuneCountInString(name), utf8.RuneCountInString(c))/3)
		d := Distance(lower, strings.ToLower(c))
		if d <= limit && d < max(utf8.RuneCountInString(name), utf8.RuneCountInString(c)) && (bestDist < 0 || d < bestDist) {
			best, bestDist = c, d
		}
	}
	if bestDist < 0 {
		return abbreviated(lower, candidates)
	}
	return best, true
}

// abbreviated finds the one candidate that name is short for, or that is short for name: the letters of
// one, at least three, stand in the other in the same order, beginning with the first ("uid", "user_id").
func abbreviated(lower string, candidates []string) (string, bool) {
	found := ""
	for _, c := range candidates {
		lc := strings.ToLower(c)
		if !shortFor(lower, lc) && !shortFor(lc, lower) || c == found {
			continue
		}
		if found != "" {
			return "", false
		}
		found = c
	}
	return found, found != ""
}

// shortFor reports whether short is a subsequence of long with the same first letter and the same last.
func shortFor(short, long string) bool {
	if len(short) < 3 || len(short) >= len(long) || short[0] != long[0] || short[len(short)-1] != long[len(long)-1] {
		return false
	}
	for i := 0; i < len(long) && short != ""; i++ {
		if long[i] == short[0] {
			short = short[1:]
		}
	}
	return short == ""
}

// Distance is the Damerau-Levenshtein distance of a and b (optimal string alignment) in code points.
func Distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	prev2 := make([]int, len(y)+1)
	prev := make([]int, len(y)+1)
	cur := make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		cur[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(y)]
}
