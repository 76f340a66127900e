package diag

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// List collects diagnostics. The zero value is ready; it is not safe for concurrent use.
type List []*Diagnostic

// Add appends diagnostics; nil ones are skipped.
func (l *List) Add(ds ...*Diagnostic) {
	for _, d := range ds {
		if d != nil {
			*l = append(*l, d)
		}
	}
}

// Errorf appends an error and returns it, for WithHelp and the like.
func (l *List) Errorf(code Code, span Span, format string, args ...any) *Diagnostic {
	d := Errorf(code, span, format, args...)
	*l = append(*l, d)
	return d
}

// Warnf appends a warning and returns it.
func (l *List) Warnf(code Code, span Span, format string, args ...any) *Diagnostic {
	d := Warnf(code, span, format, args...)
	*l = append(*l, d)
	return d
}

// HasErrors reports whether one of them is an error.
func (l List) HasErrors() bool {
	return slices.ContainsFunc(l, func(d *Diagnostic) bool { return d.Severity == Error })
}

// Count returns the number of diagnostics of one severity.
func (l List) Count(s Severity) int {
	n := 0
	for _, d := range l {
		if d.Severity == s {
			n++
		}
	}
	return n
}

// Err returns l as an error if it holds one, else nil.
func (l List) Err() error {
	if !l.HasErrors() {
		return nil
	}
	return l
}

// Error lists the headlines, one a line. Use Renderer for people.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, d := range l {
		lines[i] = d.Headline()
	}
	return strings.Join(lines, "\n")
}

// Sorted returns the diagnostics ordered by file (in order of first appearance), place and severity;
// equal ones keep their order. Those without a place come last.
func (l List) Sorted() List {
	files := make(map[*File]int)
	for _, d := range l {
		if _, ok := files[d.Span.File]; !ok && d.Span.File != nil {
			files[d.Span.File] = len(files)
		}
	}
	out := slices.Clone(l)
	slices.SortStableFunc(out, func(a, b *Diagnostic) int {
		if a.Span.IsZero() != b.Span.IsZero() {
			if a.Span.IsZero() {
				return 1
			}
			return -1
		}
		return cmp.Or(
			cmp.Compare(files[a.Span.File], files[b.Span.File]),
			cmp.Compare(a.Span.Start, b.Span.Start),
			cmp.Compare(a.Severity, b.Severity),
			cmp.Compare(a.Span.End, b.Span.End),
		)
	})
	return out
}

// Dedup folds equal diagnostics into the first of them. Two are equal if code, severity, span and message
// are, where each message has the names of its own instance taken out: the errors of a thousand FOR EACH
// expansions print once, with "+999 tables" and the trace of the first.
func (l List) Dedup() List {
	type key struct {
		code     Code
		severity Severity
		span     Span
		message  string
	}
	type first struct {
		at        int
		instances map[string]bool
	}
	seen := make(map[key]*first)
	var out List
	for _, d := range l {
		k := key{d.Code, d.Severity, d.Span, d.Message}
		if d.Instance != "" {
			k.message = strings.ReplaceAll(d.Message, strconv.Quote(d.Instance), "\x00")
			for i, name := range d.Made {
				k.message = strings.ReplaceAll(k.message, strconv.Quote(name), "\x00"+strconv.Itoa(i))
			}
		}
		f, ok := seen[k]
		if !ok {
			seen[k] = &first{at: len(out), instances: map[string]bool{d.Instance: true}}
			out = append(out, d.clone())
			continue
		}
		if !f.instances[d.Instance] {
			f.instances[d.Instance] = true
			out[f.at].more++
		}
	}
	return out
}
