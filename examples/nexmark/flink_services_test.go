//go:build services

package nexmark

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/sql/logictest"
)

var inserting = regexp.MustCompile(`(?s)INSERT INTO nexmark_q\d+\n(.*);`)

// TestStoredAnswersAreFlinks asks Flink again, and compares row by row; "make
// oracle" stores what it says.
func TestStoredAnswersAreFlinks(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	w := newWorld(t)
	w.writeEvents(t)
	f, err := services.StartFlink(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	renew := os.Getenv("MILLRACE_ORACLE_RENEW") != ""
	var stored map[string]*answer
	if !renew {
		stored = readAnswers(t)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Flink %s: %s\n", services.FlinkVersion, config)
	for n := range Queries {
		name := fmt.Sprintf("q%d", n)
		began := time.Now()
		rows, refused := w.flink(t, ctx, f, n)
		t.Logf("%s: Flink took %.1f s", name, time.Since(began).Seconds())
		if refused != "" {
			fmt.Fprintf(&b, "\n%s refused %s\n", name, refused)
			if !renew && stored[name].refused == "" {
				t.Errorf("%s: Flink refuses it now: %s", name, refused)
			}
			continue
		}
		a := answerOf(rows)
		fmt.Fprintf(&b, "\n%s %d rows %s\n", name, a.rows, a.hash)
		for _, r := range a.sample {
			fmt.Fprintf(&b, "  %s\n", r)
		}
		if !renew && stored[name].hash != a.hash {
			t.Errorf("%s: %d rows, stored are %d", name, a.rows, stored[name].rows)
		}
		// Flink's windows of processing time would end after the last event: it has no
		// rows of q12, and TestAnswers counts ours by bidder.
		if n != 12 {
			w.compare(t, n, rows)
		}
	}
	if renew {
		if err := os.WriteFile(answersPath, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// flink are the rows of a query there.
func (w *world) flink(t *testing.T, ctx context.Context, f *services.Flink, n int) (rows []string, refused string) {
	t.Helper()
	if err := f.Session(ctx, map[string]string{"table.local-time-zone": "UTC", "execution.runtime-mode": "streaming"}); err != nil {
		t.Fatal(err)
	}
	views, err := files.ReadFile("views.sql")
	if err != nil {
		t.Fatal(err)
	}
	sql, err := Query(n)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("nexmark_q%d", n)
	text := source(t, "files") + string(views) + strings.Replace(sql, "'connector' = 'filesystem', 'path' = '${SIDE}', 'format' = 'csv'",
		"'connector.type' = 'filesystem', 'connector.path' = 'file://"+w.side()+"', 'format.type' = 'csv'", 1)
	text = strings.ReplaceAll(text, "${EVENTS}", "file://"+filepath.Join(w.dir, "events"))
	for _, st := range strings.SplitAfter(text, ";\n") {
		if st = strings.TrimSpace(st); st == "" || strings.Contains(st, "CREATE TABLE "+name) {
			continue
		}
		if m := inserting.FindStringSubmatch(st); m != nil {
			st = m[1] + ";"
		}
		got, err := f.Run(ctx, strings.TrimSuffix(st, ";"))
		var no *services.FlinkError
		if errors.As(err, &no) {
			return nil, no.Message
		} else if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(st, "CREATE ") {
			continue
		}
		return settled(name, fold(got)), ""
	}
	t.Fatalf("%s has no query", name)
	return nil, ""
}

// fold is what is left of a changelog in the end. One that has rows as they are
// and never as they were replaces them by their key, which is the first column
// (q9: rows of a first place).
func fold(rows *services.FlinkRows) []string {
	left := map[string]int{}
	byKey := slices.Contains(rows.Kinds, "+U") && !slices.Contains(rows.Kinds, "-U")
	now := map[string]string{}
	for i, r := range rows.Rows {
		cells := make([]string, len(r))
		for k, v := range r {
			cells[k] = "NULL"
			if v != nil {
				cells[k] = strings.NewReplacer(`\`, `\\`, "|", `\|`, "\n", `\n`).Replace(*v)
			}
		}
		row := strings.Join(cells, "|")
		kind := rows.Kinds[i]
		if old, ok := now[cells[0]]; ok && byKey && kind == "+U" {
			left[old]--
		}
		now[cells[0]] = row
		if kind == "-U" || kind == "-D" {
			left[row]--
		} else {
			left[row]++
		}
	}
	var out []string
	for row, n := range left {
		for range n {
			out = append(out, row)
		}
	}
	return out
}

// compare shows the first rows that only one of the two has.
func (w *world) compare(t *testing.T, n int, want []string) {
	t.Helper()
	sql, err := Query(n)
	if err != nil {
		t.Fatal(err)
	}
	got, ds := w.run(t, fmt.Sprintf("nexmark_q%d", n), collected(sql), "files", &logictest.Engine{}, logictest.Way{})
	if ds.HasErrors() {
		return // TestAnswers says whether it should be
	}
	left := map[string]int{}
	for _, r := range got {
		left[r]++
	}
	shown := 0
	report := func(who, row string) {
		if shown++; shown <= 6 {
			t.Errorf("q%d: only %s has %s", n, who, row)
		}
	}
	for _, r := range want {
		if left[r]--; left[r] < 0 {
			report("Flink", r)
		}
	}
	for r, n := range left {
		for range n {
			report("Millrace", r)
		}
	}
}
