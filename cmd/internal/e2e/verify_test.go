package e2e

import (
	"fmt"
	"path/filepath"
	"sort"
	"strings"

	"github.com/millrace/millrace/jobs/control"
)

// verify compares everything a job left with what must be there: rows of all
// tables, the ledger's lines, the dead letters; and lets the binary check
// itself. The job must not run.
func (w *world) verify(want *outcome) {
	w.t.Helper()
	w.run("ledger", "show", "--check").must(w.t, 0)
	tables := make([]string, 0, len(want.rows))
	for table := range want.rows {
		tables = append(tables, table)
	}
	sort.Strings(tables)
	for _, table := range tables {
		compare(w.t, table, readTable(w.t, filepath.Join(w.lake, table)), want.rows[table])
	}
	w.verifyLedger(want)
	w.verifyDead(want)
	w.run("file", "verify", w.lake).must(w.t, 0)
	w.run("log", "verify").must(w.t, 0)
}

func (w *world) verifyLedger(want *outcome) {
	w.t.Helper()
	var got struct{ Tables []control.TableLedger }
	w.ask(&got, "ledger", "show")
	lines := map[string]string{}
	for _, l := range got.Tables {
		if want.accounts[l.Table] == nil {
			continue
		}
		if l.Open != 0 || l.Lost != 0 || l.Records != l.Read {
			w.t.Errorf("ledger: %+v has open, lost or uncounted rows", l)
		}
		lines[l.Table+", "+l.Topic] = account{l.Read, l.Written, l.Folded, l.Filtered, l.Dead, l.Late}.String()
	}
	for table, topics := range want.accounts {
		for topic, a := range topics {
			key := table + ", " + topic
			if lines[key] != a.String() {
				w.t.Errorf("ledger: table %s: %s, want %s", key, lines[key], a)
			}
			delete(lines, key)
		}
	}
	for key, l := range lines {
		w.t.Errorf("ledger: table %s is not wanted: %s", key, l)
	}
}

func (a account) String() string {
	return fmt.Sprintf("read %d, written %d, folded %d, filtered %d, dead %d, late %d", a.read, a.written, a.folded, a.filtered, a.dead, a.late)
}

func (w *world) verifyDead(want *outcome) {
	w.t.Helper()
	var got struct{ Records []control.DeadRecord }
	w.ask(&got, "dead", "ls")
	seen := map[place]string{}
	for _, d := range got.Records {
		p := place{d.Table, d.Topic, d.Partition, d.Offset}
		if _, twice := seen[p]; twice {
			w.t.Errorf("dead letters: %v is listed twice", p)
		}
		seen[p] = d.Reason
	}
	var wrong []string
	for p, reason := range want.dead {
		if seen[p] != reason {
			wrong = append(wrong, fmt.Sprintf("%v: reason %q, want %q", p, seen[p], reason))
		}
	}
	for p, reason := range seen {
		if _, ok := want.dead[p]; !ok {
			wrong = append(wrong, fmt.Sprintf("%v: %q is not wanted", p, reason))
		}
	}
	sort.Strings(wrong)
	if len(wrong) > 10 {
		wrong = append(wrong[:10], fmt.Sprintf("and %d more", len(wrong)-10))
	}
	if len(wrong) > 0 {
		w.t.Errorf("dead letters:\n%s", strings.Join(wrong, "\n"))
	}
}
