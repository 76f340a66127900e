package assist_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/assist"
	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/sqltest"
)

const ddl = `CREATE TABLE clicks (user_id BIGINT COMMENT 'who', url STRING, info ROW<city STRING>) WITH ('connector' = 'log', 'topic' = 'c');
CREATE TABLE out_t (user_id BIGINT, n BIGINT) WITH ('connector' = 'blackhole');`

func files(text string) []compile.Source {
	return []compile.Source{{Name: "ddl.sql", Text: ddl}, {Name: "job.sql", Text: text}}
}

func options() compile.Options { return compile.Options{Registry: sqltest.Registry()} }

// labels completes at the mark ¦.
func labels(t *testing.T, marked string) []string {
	t.Helper()
	at := strings.Index(marked, "¦")
	c, err := assist.Complete(files(strings.Replace(marked, "¦", "", 1)), "job.sql", at, options())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, it := range c.Items {
		out = append(out, it.Label)
	}
	return out
}

func TestCompleteByTokens(t *testing.T) {
	for _, x := range []struct {
		marked   string
		has, not []string
	}{
		// None of these parses, with a word at the mark or without.
		{"SELECT COUNT(DISTINCT ¦ FROM clicks", []string{"user_id", "url"}, []string{"n"}},
		{"SELECT a.u¦ FROM clicks a JOIN out_t b ON (", []string{"user_id", "url"}, []string{"n"}},
		{"SELECT b.¦ FROM clicks a JOIN out_t AS b ON (", []string{"user_id", "n"}, []string{"url"}},
		{"INSERT INTO out_t SELECT ( ¦ FROM out_t; SELECT 1 FROM clicks", []string{"n"}, []string{"url"}},
		{"SELECT u¦", []string{"user_id", "url"}, nil},
		{"SELECT ( ¦", []string{"n", "url"}, nil},
		{"ALTER TABLE clicks SET ('¦'", []string{"topic", "connector"}, []string{"user_id"}},
		{"DROP TABLE ¦", []string{"clicks"}, []string{"CHAR_LENGTH"}},
		{"SELECT CAST(1 AS T¦", []string{"TINYINT", "TIMESTAMP"}, []string{"THEN"}},
		{"SELECT 1 /* us¦", nil, []string{"user_id"}},
		{"SELECT `u¦", nil, []string{"SELECT"}},
	} {
		got := labels(t, x.marked)
		for _, h := range x.has {
			if !slices.Contains(got, h) {
				t.Errorf("%s: %q is missing in %q", x.marked, h, got)
			}
		}
		for _, n := range x.not {
			if slices.Contains(got, n) {
				t.Errorf("%s: %q is offered", x.marked, n)
			}
		}
	}
}

// TestNamesOfABareSelect: a job file has no place for it, and still it is typed.
func TestNamesOfABareSelect(t *testing.T) {
	text := "SELECT c.user_id FROM clicks AS c"
	a, err := assist.Analyze(files(text), "job.sql", options())
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Findings) != 1 || a.Findings[0].Code != "select_in_job" {
		t.Errorf("%v", a.Findings)
	}
	hover, at, _ := a.Hover(strings.Index(text, "user_id") + 2)
	if !strings.Contains(hover, "user_id BIGINT") || at.Text() != "user_id" {
		t.Errorf("%q at %q", hover, at.Text())
	}
	def, _ := a.Definition(strings.Index(text, "user_id"))
	if def.File == nil || def.File.Name() != "ddl.sql" || !strings.HasPrefix(def.Text(), "user_id") {
		t.Errorf("declared at %v %q", def.File, def.Text())
	}
}

// TestEveryPlaceOfEveryPrefix: no text, however broken, makes it fail.
func TestEveryPlaceOfEveryPrefix(t *testing.T) {
	text := "SET 'a' = 'b'; CREATE VIEW v AS SELECT `u` 中 FROM clicks; INSERT INTO out_t SELECT x.user_id, 'é' FROM (SELECT * FROM v) x WHERE a > 1 -- c\n/* \U0001F600"
	for end := 0; end <= len(text); end += 3 {
		for at := end; at >= 0; at -= 7 {
			if _, err := assist.Complete(files(text[:end]), "job.sql", at, options()); err != nil {
				t.Fatal(err)
			}
		}
		a, err := assist.Analyze(files(text[:end]), "job.sql", options())
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at <= end; at++ {
			a.Hover(at)
			a.Definition(at)
		}
	}
	if _, err := assist.Analyze(files(""), "other.sql", options()); err == nil {
		t.Error("a file that is not there is analyzed")
	}
}

func FuzzAssist(f *testing.F) {
	f.Add("SELECT user_id FROM clicks WHERE ", 20)
	f.Add("CREATE TABLE t (a INT) WITH ('connector' = '", 44)
	f.Add("SELECT `\xff' /* -- ", 9)
	f.Fuzz(func(t *testing.T, text string, at int) {
		if _, err := assist.Complete(files(text), "job.sql", at, options()); err != nil {
			t.Fatal(err)
		}
		a, err := assist.Analyze(files(text), "job.sql", options())
		if err != nil {
			t.Fatal(err)
		}
		a.Hover(at)
		a.Definition(at)
	})
}
