package hive

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/connector"
)

// TestCommandComesAfterTheMetastore: a command runs once the partition is registered,
// with the metastore's names; when it fails, all steps are taken again.
func TestCommandComesAfterTheMetastore(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "ready.sh")
	if err := os.WriteFile(script, []byte(`[ -e "$1/go" ] || exit 1`+"\n"+`echo "$MILLRACE_DATABASE $MILLRACE_TABLE $MILLRACE_PARTITION $MILLRACE_LOCATION $MILLRACE_ROWS" >>"$1/told"`), 0o600); err != nil {
		t.Fatal(err)
	}
	for policy, registered := range map[string]bool{"custom, metastore": true, "custom": false} {
		w := newWorld()
		os.Remove(filepath.Join(dir, "go"))
		os.Remove(filepath.Join(dir, "told"))
		x, err := w.conn.OpenSink(t.Context(), w.table(map[string]string{keyPolicy: policy, "sink.partition-commit.policy.command": "sh " + script + " " + dir}), conntest.OwnerOf(1, 1))
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		s := x.(*Sink)
		tp := writeBatch(t, s, 1, 0, conntest.Rows(0, 1))[0]
		if err := s.CommitPartition(t.Context(), tp); err == nil || !strings.Contains(err.Error(), "exit code 1") {
			t.Errorf("a command that fails: %v", err)
		}
		if _, there := w.fake.parts["t"][tp]; there != registered {
			t.Errorf("%s: registered %t", policy, there)
		}
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.CommitPartition(t.Context(), tp); err != nil {
			t.Fatal(err)
		}
		want := "default t " + tp + " file:/warehouse/t/" + tp + " 1\n"
		if have, err := os.ReadFile(filepath.Join(dir, "told")); err != nil || string(have) != want {
			t.Errorf("%s: told %q, %v, want %q", policy, have, err, want)
		}
		var d connector.PartitionDescriber = s
		if f, err := d.DescribePartition(t.Context(), tp, nil); err != nil || f.Database != "default" || f.Rows != 1 || f.Files != 1 || f.Location != "file:/warehouse/t/"+tp {
			t.Errorf("%s: described as %+v, %v", policy, f, err)
		}
	}
}
