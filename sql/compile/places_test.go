package compile

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/sqltest"
)

// TestTablesAtOnePlace: a job writes one table at a place, however its path is spelled.
func TestTablesAtOnePlace(t *testing.T) {
	const source = "CREATE TABLE c1 (a INT) WITH ('connector' = 'log', 'topic' = 'c1');\nCREATE TABLE c2 (a INT) WITH ('connector' = 'log', 'topic' = 'c2');\nCREATE TABLE c3 (a INT) WITH ('connector' = 'log', 'topic' = 'c3');\n"
	const loop = "FOR EACH TABLE t IN (SHOW TABLES LIKE 'c_') BEGIN\n  CREATE TABLE `f_${t}` LIKE tmpl WITH COLUMNS OF `${t}`;\n  INSERT INTO `f_${t}` SELECT * FROM `${t}`;\nEND FOR;"
	for name, text := range map[string]string{
		"two spellings": `CREATE TABLE x (a INT) WITH ('connector' = 'filesystem', 'path' = 'lake/x', 'format' = 'json');
CREATE TABLE y (a INT) WITH ('connector' = 'filesystem', 'path' = «bad_option|'./lake/x/'», 'format' = 'json');
INSERT INTO x SELECT a FROM c1; INSERT INTO y SELECT a FROM c2;`,
		"one is read": `CREATE TABLE x (a INT) WITH ('connector' = 'filesystem', 'path' = 'lake/x', 'format' = 'json');
CREATE TABLE y (a INT) WITH ('connector' = 'filesystem', 'path' = 'lake/x', 'format' = 'json');
CREATE TABLE z (a INT) WITH ('connector' = 'filesystem', 'path' = 'lake/z', 'format' = 'json');
INSERT INTO x SELECT a FROM c1; INSERT INTO x SELECT a FROM c2; INSERT INTO z SELECT a FROM y;`,
		"a template without the variable": "CREATE TABLE tmpl WITH ('connector' = 'filesystem', 'path' = «bad_option|'lake/x'», 'format' = 'json');\n" + loop,
		"a template with it":              "CREATE TABLE tmpl WITH ('connector' = 'filesystem', 'path' = 'lake/${t}', 'format' = 'json');\n" + loop,
	} {
		t.Run(name, func(t *testing.T) { checkMarks(t, source+text, ModeRun) })
	}
	_, ds := Compile([]Source{{"job.sql", source + "CREATE TABLE tmpl WITH ('connector' = 'filesystem', 'path' = 'lake/x', 'format' = 'json');\n" + loop}}, Options{Registry: sqltest.Registry(), Mode: ModeRun})
	if len(ds) != 1 || !strings.Contains(ds[0].Message, `"f_c1" and "f_c2"`) {
		t.Errorf("the message does not name the tables: %v", ds)
	}
}
