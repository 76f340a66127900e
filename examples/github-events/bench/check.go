package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	githubevents "github.com/millrace/millrace/examples/github-events"
)

var (
	declared = regexp.MustCompile("CREATE TABLE `?(\\w+)`? *(?:\\(([^;]*?)\\) )?WITH \\('path'[^;)]*\\) LIKE event_table;")
	common   = regexp.MustCompile(`(?s)CREATE TABLE event_table \((.*?)\n\)`)
	column   = regexp.MustCompile("(?m)(?:^|,)\\s*`?(\\w+)`? +[A-Z]")
)

// columnsOf are the columns of each table that the job writes.
func columnsOf(job string) map[string][]string {
	names := func(list string) (out []string) {
		for _, m := range column.FindAllStringSubmatch(list, -1) {
			out = append(out, m[1])
		}
		return out
	}
	shared := names(common.FindStringSubmatch(job)[1])
	tables := map[string][]string{}
	for _, m := range declared.FindAllStringSubmatch(job, -1) {
		tables[m[1]] = append(slices.Clone(shared), names(m[2])...)
	}
	return tables
}

// contents are a table's rows and its sum: of each column of a row the length of its
// text, weighted by the row's id and the column's place. A value that is in another
// row or another column, or another value of another length, changes it.
type contents struct {
	Rows int64 `json:"n"`
	Sum  int64 `json:"s"`
}

// contentsQuery asks for the contents of all tables.
func contentsQuery(tables map[string][]string) string {
	var queries []string
	for _, t := range slices.Sorted(maps.Keys(tables)) {
		var terms []string
		for i, c := range tables[t] {
			terms = append(terms, fmt.Sprintf("%d * COALESCE(CHAR_LENGTH(CAST(`%s` AS STRING)), %d)", i+1, c, 1000+i))
		}
		queries = append(queries, fmt.Sprintf("SELECT '%s' AS t, COUNT(*) AS n, SUM(MOD(event_id, 9973) * (%s)) AS s FROM `%s`", t, strings.Join(terms, " + "), t))
	}
	return strings.Join(queries, "\nUNION ALL ")
}

// read returns the contents of the tables below out, whoever wrote them.
func (c *config) read(ctx context.Context, job, out string) (map[string]contents, error) {
	tables := columnsOf(job)
	var ddl strings.Builder
	for _, st := range strings.SplitAfter(job, ";\n") {
		if st = withoutComments(st); strings.HasPrefix(st, "CREATE ") {
			ddl.WriteString(st + "\n")
		}
	}
	file, data := filepath.Join(c.dir, "tables.sql"), filepath.Join(c.dir, "reader")
	if err := os.WriteFile(file, []byte(ddl.String()), 0o644); err != nil {
		return nil, fmt.Errorf("reading the tables: %w", err)
	}
	defer os.RemoveAll(data)
	cmd := exec.CommandContext(ctx, c.millrace, "sql", "-f", file, "-e", contentsQuery(tables), "--set", "OUT="+out, "--data", data, "-o", "jsonl", "--progress", "none")
	cmd.Env = userEnv()
	var text, errText bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &errText
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("reading the tables of %s: %w\n%s", out, err, errText.Bytes())
	}
	got := map[string]contents{}
	for line := range bytes.Lines(text.Bytes()) {
		var row struct {
			T string
			contents
		}
		if err := json.Unmarshal(line, &row); err != nil {
			return nil, fmt.Errorf("reading the answer %q: %w", line, err)
		}
		got[row.T] = row.contents
	}
	if len(got) != len(tables) {
		return nil, fmt.Errorf("of %d tables %d have rows", len(tables), len(got))
	}
	return got, nil
}

// compare says where two contents differ, or how many rows differ from the events
// that were made.
func compare(millrace, flink map[string]contents, made map[string]int) error {
	for _, t := range slices.Sorted(maps.Keys(millrace)) {
		if millrace[t] != flink[t] {
			return fmt.Errorf("table %s: Millrace wrote %+v, Flink %+v", t, millrace[t], flink[t])
		}
	}
	var all, each int64
	for _, topic := range githubevents.Topics {
		all += int64(made[topic])
	}
	for t, c := range millrace {
		if t != "events" {
			each += c.Rows
		}
	}
	if got := millrace["events"].Rows; got != all || each != all {
		return fmt.Errorf("of %d events %d are in table events, and %d in the others", all, got, each)
	}
	return nil
}
