package lsp

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace/sql/assist"
	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/diag"
)

// document is an open document.
type document struct {
	uri, name string // name is its path, or the URI where it is no file
	version   int
	*mapper
}

// pathOf is the path of a file's URI.
func pathOf(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Path == "" {
		return "", false
	}
	return filepath.Clean(u.Path), true
}

func uriOf(path string) string {
	if !filepath.IsAbs(path) {
		return path // a document that is no file: its name is its URI
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

type documentParams struct {
	TextDocument struct {
		URI     string `json:"uri"`
		Version int    `json:"version"`
		Text    string `json:"text"`
	} `json:"textDocument"`
	ContentChanges []struct {
		Range *Range `json:"range"`
		Text  string `json:"text"`
	} `json:"contentChanges"`
	Position Position `json:"position"`
}

func (s *server) didOpen(p documentParams) error {
	d := &document{uri: p.TextDocument.URI, name: p.TextDocument.URI, version: p.TextDocument.Version, mapper: newMapper(p.TextDocument.Text)}
	if path, ok := pathOf(d.uri); ok {
		d.name = path
	}
	if _, old := s.docs[d.uri]; !old {
		s.order = append(s.order, d.uri)
	}
	s.docs[d.uri] = d
	s.dirty = true
	return nil
}

func (s *server) didChange(p documentParams) error {
	d, err := s.document(p)
	if err != nil {
		return err
	}
	for _, c := range p.ContentChanges {
		text := c.Text
		if c.Range != nil {
			text = d.text[:d.offset(c.Range.Start)] + c.Text + d.text[d.offset(c.Range.End):]
		}
		d.mapper = newMapper(text)
	}
	d.version = p.TextDocument.Version
	s.dirty = true
	return nil
}

func (s *server) didClose(p documentParams) error {
	d, err := s.document(p)
	if err != nil {
		return err
	}
	delete(s.docs, d.uri)
	s.order = slices.DeleteFunc(s.order, func(u string) bool { return u == d.uri })
	s.dirty = true
	return s.notify("textDocument/publishDiagnostics", map[string]any{"uri": d.uri, "diagnostics": []any{}})
}

func (s *server) document(p documentParams) (*document, error) {
	if d, ok := s.docs[p.TextDocument.URI]; ok {
		return d, nil
	}
	return nil, &rpcError{codeInvalidParams, "document " + p.TextDocument.URI + " is not open"}
}

// ddl are the paths of the DDL that comes before a document.
func (s *server) ddl(d *document) []string {
	if len(s.o.DDL) > 0 {
		return s.o.DDL
	}
	var folders []string
	if filepath.IsAbs(d.name) {
		dir := filepath.Dir(d.name)
		if filepath.Base(dir) == "ddl" {
			folders = append(folders, dir)
		}
		folders = append(folders, filepath.Join(dir, "ddl"))
	}
	if s.root != "" {
		folders = append(folders, filepath.Join(s.root, "ddl"))
	}
	for _, f := range folders {
		if names, err := s.o.List(f); err == nil && len(names) > 0 {
			return []string{f}
		}
	}
	return nil
}

// files are the DDL and the document, as the command line would give them.
func (s *server) files(d *document) []compile.Source {
	var out []compile.Source
	seen := map[string]bool{}
	open := map[string]*document{}
	for _, o := range s.docs {
		open[o.name] = o
	}
	for _, path := range s.ddl(d) {
		names, err := s.o.List(path)
		if err != nil {
			continue // named on the command line, and gone by now
		}
		for _, n := range names {
			if seen[n] {
				continue
			}
			seen[n] = true
			if o := open[n]; o != nil {
				out = append(out, compile.Source{Name: n, Text: o.text})
			} else if b, err := s.o.ReadFile(n); err == nil {
				out = append(out, compile.Source{Name: n, Text: strings.TrimPrefix(string(b), bom)})
			}
		}
	}
	if !seen[d.name] {
		out = append(out, compile.Source{Name: d.name, Text: d.text})
	}
	return out
}

func (s *server) analyze(d *document) (*assist.Analysis, error) {
	return assist.Analyze(s.files(d), d.name, s.o.Compile)
}

// Diagnostic is a finding as the protocol has it.
type Diagnostic struct {
	Range    Range     `json:"range"`
	Severity int       `json:"severity"`
	Code     string    `json:"code"`
	Source   string    `json:"source"`
	Message  string    `json:"message"`
	Related  []Related `json:"relatedInformation,omitempty"`
	// Data has the hint alone, as `millrace check -o json` prints it.
	Data struct {
		Hint string `json:"hint"`
	} `json:"data"`
}

// Related is another place that a finding speaks of.
type Related struct {
	Location Location `json:"location"`
	Message  string   `json:"message"`
}

var severities = map[diag.Severity]int{diag.Error: 1, diag.Warning: 2, diag.Info: 3}

// publish sends the diagnostics of all open documents: a change in one may be
// DDL of another.
func (s *server) publish() error {
	for _, uri := range s.order {
		d := s.docs[uri]
		list, fault := s.diagnostics(d)
		if fault != nil {
			fmt.Fprintf(s.o.Log, "checking %s: %v\n", d.name, fault)
			continue
		}
		if err := s.notify("textDocument/publishDiagnostics", map[string]any{"uri": uri, "version": d.version, "diagnostics": list}); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) diagnostics(d *document) (list []Diagnostic, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	a, err := s.analyze(d)
	if err != nil {
		return nil, err
	}
	list = []Diagnostic{}
	for _, f := range a.Findings {
		out := Diagnostic{Range: d.rangeOf(f.Span.Start, f.Span.End), Severity: severities[f.Severity], Code: string(f.Code), Source: "millrace", Message: f.Message}
		out.Data.Hint = strings.Join(f.Help, "\n")
		if n := f.More(); n > 0 {
			out.Message += fmt.Sprintf(" (+%d tables)", n)
		}
		for _, n := range append(append([]diag.Note{}, f.Notes...), f.Trace...) {
			if n.Span.IsZero() {
				out.Message += "\nnote: " + n.Message
				continue
			}
			out.Related = append(out.Related, Related{s.location(n.Span), n.Message})
		}
		for _, h := range f.Help {
			out.Message += "\nhelp: " + h
		}
		list = append(list, out)
	}
	return list, nil
}

// location is a span of any file.
func (s *server) location(span diag.Span) Location {
	name := span.File.Name()
	for _, d := range s.docs {
		if d.name == name {
			return Location{d.uri, d.rangeOf(span.Start, span.End)}
		}
	}
	return Location{uriOf(name), newMapper(span.File.Text()).rangeOf(span.Start, span.End)}
}
