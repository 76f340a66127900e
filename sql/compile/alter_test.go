package compile

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/plan"
	"github.com/millrace/millrace/sql/sqltest"
)

// TestAlterTable: the table is as if CREATE TABLE had been written so.
func TestAlterTable(t *testing.T) {
	const create = "CREATE TABLE t (a INT, b STRING, c AS a + 1, ts TIMESTAMP(3), WATERMARK FOR ts AS ts, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'log', 'topic' = 'x');\n"
	for _, c := range []struct {
		alter, same string
		code        diag.Code
	}{
		{"ALTER TABLE t SET ('topic' = 'y', 'scan.bounded.mode' = 'latest-offset');", strings.Replace(create, "'x'", "'y', 'scan.bounded.mode' = 'latest-offset'", 1), ""},
		{"ALTER TABLE t SET ('scan.bounded.mode' = 'latest-offset'); ALTER TABLE t RESET ('scan.bounded.mode');", create, ""},
		{"ALTER TABLE t ADD d DOUBLE AFTER a;", strings.Replace(create, "b STRING", "d DOUBLE, b STRING", 1), ""},
		{"ALTER TABLE t ADD (d DOUBLE FIRST, e AS b);", strings.Replace(strings.Replace(create, "(a INT", "(d DOUBLE, a INT", 1), ", WATERMARK", ", e AS b, WATERMARK", 1), ""},
		{"ALTER TABLE t MODIFY b INT;", strings.Replace(create, "b STRING", "b INT", 1), ""},
		{"ALTER TABLE t MODIFY WATERMARK FOR ts AS ts - INTERVAL '1' SECOND;", strings.Replace(create, "FOR ts AS ts", "FOR ts AS ts - INTERVAL '1' SECOND", 1), ""},
		{"ALTER TABLE t DROP b;", strings.Replace(create, ", b STRING", "", 1), ""},
		{"ALTER TABLE t DROP PRIMARY KEY;", strings.Replace(create, ", PRIMARY KEY (a) NOT ENFORCED", "", 1), ""},
		{"ALTER TABLE t DROP WATERMARK;", strings.Replace(create, ", WATERMARK FOR ts AS ts", "", 1), ""},
		{"ALTER TABLE t RENAME b TO bee;", strings.Replace(create, "b STRING", "bee STRING", 1), ""},
		{"ALTER TABLE t ADD `offset` BIGINT METADATA VIRTUAL; ALTER TABLE t RENAME `offset` TO pos;", strings.Replace(create, ", WATERMARK", ", pos BIGINT METADATA FROM 'offset' VIRTUAL, WATERMARK", 1), ""},
		{"ALTER TABLE t DROP a;", create, diag.CodeUnknownColumn},
		{"ALTER TABLE t DROP nobody;", create, diag.CodeUnknownColumn},
		{"ALTER TABLE t ADD b INT;", create, diag.CodeDuplicateColumn},
		{"ALTER TABLE t SET ('topc' = 'y');", create, diag.CodeUnknownOption},
		{"ALTER TABLE t RESET ('connector');", create, diag.CodeUnknownOption},
		{"ALTER TABLE t RESET ('topic');", create, diag.CodeMissingOption},
		{"ALTER TABLE nobody SET ('topic' = 'y');", create, diag.CodeUnknownTable},
		{"ALTER TABLE IF EXISTS nobody SET ('topic' = 'y');", create, ""},
	} {
		t.Run(c.alter, func(t *testing.T) {
			text := func(sql string, want diag.Code) string {
				s := NewSession()
				_, found := Compile([]Source{{Name: "x.sql", Text: sql}}, Options{Registry: sqltest.Registry(), Mode: ModeSQL, Session: s})
				var code diag.Code
				for _, d := range found {
					if d.Severity == diag.Error && code == "" {
						code = d.Code
					}
				}
				if code != want {
					t.Fatalf("%s\nfound %v, want %q", sql, found, want)
				}
				o, ok := s.Catalog.Lookup("t")
				if want != "" {
					return ""
				}
				if !ok {
					t.Fatal("the table is gone")
				}
				return plan.CreateTableText(o.(*catalog.Table))
			}
			if got, want := text(create+c.alter, c.code), text(c.same, ""); c.code == "" && got != want {
				t.Errorf("altered\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestAlterTableInAJob: it stands before the INSERTs, and they see it.
func TestAlterTableInAJob(t *testing.T) {
	const create = "CREATE TABLE t (a INT) WITH ('connector' = 'log', 'topic' = 'x');\nCREATE TABLE o (a INT) WITH ('connector' = 'print');\n"
	for sql, want := range map[string]int{
		"ALTER TABLE t ADD b INT; INSERT INTO o SELECT b FROM t;":                            0,
		"ALTER TABLE t RENAME TO u; INSERT INTO o SELECT a FROM u;":                          0,
		"ALTER TABLE t RENAME TO o; INSERT INTO o SELECT a FROM t;":                          1,
		"INSERT INTO o SELECT a FROM t; ALTER TABLE t ADD b INT;":                            1,
		"ALTER TABLE t RENAME TO u; INSERT INTO o SELECT a FROM t;":                          1,
		"ALTER TABLE t ADD b INT; ALTER TABLE t DROP a; INSERT INTO o SELECT b AS a FROM t;": 0,
	} {
		_, found := Compile([]Source{{Name: "job.sql", Text: create + sql}}, Options{Registry: sqltest.Registry(), Mode: ModeRun})
		if n, _ := found.Count(diag.Error), 0; n != want {
			t.Errorf("%s: %v", sql, found)
		}
	}
}
