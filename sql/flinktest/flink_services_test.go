//go:build services

package flinktest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/catalog"
)

// renew is set by "make oracle": the answers are written instead of compared.
var renew = os.Getenv("MILLRACE_ORACLE_RENEW") != ""

// onlyNew keeps the answers that are stored, for work on cases.
var onlyNew = os.Getenv("MILLRACE_ORACLE_NEW") != ""

// columnsAQuery is how many expressions one query selects: planning a query costs
// more than a column.
const columnsAQuery = 40

// arrival finds queries whose rows depend on the order in which they arrive; Flink
// reads the branches of VALUES, and the sides of a join, in any order, and answers one
// way or the other.
var arrival = regexp.MustCompile(`(LISTAGG|ARRAY_AGG|FIRST_VALUE|LAST_VALUE)\([^)]*\)( FROM|,)|(FROM|JOIN) (above|lo|firsts) `)

// sampled is of how many cases one is asked again where all need not be.
const sampled = 5

// TestStoredAnswersAreFlinks asks Flink again.
func TestStoredAnswersAreFlinks(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	f, err := services.StartFlink(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	only := os.Getenv("MILLRACE_ORACLE_ONLY") // names with commas, for work on some
	for _, s := range suites(t) {
		if only != "" && !strings.Contains(","+only+",", ","+s.name+",") {
			continue
		}
		if !renew && len(s.queries) > 15*sampled {
			var some []string
			for i := 0; i < len(s.queries); i += sampled {
				some = append(some, s.queries[i])
			}
			s.queries = some
		}
		begin := time.Now()
		old := readAnswers(t, s.name)
		fresh := &stored{version: services.FlinkVersion, answers: map[string]*answer{}}
		r := &flinkRun{t: t, ctx: ctx, flink: f, suite: s, old: old, fresh: fresh}
		r.setup()
		if s.exprs {
			r.expressions()
		} else {
			for _, q := range s.queries {
				if fresh.answers[q] = old.answers[q]; fresh.answers[q] == nil || !onlyNew {
					fresh.answers[q] = r.ask(q)
				}
			}
		}
		t.Logf("%s: %d answers in %.1f s", s.name, len(fresh.answers), time.Since(begin).Seconds())
		for _, q := range s.queries {
			was, is := old.answers[q], fresh.answers[q]
			switch {
			case was == nil && renew:
			case was == nil:
				t.Errorf("%s: no stored answer (make oracle): %s", s.name, q)
			case was.fault == "" && is.fault == "" && arrival.MatchString(q):
			case (was.fault != "") != (is.fault != "") || was.fault == "" && was.differs(is, false) != "":
				report := t.Errorf
				if renew {
					report = t.Logf
				}
				report("%s: %s\nstored %s\nnow    %s", s.name, q, was, is)
			}
		}
		if renew {
			writeAnswers(t, s, fresh)
		}
	}
}

type flinkRun struct {
	t          *testing.T
	ctx        context.Context
	flink      *services.Flink
	suite      *suite
	old, fresh *stored
}

func (r *flinkRun) session(mode string) {
	settings := map[string]string{"table.local-time-zone": "UTC", "table.exec.source.cdc-events-duplicate": "true"}
	for k, v := range r.suite.settings {
		settings[k] = v
	}
	settings["execution.runtime-mode"] = mode
	if err := r.flink.Session(r.ctx, settings); err != nil {
		r.t.Fatal(err)
	}
}

// setup makes the tables over files. They are written in batch mode, which
// completes files at its end.
func (r *flinkRun) setup() {
	dir := r.t.TempDir()
	r.session("batch")
	create := func() {
		for _, sql := range r.suite.tables {
			name := strings.Trim(strings.Fields(sql)[2], "`")
			if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
				r.t.Fatal(err)
			}
			if log := logOf(sql); log != "" {
				r.debezium(sql, name, log, dir)
				continue
			}
			files := "'connector' = 'filesystem', 'format' = 'json', 'json.encode.decimal-as-plain-number' = 'true', 'path' = 'file://" + filepath.Join(dir, name) + "'"
			r.statement(strings.Replace(sql, "'connector' = 'given'", files, 1))
		}
	}
	create()
	for _, sql := range r.suite.rows {
		r.statement(sql)
	}
	if r.suite.streaming() {
		r.session("streaming")
		create()
	}
}

// upsertTable is what a table of newest rows has in WITH.
var upsertTable = regexp.MustCompile(`'connector' = 'given-upsert', 'log' = '(\w+)'`)

// logOf is the table that holds the records of a table of newest rows, "" of others.
func logOf(sql string) string {
	if m := upsertTable.FindStringSubmatch(sql); m != nil {
		return m[1]
	}
	return ""
}

// debezium makes a table of newest rows over a file in Debezium's format, of events
// that may repeat: Flink keeps the last row of each key, as it does for upsert-kafka.
func (r *flinkRun) debezium(sql, name, log, dir string) {
	r.t.Helper()
	m := newMillrace(r.t, r.suite)
	object, _ := m.session.Catalog.Lookup(log)
	cols := object.(*catalog.Table).Columns
	var out strings.Builder
	for _, line := range m.given.Rows(log).Text(types.UTC()) {
		cells := splitRow(line)
		var fields []string
		for i, c := range cols[1:] {
			value := cells[i+1]
			switch {
			case value == "NULL":
				value = "null"
			case c.Type.IsString() || c.Type.IsTimestamp():
				value = strconv.Quote(value)
			}
			fields = append(fields, strconv.Quote(c.Name)+":"+value)
		}
		row := "{" + strings.Join(fields, ",") + "}"
		if cells[0] == "-" {
			out.WriteString(`{"before":` + row + `,"after":null,"op":"d"}` + "\n")
		} else {
			out.WriteString(`{"before":null,"after":` + row + `,"op":"c"}` + "\n")
		}
	}
	if err := os.WriteFile(filepath.Join(dir, name, "events.json"), []byte(out.String()), 0o644); err != nil {
		r.t.Fatal(err)
	}
	files := "'connector' = 'filesystem', 'format' = 'debezium-json', 'path' = 'file://" + filepath.Join(dir, name) + "'"
	r.statement(upsertTable.ReplaceAllLiteralString(sql, files))
}

func (r *flinkRun) statement(sql string) {
	if _, err := r.flink.Run(r.ctx, sql); err != nil {
		r.t.Fatalf("%s: %s: %v", r.suite.name, sql, err)
	}
}

func (r *flinkRun) ask(query string) *answer {
	rows, err := r.flink.Run(r.ctx, r.suite.sql(query))
	var refused *services.FlinkError
	if errors.As(err, &refused) {
		return &answer{fault: refused.Message}
	} else if err != nil {
		r.t.Fatalf("%s: %s: %v", r.suite.name, query, err)
	}
	return &answer{types: rows.Types, rows: fold(rows)}
}

// fold is what is left of a changelog in the end.
func fold(rows *services.FlinkRows) []string {
	var out []string
	for i, r := range rows.Rows {
		cells := make([]string, len(r))
		for k, v := range r {
			cells[k] = "NULL"
			if v != nil {
				cells[k] = escapeCell(*v)
			}
		}
		row := strings.Join(cells, "|")
		if kind := rows.Kinds[i]; kind == "-U" || kind == "-D" {
			for k := len(out) - 1; k >= 0; k-- {
				if out[k] == row {
					out = append(out[:k], out[k+1:]...)
					break
				}
			}
			continue
		}
		out = append(out, row)
	}
	return out
}

// expressions asks for many in one query. Those known to fail are asked alone.
func (r *flinkRun) expressions() {
	var good []string
	for _, q := range r.suite.queries {
		if a := r.old.answers[q]; a != nil && a.fault != "" {
			r.fresh.answers[q] = r.ask(q)
		} else {
			good = append(good, q)
		}
	}
	for len(good) > 0 {
		n := min(len(good), columnsAQuery)
		r.together(good[:n])
		good = good[n:]
	}
}

// together asks for expressions in one query, and halves them when it fails.
func (r *flinkRun) together(exprs []string) {
	if len(exprs) == 1 {
		r.fresh.answers[exprs[0]] = r.ask(exprs[0])
		return
	}
	rows, err := r.flink.Run(r.ctx, "SELECT "+strings.Join(exprs, ", "))
	var refused *services.FlinkError
	switch {
	case errors.As(err, &refused):
		half := len(exprs) / 2
		r.together(exprs[:half])
		r.together(exprs[half:])
	case err != nil:
		r.t.Fatal(err)
	case len(rows.Rows) != 1 || len(rows.Types) != len(exprs):
		r.t.Fatalf("%d rows of %d columns for %d expressions", len(rows.Rows), len(rows.Types), len(exprs))
	default:
		for i, e := range exprs {
			value := "NULL"
			if v := rows.Rows[0][i]; v != nil {
				value = escapeCell(*v)
			}
			r.fresh.answers[e] = &answer{types: []string{rows.Types[i]}, rows: []string{value}}
		}
	}
}
