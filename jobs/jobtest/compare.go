package jobtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// compare finds the differences of a test, or of a step of it.
func (s *Suite) compare(e *expected, ordered bool, out *outcome) (problems []Problem, notes []string, err error) {
	if !e.some() {
		return nil, nil, nil
	}
	for _, w := range e.want {
		tab := out.tables[w.table]
		if tab == nil {
			return nil, nil, fmt.Errorf("BUG: sink table %s was not opened", w.table)
		}
		columns, err := s.wantedColumns(w, tab.fields)
		if err != nil {
			return nil, nil, err
		}
		wanted, err := s.wantedRows(w, columns)
		if err != nil {
			return nil, nil, err
		}
		actual, err := actualRows(tab.rows, columns)
		if err != nil {
			return nil, nil, err
		}
		for _, p := range diff(wanted, actual, columns, ordered) {
			p.Table = w.table
			if p.Line == 0 {
				p.Line = w.line
			}
			problems = append(problems, p)
		}
	}
	dead, notes := compareDead(e, out.dead)
	return append(problems, dead...), notes, nil
}

// row is a row in canonical form: for each compared column its JSON.
type row struct {
	line   int
	values []string
}

func (r row) key() string { return strings.Join(r.values, "\x00") }

// show is the row as an object.
func (r row) show(columns []types.Field) string {
	var b []byte
	for i, c := range columns {
		b = append(b, map[bool]string{true: "{", false: ", "}[i == 0]...)
		b = append(quote(b, c.Name), ": "...)
		b = append(b, r.values[i]...)
	}
	if len(columns) == 0 {
		return "{}"
	}
	return string(append(b, '}'))
}

// wantedColumns are the columns that any wanted row names; all when there is
// no row. The others are not compared.
func (s *Suite) wantedColumns(w wantTable, fields []types.Field) ([]types.Field, error) {
	if len(w.rows) == 0 {
		return fields, nil
	}
	var names, out = []string{}, []types.Field{}
	for _, f := range fields {
		names = append(names, f.Name)
		if slices.ContainsFunc(w.rows, func(r wantRow) bool { _, ok := r.values[f.Name]; return ok }) {
			out = append(out, f)
		}
	}
	for _, r := range w.rows {
		for name := range r.values {
			if !slices.Contains(names, name) {
				return nil, &FileError{s.Name, r.line, 1, fmt.Sprintf("table %s has no column %q%s", w.table, name, nearest(name, names))}
			}
		}
	}
	return out, nil
}

// wantedRows converts wanted rows to the columns' types. A column that a row
// does not name is NULL.
func (s *Suite) wantedRows(w wantTable, columns []types.Field) ([]row, error) {
	out := make([]row, len(w.rows))
	for i, r := range w.rows {
		out[i] = row{line: r.line, values: make([]string, len(columns))}
		for k, f := range columns {
			raw, ok := r.values[f.Name]
			if !ok {
				raw = json.RawMessage("null")
			}
			v, err := canonical(f, raw)
			if err != nil {
				return nil, &FileError{s.Name, r.line, 1, fmt.Sprintf("table %s, column %s: %v", w.table, f.Name, err)}
			}
			out[i].values[k] = v
		}
	}
	return out, nil
}

// canonical converts a wanted value as a JSON table would, and writes it as
// one.
func canonical(f types.Field, raw json.RawMessage) (string, error) {
	if string(raw) == "null" {
		return "null", nil
	}
	f.Type.Nullable = true
	fields := []types.Field{{Name: "v", Type: f.Type}}
	enc, err := newEncoder(fields)
	if err != nil {
		return "", err
	}
	var failed *batch.ValueError
	for _, standard := range []string{"SQL", "ISO-8601-WITH-OFFSET", "ISO-8601"} {
		dec, err := jsonfmt.NewDecoder(format.DecoderConfig{Fields: fields,
			Options: format.FromMap(map[string]string{"json.timestamp-format.standard": standard, "json.decimal-scale": "error"})})
		if err != nil {
			return "", err
		}
		var b batch.Batch
		a := format.NewAppender()
		a.Begin(&b, &batch.Schema{Fields: fields})
		a.BeginRun(0, 0)
		n := dec.Decode(append(append([]byte(`{"v":`), raw...), '}'), 0, a)
		a.EndRun(1, 0)
		a.Finish()
		if n != 1 {
			return "", fmt.Errorf("%s cannot be read", raw)
		}
		if e := b.Cols[0].DeepErr(0); e != nil {
			if failed == nil {
				failed = e
			}
			continue
		}
		text, err := enc.AppendRow(nil, &b, 0)
		if err != nil {
			return "", err
		}
		return unordered(f.Type, text[len(`{"v":`):len(text)-1])
	}
	return "", fmt.Errorf("%s (%s)", failed.Message, failed.Code)
}

// unordered sorts the keys of a value that has a MAP in it, which has no order.
func unordered(t types.Type, raw []byte) (string, error) {
	if !hasMap(&t) {
		return string(raw), nil
	}
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return "", fmt.Errorf("BUG: a written value is no JSON: %w", err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", fmt.Errorf("sorting a MAP: %w", err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

func hasMap(t *types.Type) bool {
	return t.Kind == types.Map || t.Elem != nil && hasMap(t.Elem) || slices.ContainsFunc(t.Fields, func(f types.Field) bool { return hasMap(&f.Type) })
}

// actualRows picks the compared columns out of written rows.
func actualRows(rows []json.RawMessage, columns []types.Field) ([]row, error) {
	out := make([]row, len(rows))
	for i, raw := range rows {
		var values map[string]json.RawMessage
		if err := json.Unmarshal(raw, &values); err != nil {
			return nil, fmt.Errorf("BUG: a written row is no JSON object: %w", err)
		}
		out[i].values = make([]string, len(columns))
		for k, f := range columns {
			v, err := unordered(f.Type, values[f.Name])
			if err != nil {
				return nil, err
			}
			out[i].values[k] = v
		}
	}
	return out, nil
}

// diff compares rows and tells apart what is missing, what is there without
// being wanted, and what differs in some columns.
func diff(wanted, actual []row, columns []types.Field, ordered bool) []Problem {
	if ordered {
		return diffOrdered(wanted, actual, columns)
	}
	var missing []row
	left := slices.Clone(actual)
	for _, w := range wanted {
		if i := slices.IndexFunc(left, func(a row) bool { return a.key() == w.key() }); i >= 0 {
			left = slices.Delete(left, i, i+1)
		} else {
			missing = append(missing, w)
		}
	}
	sort.Slice(left, func(i, j int) bool { return left[i].key() < left[j].key() })
	var out []Problem
	for _, w := range missing {
		i, equal := nearestRow(w, left)
		if equal*2 < len(columns) || equal == 0 {
			out = append(out, Problem{Line: w.line, Message: "missing:    " + w.show(columns)})
			continue
		}
		out = append(out, Problem{Line: w.line, Message: differing(w, left[i], columns)})
		left = slices.Delete(left, i, i+1)
	}
	for _, a := range left {
		out = append(out, Problem{Message: "not wanted: " + a.show(columns)})
	}
	return out
}

func diffOrdered(wanted, actual []row, columns []types.Field) []Problem {
	var out []Problem
	for i := range max(len(wanted), len(actual)) {
		switch {
		case i >= len(actual):
			out = append(out, Problem{Line: wanted[i].line, Message: "missing:    " + wanted[i].show(columns)})
		case i >= len(wanted):
			out = append(out, Problem{Message: "not wanted: " + actual[i].show(columns)})
		case wanted[i].key() != actual[i].key():
			out = append(out, Problem{Line: wanted[i].line, Message: differing(wanted[i], actual[i], columns)})
		}
	}
	return out
}

// nearestRow is the row with the most equal columns.
func nearestRow(w row, rows []row) (at, equal int) {
	for i, a := range rows {
		n := 0
		for k := range w.values {
			if w.values[k] == a.values[k] {
				n++
			}
		}
		if n > equal {
			at, equal = i, n
		}
	}
	return at, equal
}

// differing names the columns that differ.
func differing(w, a row, columns []types.Field) string {
	var b bytes.Buffer
	for k, f := range columns {
		if w.values[k] == a.values[k] {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s: want %s, got %s", f.Name, w.values[k], a.values[k])
	}
	return b.String()
}

// compareDead compares dead rows, without order. Rows that die for tables that
// the test or step does not name are only noted.
func compareDead(e *expected, dead []deadRow) (problems []Problem, notes []string) {
	named := map[string]bool{}
	for _, w := range e.want {
		named[w.table] = true
	}
	any := len(e.want) == 0
	for _, d := range e.dead {
		named[d.table] = true
		any = any || d.table == ""
	}
	used := make([]bool, len(dead))
	wanted := slices.Clone(e.dead)
	// What leaves less open chooses first.
	open := func(d wantDead) int {
		return len(slices.DeleteFunc([]string{d.table, d.column}, func(s string) bool { return s != "" }))
	}
	slices.SortStableFunc(wanted, func(a, b wantDead) int { return open(a) - open(b) })
	for _, w := range wanted {
		i := -1
		for k, d := range dead {
			if !used[k] && d.reason == w.reason && (w.table == "" || slices.Contains(d.tables, w.table)) && (w.column == "" || w.column == d.column) {
				i = k
				break
			}
		}
		if i < 0 {
			problems = append(problems, Problem{Line: w.line, Message: "missing dead row: " + w.show()})
			continue
		}
		used[i] = true
	}
	others := map[string]int{}
	for k, d := range dead {
		switch {
		case used[k]:
		case any || slices.ContainsFunc(d.tables, func(t string) bool { return named[t] }):
			problems = append(problems, Problem{Message: "dead, and not wanted to be: " + d.show()})
		default:
			others[strings.Join(d.tables, ", ")]++
		}
	}
	for _, table := range slices.Sorted(maps.Keys(others)) {
		notes = append(notes, fmt.Sprintf("not compared: %d dead of table %s", others[table], table))
	}
	return problems, notes
}

func (d wantDead) show() string {
	s := d.reason
	if d.column != "" {
		s += " in " + d.column
	}
	if d.table != "" {
		s += " for table " + d.table
	}
	return s
}

func (d deadRow) show() string {
	s := wantDead{table: strings.Join(d.tables, ", "), reason: d.reason, column: d.column}.show()
	return fmt.Sprintf("%s (%s %d:%d: %s)", s, d.topic, d.partition, d.offset, d.message)
}
