package e2e

import (
	"strings"
	"testing"
)

// TestPartitionsOutsideOfTheConditionAreNotRead: a query that asks for one day
// does not meet the file of another day that cannot be read; one that asks for all
// does.
func TestPartitionsOutsideOfTheConditionAreNotRead(t *testing.T) {
	w := newWorld(t)
	w.file("days/dt=2024-05-01/hr=7/a.json", `{"a":1}`)
	w.file("days/dt=2024-05-01/hr=8/a.json", `{"a":2}`)
	w.file("days/dt=2024-05-02/hr=7/bad.json", "PAR1")
	run := func(where string) result {
		return w.run("run", w.file("days.sql", "SET 'pipeline.name' = '"+where[:1]+"';\n"+
			"CREATE TABLE days (a INT, dt DATE, hr INT) PARTITIONED BY (dt, hr) WITH ('connector' = 'filesystem', 'path' = '${IN}', 'format' = 'json');\n"+
			"CREATE TABLE out_p (a INT, hr INT) WITH ('connector' = 'print');\n"+
			"INSERT INTO out_p SELECT a, hr FROM days WHERE "+where+";\n"), "--set", "IN="+w.dir+"/days", "--progress", "none")
	}
	got := run("dt < DATE '2024-05-02' AND hr + 1 = 9 AND a > 0")
	got.must(t, 0)
	if !strings.Contains(got.stdout, "2, 8") || strings.Contains(got.stdout, "1, 7") {
		t.Errorf("printed\n%s", got.stdout)
	}
	if got := run("a > 0"); got.code == 0 || !strings.Contains(got.stderr, "bad.json") {
		t.Errorf("reading all days: exit code %d\n%s", got.code, got.stderr)
	}
}
