package syntax

import (
	"strings"
	"unicode"
)

// wordTable answers questions about words. It is built once per use of the package's entry points and
// never changes.
type wordTable map[string]wordClass

type wordClass uint8

const (
	softWord wordClass = iota + 1
	reservedWord
)

// words is filled in by its initializer and only read afterwards.
var words = buildWords()

func buildWords() wordTable {
	t := make(wordTable, 700)
	for _, w := range strings.Fields(softKeywords) {
		t[w] = softWord
	}
	for _, w := range strings.Fields(reservedWords) {
		t[w] = reservedWord
	}
	return t
}

// structural words begin or join clauses; they can be neither a function's name nor a misplaced column.
const structuralWords = `
ALL AND AS BEGIN BETWEEN BY CASE CREATE CROSS DISTINCT DROP ELSE END ESCAPE EXCEPT EXECUTE
FETCH FROM FULL HAVING IN INNER INSERT INTERSECT INTO IS JOIN LATERAL LIKE LIMIT
MATCH_RECOGNIZE NATURAL NOT OF OFFSET ON OR OUTER OVER PIVOT SELECT SET SIMILAR TABLESAMPLE
THEN UNION UNPIVOT USING VALUES WHEN WHERE WITH
`

var structural = func() map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(structuralWords) {
		m[w] = true
	}
	return m
}()

// IsReserved reports whether a word cannot be a name unless it is quoted. Case does not matter.
func IsReserved(word string) bool { return words[strings.ToUpper(word)] == reservedWord }

// NeedsQuotes reports whether a name should be written in backticks: it is not a plain word, or is a
// keyword of any kind. It is stricter than the parser, so that what tools write is readable by Flink of
// any version.
func NeedsQuotes(name string) bool {
	return !isPlainWord(name) || words[strings.ToUpper(name)] != 0
}

// Quote writes a name so that it can be parsed: bare if possible, else in backticks. $ before { is doubled,
// so that it is no variable.
func Quote(name string) string {
	if !NeedsQuotes(name) {
		return name
	}
	return forceQuote(name)
}

func forceQuote(name string) string {
	return "`" + escapeVars(strings.ReplaceAll(name, "`", "``")) + "`"
}

// QuoteString writes a string literal.
func QuoteString(s string) string {
	return "'" + escapeVars(strings.ReplaceAll(s, "'", "''")) + "'"
}

func escapeVars(s string) string { return strings.ReplaceAll(s, "${", "$${") }

func isPlainWord(s string) bool {
	for i, r := range s {
		if i == 0 && !isWordStart(r) || i > 0 && !isWordPart(r) {
			return false
		}
	}
	return s != ""
}

func isWordStart(r rune) bool { return r == '_' || unicode.IsLetter(r) }

func isWordPart(r rune) bool {
	return isWordStart(r) || r == '$' || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Mc, r)
}
