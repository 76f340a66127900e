package e2e

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
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
	w.verifyFolders(tables)
	w.run("file", "verify", w.lake).must(w.t, 0)
	w.run("log", "verify").must(w.t, 0)
}

// keyedStaging is a staged file of a keyed stage's subtask.
var keyedStaging = regexp.MustCompile(`/k[0-9]+/`)

// ownStaging are the names below .staging that stay: whose the table is and, in
// HDFS, whose an attempt's directory.
var ownStaging = regexp.MustCompile(`/owner$|/owner/record$|/\.made$`)

// verifyFolders looks at what readers do not see: every partition of a table
// that announces partitions is announced once the input has ended, and nothing
// of dead attempts is left.
func (w *world) verifyFolders(tables []string) {
	w.t.Helper()
	for _, table := range tables {
		dir := filepath.Join(w.lake, table)
		announced := map[string]bool{}
		var parts, left []string
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(dir, p)
			switch {
			case strings.HasPrefix(rel, ".staging"):
				// A keyed stage keeps its own until no checkpoint lists them.
				if !d.IsDir() && !ownStaging.MatchString(filepath.ToSlash(rel)) && !keyedStaging.MatchString(rel) {
					left = append(left, rel)
				}
			case d.Name() == "_SUCCESS":
				announced[filepath.Dir(rel)] = true
			case strings.HasPrefix(d.Name(), "hr="):
				parts = append(parts, rel)
			}
			return nil
		})
		if err != nil {
			w.t.Error(err)
		}
		for _, p := range parts {
			if !announced[p] {
				w.t.Errorf("table %s: partition %s has no _SUCCESS although its input has ended", table, p)
			}
		}
		if len(left) > 0 {
			w.t.Errorf("table %s: %d files of dead attempts are left, the first: %s", table, len(left), left[0])
		}
	}
}

func (w *world) verifyLedger(want *outcome) {
	w.t.Helper()
	var got struct{ Tables []control.TableLedger }
	w.ask(&got, "ledger", "show")
	lines := map[string]string{}
	emitted := map[string]int64{}
	for _, l := range got.Tables {
		if want.accounts[l.Table] == nil {
			continue
		}
		if l.Open != 0 || l.Lost != 0 || l.Records != l.Read {
			w.t.Errorf("ledger: %+v has open, lost or uncounted rows", l)
		}
		emitted[l.Table] += l.Emitted
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
	for table, rows := range want.rows {
		folded := int64(0)
		for _, a := range want.accounts[table] {
			folded += a.folded
		}
		if n := int64(rows.total()); folded > 0 && emitted[table] != n {
			w.t.Errorf("ledger: table %s: %d rows emitted, want %d", table, emitted[table], n)
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
