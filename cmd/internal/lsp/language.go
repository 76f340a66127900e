package lsp

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/sql/assist"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

func (s *server) hover(p documentParams) (any, error) {
	d, err := s.document(p)
	if err != nil {
		return nil, err
	}
	a, err := s.analyze(d)
	if err != nil {
		return nil, err
	}
	text, at, ok := a.Hover(d.offset(p.Position))
	if !ok {
		return nil, nil
	}
	return map[string]any{"contents": map[string]string{"kind": "markdown", "value": text}, "range": d.rangeOf(at.Start, at.End)}, nil
}

func (s *server) definition(p documentParams) (any, error) {
	d, err := s.document(p)
	if err != nil {
		return nil, err
	}
	a, err := s.analyze(d)
	if err != nil {
		return nil, err
	}
	span, ok := a.Definition(d.offset(p.Position))
	if !ok {
		return nil, nil
	}
	return s.location(span), nil
}

// completionItem is a proposal as the protocol has it.
type completionItem struct {
	Label         string            `json:"label"`
	Kind          int               `json:"kind"`
	Detail        string            `json:"detail,omitempty"`
	Documentation map[string]string `json:"documentation,omitempty"`
	SortText      string            `json:"sortText"`
	FilterText    string            `json:"filterText"`
	TextEdit      textEdit          `json:"textEdit"`
}

type textEdit struct {
	Range   Range  `json:"range"`
	NewText string `json:"newText"`
}

// itemKinds are the protocol's numbers: field, struct, property, enum member,
// type parameter, function, keyword.
var itemKinds = map[assist.ItemKind]int{
	assist.ItemColumn: 5, assist.ItemTable: 22, assist.ItemOption: 10, assist.ItemValue: 20,
	assist.ItemType: 25, assist.ItemFunction: 3, assist.ItemKeyword: 14,
}

func (s *server) completion(p documentParams) (any, error) {
	d, err := s.document(p)
	if err != nil {
		return nil, err
	}
	offset := d.offset(p.Position)
	c, err := assist.Complete(s.files(d), d.name, offset, s.o.Compile)
	if err != nil {
		return nil, err
	}
	items := []completionItem{}
	at := d.rangeOf(c.Start, offset)
	for i, it := range c.Items {
		// Editors compare what stands in the range with the filter text.
		out := completionItem{Label: it.Label, Kind: itemKinds[it.Kind], Detail: it.Detail, SortText: fmt.Sprintf("%05d", i), FilterText: it.Label, TextEdit: textEdit{at, it.Insert}}
		if strings.HasPrefix(d.text[c.Start:offset], "`") {
			out.FilterText = "`" + it.Label
		}
		if it.Doc != "" {
			out.Documentation = map[string]string{"kind": "markdown", "value": it.Doc}
		}
		items = append(items, out)
	}
	return map[string]any{"isIncomplete": false, "items": items}, nil
}

// formatting is `millrace fmt`: a document with syntax errors is not touched. The
// edit leaves the equal lines at both ends alone, so that the cursor stays.
func (s *server) formatting(p documentParams) (any, error) {
	d, err := s.document(p)
	if err != nil {
		return nil, err
	}
	text, faults := syntax.Format(diag.NewFile(d.name, d.text))
	if faults.HasErrors() || text == d.text {
		return []textEdit{}, nil
	}
	was, is := strings.SplitAfter(d.text, "\n"), strings.SplitAfter(text, "\n")
	start, tail := 0, 0
	for len(was) > 0 && len(is) > 0 && was[0] == is[0] {
		start += len(was[0])
		was, is = was[1:], is[1:]
	}
	for len(was) > 0 && len(is) > 0 && was[len(was)-1] == is[len(is)-1] {
		tail += len(was[len(was)-1])
		was, is = was[:len(was)-1], is[:len(is)-1]
	}
	return []textEdit{{d.rangeOf(start, len(d.text)-tail), strings.Join(is, "")}}, nil
}
