package spec

import (
	"encoding/json"
	"fmt"
	"sort"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/diag"
)

// Compiled is a compiled job with what was found in its files.
type Compiled struct {
	Unit     *compile.Unit
	Findings diag.List
}

// Compile compiles files, DDL first. o.Vars is set from vars.
func Compile(files []control.SQLFile, vars Vars, o compile.Options) Compiled {
	sources := make([]compile.Source, len(files))
	for i, f := range files {
		sources[i] = compile.Source{Name: f.Name, Text: f.Text}
	}
	o.Vars = vars
	unit, findings := compile.Compile(sources, o)
	return Compiled{Unit: unit, Findings: findings}
}

// Summary is one sentence about the findings.
func (c Compiled) Summary() string {
	errs, warns := c.Findings.Count(diag.Error), c.Findings.Count(diag.Warning)
	switch {
	case errs == 0 && warns == 0:
		return "no problem found"
	case errs == 0:
		return plural(warns, "warning")
	case warns == 0:
		return plural(errs, "error")
	}
	return plural(errs, "error") + ", " + plural(warns, "warning")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Err is nil when the job can run, else an input error that holds every
// finding, rendered and for scripts.
func (c Compiled) Err() error {
	if !c.Findings.HasErrors() {
		return nil
	}
	findings, err := json.Marshal(c.Findings)
	if err != nil {
		return fmt.Errorf("encoding findings: %w", err)
	}
	return &control.Error{Kind: "input", Message: c.Summary(), Findings: findings, Rendered: diag.Renderer{}.String(c.Findings) + c.Summary()}
}

// Vars looks variables up.
type Vars struct {
	// Set are the --set values.
	Set map[string]string
	// LookupEnv is os.LookupEnv, or nil for no environment.
	LookupEnv func(string) (string, bool)
	// ReadFile is os.ReadFile, or nil for no secret files.
	ReadFile func(string) ([]byte, error)
}

// Lookup implements syntax.Vars.
func (v Vars) Lookup(name string) (string, bool) {
	if s, ok := v.Set[name]; ok {
		return s, true
	}
	return v.env(name)
}

func (v Vars) env(name string) (string, bool) {
	if v.LookupEnv == nil {
		return "", false
	}
	return v.LookupEnv(name)
}

// Secret implements syntax.Vars.
func (v Vars) Secret(name string) (string, bool) {
	if dir, ok := v.env("MILLRACE_SECRETS"); ok && v.ReadFile != nil {
		if b, err := v.ReadFile(dir + "/" + name); err == nil {
			return trimLine(string(b)), true
		}
	}
	return v.env("MILLRACE_SECRET_" + name)
}

// trimLine drops the one line end that editors add.
func trimLine(s string) string {
	if n := len(s); n > 0 && s[n-1] == '\n' {
		s = s[:n-1]
	}
	if n := len(s); n > 0 && s[n-1] == '\r' {
		s = s[:n-1]
	}
	return s
}

// Names implements syntax.Vars: for the nearest name, only what was set for
// Millrace, not the whole environment.
func (v Vars) Names() []string {
	names := make([]string, 0, len(v.Set))
	for n := range v.Set {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}
