package doccheck

import (
	"regexp"
	"strings"
)

// Step is one command of a page with what it prints.
type Step struct {
	Line    int
	Command string
	Want    []string
}

// Parse finds the steps of a Markdown page.
func Parse(page string) []Step {
	var steps []Step
	inside := false
	for i, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = !inside && strings.TrimSpace(line) == "```console"
		case !inside:
		case strings.HasPrefix(line, "$ "):
			steps = append(steps, Step{Line: i + 1, Command: line[2:]})
		case strings.HasPrefix(line, "> ") && len(steps) > 0 && len(steps[len(steps)-1].Want) == 0:
			steps[len(steps)-1].Command += "\n" + line[2:]
		case line == ">" && len(steps) > 0 && len(steps[len(steps)-1].Want) == 0:
			steps[len(steps)-1].Command += "\n"
		case len(steps) > 0:
			s := &steps[len(steps)-1]
			s.Want = append(s.Want, line)
		}
	}
	return steps
}

// Matches compares output with what a page says.
func (s Step) Matches(output string) bool {
	var b strings.Builder
	b.WriteString(`^`)
	for _, w := range s.Want {
		if strings.TrimSpace(w) == "..." {
			b.WriteString(`(?:.*\n)*`)
			continue
		}
		parts := strings.Split(strings.TrimRight(w, " "), "...")
		for i, p := range parts {
			if i > 0 {
				b.WriteString(`.*`)
			}
			b.WriteString(regexp.QuoteMeta(p))
		}
		b.WriteString(`[ \t]*\n`)
	}
	b.WriteString(`$`)
	if output != "" && !strings.HasSuffix(output, "\n") {
		output += "\n"
	}
	return regexp.MustCompile(b.String()).MatchString(output)
}
