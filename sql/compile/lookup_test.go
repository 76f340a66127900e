package compile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
)

// choosy is a connector that can tell which keys its tables can be looked up by.
type choosy struct {
	*sqltest.Given
	err  error
	keys []int
}

// CheckLookup implements connector.LookupChecker.
func (c *choosy) CheckLookup(_ *connector.Table, keys []int) error {
	c.keys = keys
	return c.err
}

// TestLookupsAreChecked: what a connector says of a table that is looked up is reported
// where the fault stands.
func TestLookupsAreChecked(t *testing.T) {
	for _, c := range []struct {
		what string
		err  error
		text string
		help string
	}{
		{"nothing", nil, "SELECT o.id FROM o JOIN d FOR SYSTEM_TIME AS OF o.proc AS d ON o.id = d.k AND d.room = 'a'", ""},
		{"a key", &connector.MissingKeyError{Column: 0, Message: `keys are made of "k"`}, "SELECT o.id FROM o «bad_key|JOIN» d FOR SYSTEM_TIME AS OF o.proc AS d ON d.room = 'a'",
			"add an equality with it to ON, also with a constant: `k` = ..."},
		{"a column", &connector.ColumnError{Column: 1, Message: "it cannot be", Hint: "CAST it"}, "", "CAST it"},
		{"an option", &connector.OptionError{Key: "partitions", OnValue: true, Message: "it has no effect"}, "", ""},
		{"the table", errors.New("it has no primary key"), "", ""},
		{"what is not there yet", &connector.ColumnError{Column: 1, Message: "not_yet: text"}, "", ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			at := func(what, code, text string) string {
				if what == c.what {
					return "«" + code + "|" + text + "»"
				}
				return text
			}
			room := at("a column", "bad_table", "room")
			if room == "room" {
				room = at("what is not there yet", "not_yet", "room")
			}
			text := "CREATE TABLE o (id INT, proc AS PROCTIME()) WITH ('connector' = 'given');\n" +
				"CREATE TABLE " + at("the table", "bad_table", "d") + " (k INT, " + room + " STRING) WITH ('connector' = 'given', 'partitions' = " + at("an option", "bad_option", "'2'") + ");\n" +
				"CREATE TABLE t (id INT) WITH ('connector' = 'given');\nINSERT INTO t "
			if c.text == "" {
				c.text = "SELECT o.id FROM o JOIN d FOR SYSTEM_TIME AS OF o.proc AS d ON o.id = d.k"
			}
			clean, want := marked(t, text+c.text+";")
			conn := &choosy{Given: sqltest.NewGiven(), err: c.err}
			u, ds := Compile([]Source{{"job.sql", clean}}, Options{Registry: sqltest.Registry(conn), Mode: ModeCheck})
			var got []mark
			for _, d := range ds {
				got = append(got, markOf(d))
			}
			if fmt.Sprint(got) != fmt.Sprint(want) || (u.Job == nil) != (c.err != nil) {
				t.Errorf("diagnostics %v, want %v\n%s", got, want, diag.Renderer{}.String(ds))
			}
			if c.help != "" && !strings.Contains(diag.Renderer{}.String(ds), c.help) {
				t.Errorf("no %q in\n%s", c.help, diag.Renderer{}.String(ds))
			}
			if c.what == "nothing" && fmt.Sprint(conn.keys) != "[0 1]" {
				t.Errorf("it was asked about the keys %v", conn.keys)
			}
		})
	}
}
