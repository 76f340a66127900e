package cli

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/jobs/jobtest"
)

// The elements of a JUnit report.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string      `xml:"classname,attr"`
	Name    string      `xml:"name,attr"`
	Time    string      `xml:"time,attr"`
	Failure *junitFault `xml:"failure,omitempty"`
	Error   *junitFault `xml:"error,omitempty"`
}

type junitFault struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// add adds the case of a step, or of the end of a test (""), with its problems.
func (s *junitSuite) add(c junitCase, problems []jobtest.Problem, step string, updated bool) {
	var lines []string
	for _, p := range problems {
		if p.Step == step {
			lines = append(lines, strings.TrimSpace(p.Table+" "+p.Message))
		}
	}
	if len(lines) > 0 && !updated {
		c.Failure = &junitFault{Message: output.Count(len(lines), "difference"), Text: strings.Join(lines, "\n")}
		s.Failures++
	}
	s.Cases = append(s.Cases, c)
}

// writeJUnit writes the report that CI systems read. Each step of a test
// is a case of its own before that of the test; a faulty file is an error of a test of its
// name.
func writeJUnit(name string, files []testFile) error {
	all := junitSuites{}
	seconds := func(s float64) string {
		return fmt.Sprintf("%.3f", time.Duration(s*float64(time.Second)).Seconds())
	}
	for _, f := range files {
		s := junitSuite{Name: f.File}
		total := 0.0
		for _, t := range f.Tests {
			for _, st := range t.Steps {
				s.add(junitCase{Class: f.File, Name: t.Name + ": " + st.Name, Time: seconds(0)}, t.Problems, st.Name, f.Updated)
			}
			s.add(junitCase{Class: f.File, Name: t.Name, Time: seconds(t.Seconds)}, t.Problems, "", f.Updated)
			total += t.Seconds
		}
		if f.Error != "" {
			s.Errors++
			s.Cases = append(s.Cases, junitCase{Class: f.File, Name: filepath.Base(f.File), Time: seconds(0), Error: &junitFault{Message: "the file is faulty", Text: f.Error}})
		}
		s.Tests, s.Time = len(s.Cases), seconds(total)
		all.Tests, all.Failures, all.Errors = all.Tests+s.Tests, all.Failures+s.Failures, all.Errors+s.Errors
		all.Suites = append(all.Suites, s)
	}
	b, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return os.WriteFile(name, append([]byte(xml.Header), append(b, '\n')...), 0o644)
}
