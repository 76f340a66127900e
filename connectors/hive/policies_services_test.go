//go:build services

package hive

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
)

// policies announces by all four of them: when a command fails, the partition is
// registered and has its success file; all steps are taken again, and once more after
// late rows. What the topic is told is what the metastore has.
func policies(t *testing.T, l *lake) {
	dir := t.TempDir()
	script := filepath.Join(dir, "ready.sh")
	text := `[ -e "${MILLRACE_LOCATION#file:}/_SUCCESS" ] || { echo no success file; exit 1; }
[ -e "$1/go" ] || { echo not yet; exit 1; }
echo "$MILLRACE_DATABASE.$MILLRACE_TABLE $MILLRACE_PARTITION $MILLRACE_ROWS" >>"$1/told"
`
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w := l.world("told", l.URI)
	with := map[string]string{keyPolicy: "readiness-topic,custom,metastore,success-file", "sink.partition-commit.policy.command": "sh " + script + " " + dir,
		"sink.partition-commit.readiness-topic.name": "ready"}
	x, err := w.conn.OpenSink(t.Context(), w.table(conntest.Columns(), []int{2}, with), conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	s := x.(*Sink)
	if p := s.CommitPolicy(); p.Readiness.Name != "ready" || !p.OneByOne {
		t.Errorf("the policy is %+v", p)
	}
	parts := write(t, s, 1, 0, 10)
	for _, tp := range parts {
		if err := s.CommitPartition(t.Context(), tp); err == nil || !strings.Contains(err.Error(), `exit code 1; its output ends with "not yet"`) {
			t.Errorf("a command that fails: %v", err)
		}
	}
	w.wantPartitions(t, map[string]int{parts[0]: 5, parts[1]: 5})
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := ""
	for round, rows := range []int{5, 7} {
		if round == 1 {
			write(t, s, 2, 100, 4) // late rows
		}
		for _, tp := range parts {
			if err := s.CommitPartition(t.Context(), tp); err != nil {
				t.Fatal(err)
			}
			want += fmt.Sprintf("default.told %s %d\n", tp, rows)
			f, err := s.DescribePartition(t.Context(), tp, nil)
			p := w.partition(t, tp)
			if err != nil || p == nil || fmt.Sprint(f.Files, f.Bytes, f.Rows) != p.Parameters["numFiles"]+" "+p.Parameters["totalSize"]+" "+p.Parameters["numRows"] || normal(f.Location) != normal(p.Storage.Location) {
				t.Errorf("the topic is told %+v, %v, the metastore has %+v", f, err, p)
			}
		}
		w.wantPartitions(t, map[string]int{parts[0]: rows, parts[1]: rows})
	}
	if have, err := os.ReadFile(filepath.Join(dir, "told")); err != nil || string(have) != want {
		t.Errorf("the command told %q, %v, want %q", have, err, want)
	}
}
