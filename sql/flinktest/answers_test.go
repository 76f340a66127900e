package flinktest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// stored are the answers of a suite by query.
type stored struct {
	version string
	answers map[string]*answer
}

const versionLine = "# Flink "

func answersPath(suite string) string { return "testdata/" + suite + ".flink" }

// readAnswers reads a file of answers; none there is an empty one.
func readAnswers(t *testing.T, suite string) *stored {
	t.Helper()
	s := &stored{answers: map[string]*answer{}}
	b, err := os.ReadFile(answersPath(suite))
	if os.IsNotExist(err) {
		return s
	} else if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	s.version = strings.TrimPrefix(lines[0], versionLine)
	for i := 2; i < len(lines); {
		var query []string
		for ; i < len(lines) && !strings.HasPrefix(lines[i], "---- "); i++ {
			query = append(query, lines[i])
		}
		if i == len(lines) {
			break
		}
		a := &answer{}
		head := strings.TrimPrefix(lines[i], "---- ")
		if fault, ok := strings.CutPrefix(head, "error "); ok {
			a.fault = fault
		} else {
			a.types = strings.Split(head, " ; ")
		}
		for i++; i < len(lines) && lines[i] != ""; i++ {
			a.rows = append(a.rows, strings.TrimSuffix(lines[i], "$"))
		}
		i++
		s.answers[strings.Join(query, "\n")] = a
	}
	return s
}

// writeAnswers writes them in the order of the queries. A row ends with $, so
// that empty rows and blanks at the end stay visible.
func writeAnswers(t *testing.T, s *suite, got *stored) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n\n", versionLine, got.version)
	for _, q := range s.queries {
		a := got.answers[q]
		if a == nil {
			continue
		}
		if a.fault != "" {
			fmt.Fprintf(&b, "%s\n---- error %s\n\n", q, a.fault)
			continue
		}
		fmt.Fprintf(&b, "%s\n---- %s\n", q, strings.Join(a.types, " ; "))
		for _, r := range a.rows {
			b.WriteString(r + "$\n")
		}
		b.WriteByte('\n')
	}
	if err := os.WriteFile(answersPath(s.name), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
