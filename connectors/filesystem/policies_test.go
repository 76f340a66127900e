package filesystem

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// commandTable is a table whose partitions are told to a script, with one row in it.
func commandTable(t *testing.T, script string, with map[string]string) (s connector.Sink, log string) {
	t.Helper()
	dir := t.TempDir()
	log = filepath.Join(dir, "log")
	program := filepath.Join(dir, "ready.sh")
	if err := os.WriteFile(program, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"path": "/t", "format": "parquet", keyPolicy: "custom, success-file",
		keyCommand: "sh " + program + " '" + log + "' {partition} \"at {location}\""}
	for k, v := range with {
		all[k] = v
	}
	c := newConnector(vfs.NewMem())
	cols := []connector.Column{column("v", types.NewString()), column("dt", types.NewString()), column("hr", types.NewString())}
	table := tableOf(c, cols, []int{1, 2}, all)
	table.Name = "clicks"
	publishBatch(t, c, table, textBatch(cols, []string{"x", "2024-05-01", "\x00"}), 1)
	s, err := c.OpenSink(t.Context(), table, conntest.OwnerOf(1, 2))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.(*Sink).locks = dir
	return s, log
}

const nullHour = "dt=2024-05-01/hr=__HIVE_DEFAULT_PARTITION__"

// TestCommandIsTold: the command gets the partition as arguments and environment, after
// the success file, and once more when the partition is committed once more.
func TestCommandIsTold(t *testing.T) {
	s, log := commandTable(t, `echo "$2|$3|$MILLRACE_TABLE|$MILLRACE_PARTITION|$MILLRACE_PARTITION_VALUES|$MILLRACE_LOCATION|$MILLRACE_FILES|$MILLRACE_ROWS" >>"$1"`, nil)
	pc := s.(connector.PartitionCommitter)
	for range 2 {
		if err := pc.CommitPartition(t.Context(), nullHour); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	line := nullHour + "|at /t/" + nullHour + "|clicks|" + nullHour + `|{"dt":"2024-05-01","hr":null}|/t/` + nullHour + "|1|1\n"
	if string(have) != line+line {
		t.Errorf("the command was told\n%s want twice\n%s", have, line)
	}
	if _, err := s.(*Sink).fs.Stat("/t/" + nullHour + "/_SUCCESS"); err != nil {
		t.Error(err)
	}
}

// TestCommandFails: codes that may change are tried again, others end a bounded run;
// the output is in the error; what a command has started ends with it.
func TestCommandFails(t *testing.T) {
	for _, c := range []struct {
		name, script, want string
		with               map[string]string
		final              bool
	}{
		{name: "a code", script: "echo no route >&2; exit 3", want: `exit code 3; its output ends with "no route"`},
		{name: "usage", script: "exit 64", want: "exit code 64", final: true},
		{name: "a signal", script: "kill -9 $$", want: "killed"},
		{name: "time-out", script: "sleep 600 & wait", with: map[string]string{keyCommandTimeout: "50 ms"}, want: "stopped after 50ms"},
		{name: "no program", with: map[string]string{keyCommand: "/no/such/program"}, want: "/no/such/program", final: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := commandTable(t, c.script, c.with)
			err := s.(connector.PartitionCommitter).CommitPartition(t.Context(), nullHour)
			var r connector.Retryable
			if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &r) || r.Retryable() == c.final {
				t.Errorf("got %v, want %q, final %t", err, c.want, c.final)
			}
		})
	}
}

// TestCommandOfAnOldProcess: once another has taken the table over, nothing is run.
func TestCommandOfAnOldProcess(t *testing.T) {
	s, log := commandTable(t, `echo run >>"$1"`, nil)
	f := s.(*Sink)
	late := &Connector{fs: f.fs, schemes: map[string]Scheme{}, pools: f.parquet.Pools}
	if x, err := late.OpenSink(t.Context(), f.table, conntest.OwnerOf(1, 3)); err != nil {
		t.Fatal(err)
	} else {
		defer x.Close()
	}
	err := s.(connector.PartitionCommitter).CommitPartition(context.Background(), nullHour)
	if _, ran := os.Stat(log); !errors.Is(err, connector.ErrFenced) || !errors.Is(ran, os.ErrNotExist) {
		t.Errorf("%v, and the command's file: %v", err, ran)
	}
}

// TestPolicyOptions: what contradicts itself is refused by key.
func TestPolicyOptions(t *testing.T) {
	c := newConnector(vfs.NewMem())
	for _, x := range []struct {
		with map[string]string
		key  string
	}{
		{map[string]string{keyPolicy: "custom"}, keyCommand},
		{map[string]string{keyPolicy: "readiness-topic"}, KeyReadiness},
		{map[string]string{keyPolicy: "success-file", keyCommand: "x"}, keyCommand},
		{map[string]string{keyPolicy: "success-file", KeyReadiness: "x"}, KeyReadiness},
		{map[string]string{keyPolicy: "success-file", keyCommandTimeout: "1 s"}, keyCommandTimeout},
		{map[string]string{keyPolicy: "custom", keyCommand: "x", keyCommandTimeout: "0 s"}, keyCommandTimeout},
		{map[string]string{keyPolicy: "custom", keyCommand: "x 'y"}, keyCommand},
		{map[string]string{keyPolicy: "custom", keyCommand: "x {rows}"}, keyCommand},
		{map[string]string{keyPolicy: "custom", keyCommand: "x {Partition}"}, keyCommand},
		{map[string]string{keyPolicy: "custom", keyCommand: "x {par_tition}"}, keyCommand},
		{map[string]string{keyPolicy: "custom", keyCommand: "{table} x"}, keyCommand},
		{map[string]string{keyPolicy: "readiness-topic", KeyReadiness: "a b"}, KeyReadiness},
		{map[string]string{keyPolicy: "readiness-topic", KeyReadiness: "__ready"}, KeyReadiness},
		{map[string]string{keyPolicy: "success-file", keyReadyServers: "h:1"}, keyReadyServers},
		{map[string]string{keyPolicy: "readiness-topic", KeyReadiness: "r", ReadinessProperties + "ssl.truststore.location": "f"}, ReadinessProperties + "ssl.truststore.location"},
		{map[string]string{keyPolicy: "readiness-topic", KeyReadiness: "r", ReadinessProperties + "b": "1", ReadinessProperties + "a": "1", ReadinessProperties + "c": "1"}, ReadinessProperties + "a"},
		{map[string]string{keyPolicy: "success"}, keyPolicy},
		{map[string]string{keyPolicy: "success-file", keyPolicyClass: "com.example.Policy"}, keyPolicyClass},
	} {
		with := map[string]string{"connector": "filesystem", "path": "/t", "format": "parquet"}
		for k, v := range x.with {
			with[k] = v
		}
		if _, errs := c.Spec().Resolve(with); len(errs) != 1 || errs[0].Key != x.key {
			t.Errorf("%v: %v, want one of %s", x.with, errs, x.key)
		}
	}
}

// TestCommandFindsNoSecrets: what is Millrace's own in the environment of the process,
// as are the secrets of job files, is not the command's.
func TestCommandFindsNoSecrets(t *testing.T) {
	t.Setenv("MILLRACE_SECRET_KEY", "hidden")
	t.Setenv("MILLRACE_ROWS", "of the process")
	t.Setenv("READY_URL", "http://ready")
	s, log := commandTable(t, `echo "$READY_URL, $MILLRACE_SECRET_KEY, $MILLRACE_ROWS" >"$1"`, nil)
	if err := s.(connector.PartitionCommitter).CommitPartition(t.Context(), nullHour); err != nil {
		t.Fatal(err)
	}
	if have, err := os.ReadFile(log); err != nil || string(have) != "http://ready, , 1\n" {
		t.Errorf("%q, %v", have, err)
	}
}

// TestPoliciesNeedPartitions: what tells of partitions is refused where there are none.
func TestPoliciesNeedPartitions(t *testing.T) {
	c := newConnector(vfs.NewMem())
	for _, with := range []map[string]string{{keyPolicy: "custom", keyCommand: "x"}, {keyPolicy: "readiness-topic", KeyReadiness: "ready"}} {
		with["path"], with["format"] = "/t", "parquet"
		_, err := c.OpenSink(t.Context(), tableOf(c, []connector.Column{column("v", types.NewString())}, nil, with), conntest.OwnerOf(1, 1))
		var o *connector.OptionError
		if !errors.As(err, &o) || o.Key != keyPolicy {
			t.Errorf("%v: %v", with, err)
		}
	}
}
