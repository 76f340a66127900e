package node

import (
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/jobs/control"
)

// TestRowsThatChange: the shell shows each change, a preview what is left of them.
func TestRowsThatChange(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "clicks", 1)
	w.produce(n, "clicks", `{"id":1,"a":1,"b":1}`, `{"id":2,"a":5,"b":1}`, `{"id":1,"a":2,"b":1}`)
	ddl := source("clicks", "clicks")
	r := &result{}
	query := func(sql string) error {
		*r = result{}
		return n.Query(w.ctx(), control.Query{Files: []control.SQLFile{{Name: "ddl", Text: ddl},
			{Name: "query", Text: "SET 'execution.runtime-mode' = 'streaming'; " + sql}}}, r)
	}
	if err := query("SELECT id, SUM(a) AS op FROM clicks GROUP BY id"); err != nil {
		t.Fatal(explain(err))
	}
	if got := strings.Join(r.columns, " "); got != "_op id op" {
		t.Errorf("columns %s", got)
	}
	// What a batch of rows changes twice may go out once.
	last := map[string]string{}
	for _, row := range r.rows {
		op, rest, _ := strings.Cut(strings.TrimPrefix(row, `{"_op":"`), `",`)
		switch id := rest[:6]; op {
		case "+I", "+U":
			last[id] = rest
		case "-U":
			if last[id] != rest {
				t.Errorf("%s takes back %s, there is %s", row, rest, last[id])
			}
		default:
			t.Errorf("row %s", row)
		}
	}
	if last[`"id":1`] != `"id":1,"op":3}` || last[`"id":2`] != `"id":2,"op":5}` {
		t.Errorf("rows %v leave %v", r.rows, last)
	}
	if err := query("SELECT id FROM clicks WHERE a = 5"); err != nil || !slices.Equal(r.rows, []string{`{"id":2}`}) {
		t.Errorf("rows that do not change: %v, %v", r.rows, err)
	}
	p := &result{}
	sql := ddl + "CREATE TABLE sums (id BIGINT, total BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'sums', " +
		"'properties.bootstrap.servers' = 'localhost:1', 'key.format' = 'json', 'value.format' = 'json');\nINSERT INTO sums SELECT id, SUM(a) FROM clicks GROUP BY id;"
	if err := n.Preview(w.ctx(), control.Preview{Files: w.options("job", sql).Files, Range: "start:end", Limit: 10}, p); err != nil {
		t.Fatal(explain(err))
	}
	slices.Sort(p.rows)
	if !slices.Equal(p.rows, []string{`{"id":1,"total":3}`, `{"id":2,"total":5}`}) || !strings.HasPrefix(p.done[0], "table sums: 2 of 2 rows that are left of ") {
		t.Errorf("preview %+v", p)
	}
}
