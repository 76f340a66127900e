package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/cli"
)

// invocation is a command line with the code that it must end with.
type invocation struct {
	args string
	code int
	// says is a part of what it must print.
	says string
}

// invocations are in order: later ones rely on what earlier ones left. JOB is
// a job that can run, BAD one with a mistake.
var invocations = []invocation{
	{"", 0, "Start here"},
	{"nonsense", 2, `unknown command "nonsense"`},
	{"topcs ls", 2, `did you mean "topics"?`},
	{"--no-such-flag", 2, "unknown flag"},
	{"version", 0, "millrace "},
	{"version -o yaml", 2, "yaml"},
	{"version surplus", 2, ""},

	{"topics", 0, "Available Commands"},
	{"topics lst", 2, `unknown command "lst"`},
	{"topics ls", 0, ""},
	{"topics ls -o nonsense", 2, "nonsense"},
	{"topics create clicks --partitions 2", 0, "clicks has 2 partitions"},
	{"topics create clicks", 2, "clicks"},
	{"topics create clicks --if-not-exists", 0, ""},
	{"topics create", 2, ""},
	{"topics create other --partitions 0", 2, ""},
	{"topics create other --config nonsense=1", 2, "nonsense"},
	{"topics create other --config retention.ms", 2, "KEY=VALUE"},
	{"topics describe clicks", 0, ""},
	{"topics describe clikcs", 2, `did you mean "clicks"?`},
	{"topics describe", 2, ""},
	{"topics produce clicks", 0, "0 records"},
	{"topics produce", 2, ""},
	{"topics produce clicks -i xml", 2, "jsonl or json-envelope"},
	{"topics produce clicks -f no/such/file", 3, "no such file"},
	{"topics infer clicks", 2, "clicks"},
	{"topics infer nothing", 2, "nothing"},
	{"topics produce clicks -f DATA", 0, "3 records"},
	{"topics infer clicks", 0, "CREATE TABLE"},
	{"topics infer", 2, ""},
	{"topics consume clicks", 0, `"offset":`},
	{"topics consume clicks --range 9:x", 2, "9:x"},
	{"topics consume nothing", 2, "nothing"},
	{"topics consume", 2, ""},

	{"groups", 0, "Available Commands"},
	{"groups ls", 0, "GROUP"},
	{"groups ls --brokers 127.0.0.1:1", 3, "127.0.0.1:1"},
	{"groups describe billing", 2, "billing"},
	{"groups describe", 2, "GROUP"},
	{"groups reset billing", 2, "--range"},
	{"groups reset billing --range x", 2, "o1:o2"},
	{"groups reset billing --range start", 2, "billing"},
	{"groups reset billing --range start --topic clicks", 0, "--execute"},
	{"groups reset billing --range start --topic clicks --execute", 0, "reads on"},
	{"groups describe billing", 0, "clicks"},
	{"groups describe biling", 2, `did you mean "billing"?`},

	{"check JOB", 0, "no problem found"},
	{"check BAD", 2, "unknown_column"},
	{"check no/such/file.sql", 2, "no/such/file.sql"},
	{"check", 2, ""},
	{"explain JOB", 0, "clicks"},
	{"explain JOB -o dot", 0, "digraph"},
	{"explain BAD", 2, "unknown_column"},
	{"explain", 2, ""},
	{"explain-error unknown_column", 0, "unknown_column"},
	{"explain-error unknown_colum", 2, `did you mean "unknown_column"?`},
	{"explain-error", 2, ""},
	{"fmt JOB", 0, "INSERT INTO"},
	{"fmt --check no/such/file.sql", 2, "no/such/file.sql"},
	{"fmt DATA", 2, "double_quoted"},
	{"fmt", 2, ""},
	{"lsp", 0, ""},
	{"lsp -f no/such/folder", 2, "no/such/folder"},
	{"lsp surplus", 2, ""},
	{"test UNIT", 0, "1 passed, 0 failed"},
	{"test WRONGUNIT", 1, "0 passed, 1 failed"},
	{"test FAULTYUNIT", 2, "nothing"},
	{"test JOB", 2, "test.yaml"},
	{"test no/such/file.test.yaml", 2, "no/such/file.test.yaml"},
	{"test", 2, ""},
	{"server", 2, "--kafka"},
	{"server --kafka 0.0.0.0:0", 2, "--allow-unauthenticated"},
	{"server --kafka 127.0.0.1:0 --kafka-sasl MD5", 2, "SCRAM-SHA-256"},
	{"users", 0, "Available Commands"},
	{"users ls", 0, "USER"},
	{"users create ann", 2, "password is empty"},
	{"users create ann --password-file PASSWORD", 0, "ann"},
	{"users create ann --password-file PASSWORD", 2, "there already"},
	{"users alter ann --password-file PASSWORD", 0, "SCRAM-SHA-512"},
	{"users alter an --password-file PASSWORD", 2, `did you mean "ann"?`},
	{"users rm ann", 2, "--yes"},
	{"users rm ann --yes", 0, "removed"},
	{"users ls --brokers 127.0.0.1:1", 3, "127.0.0.1:1"},
	{"acls", 0, "Available Commands"},
	{"acls ls", 0, "PRINCIPAL"},
	{"acls create --allow ann --operation read --topic clicks", 0, "1 rule"},
	{"acls create --allow ann --operation reed --topic clicks", 2, "read"},
	{"acls rm", 2, "--all"},
	{"acls rm --principal ann --yes", 0, "clicks"},
	{"quotas", 0, "Available Commands"},
	{"quotas ls", 0, "LIMIT"},
	{"quotas alter --user ann --set producer_byte_rate=1024", 0, "1 limit"},
	{"quotas alter --user ann --set producer_rate=1024", 2, "producer_byte_rate"},
	{"quotas rm --user ann", 0, "removed"},
	{"quotas rm --user ann", 2, "no limits"},
	{"preview JOB", 0, ""},
	{"preview BAD", 2, "unknown_column"},
	{"preview JOB --range nonsense", 2, "nonsense"},
	{"preview", 2, ""},
	{"run BAD", 2, "unknown_column"},
	{"run no/such/file.sql", 2, "no/such/file.sql"},
	{"run", 2, ""},
	{"run JOB --set nonsense", 2, "KEY=VALUE"},
	{"run JOB --dry-run", 0, "clicks"},
	{"run JOB --progress loud", 2, "loud"},
	{"run JOB --max-dead 0", 1, "dead"},
	{"run JOB", 0, ""},
	{"run JOB", 0, "has finished"},
	{"run JOB --fresh", 2, "--append"},
	{"run PRINTED", 0, "+I[1]"},
	{"run PRINTED --fresh", 0, "+I[1]"},

	{"sql -e BADQUERY", 2, "unknown_table"},
	{"sql -e QUERY", 0, ""},
	{"sql --job nothing -e QUERY", 2, "nothing"},
	{"sql --job job -e OUTQUERY", 0, "2"},
	{"sql", 0, ""},
	{"jobs", 0, "Available Commands"},
	{"jobs ls", 0, "job"},
	{"jobs roll job", 2, "not running"},
	{"jobs roll nothing", 2, "nothing"},
	{"jobs roll", 2, ""},
	{"jobs resume job", 2, "--lane"},
	{"jobs resume job --lane x", 2, "not running"},
	{"dead", 0, "Available Commands"},
	{"dead ls", 0, ""},
	{"dead ls nothing", 2, "nothing"},
	{"dead show out_t", 0, "not JSON"},
	{"dead show out_t nonsense", 2, "PARTITION:OFFSET"},
	{"dead show out_t 7:7", 2, "no such dead letter"},
	{"dead show", 2, ""},
	{"dead replay out_t", 0, "0 written, 1 dead again"},
	{"dead replay nothing", 2, "nothing"},
	{"dead replay", 2, ""},
	{"ledger", 0, "Available Commands"},
	{"tables", 0, "Available Commands"},
	{"tables ls", 0, "out_t"},
	{"tables ls surplus", 2, ""},
	{"tables switch", 2, ""},
	{"tables switch out_t", 2, "where to?"},
	{"tables switch out_t --to there", 2, "main or to standby"},
	{"tables switch out_t --to standby", 2, "has no standby"},
	{"tables switch nothing --to main", 2, "nothing"},

	{"ledger show", 0, "out_t"},
	{"ledger show --check", 0, ""},
	{"ledger show out_t", 0, "out_t"},
	{"ledger show nothing", 2, "nothing"},
	{"file", 0, "Available Commands"},
	{"file verify LAKE", 0, "2 rows"},
	{"file verify no/such/folder", 2, "no/such/folder"},
	{"file verify DATA", 1, "DATA"},
	{"file verify", 2, ""},
	{"log", 0, "Available Commands"},
	{"log verify", 0, "no damage"},
	{"log verify --data no/such/data", 2, "no/such/data"},
	{"connectors", 0, "Available Commands"},
	{"connectors ls", 0, "filesystem"},
	{"connectors describe filesystem", 0, "sink.rolling-policy.file-size"},
	{"connectors describe filesystm", 2, `did you mean "filesystem"?`},
	{"connectors describe", 2, ""},
	{"topics rm clicks", 2, "--yes"},
	{"topics rm nothing --yes", 2, "nothing"},
	{"topics rm clicks --yes", 0, "removed"},
	{"topics rm", 2, ""},
	{"demo --events 0", 2, "--events 0"},
	{"demo --keep LAKE", 2, "not empty"},
	{"demo --events 400 --keep DEMO", 0, "The proof"},
}

// TestExitCodes runs one command line after another and compares the codes with
// the contract; no command of the tree may be missing.
func TestExitCodes(t *testing.T) {
	w := newWorld(t)
	texts := map[string]string{
		"JOB": w.file("job.sql", copyJob()), "BAD": w.file("bad.sql", smallJob("id BIGINT", "SELECT idd FROM clicks", "")),
		"DATA": w.file("data.ndjson", click(1)+"\nnot JSON\n"+click(2)+"\n"), "LAKE": w.lake, "DEMO": w.dir + "/demo",
		"UNIT":       w.file("a.test.yaml", "job: job.sql\ntests: [{name: t, want: {out_t: []}}]\n"),
		"WRONGUNIT":  w.file("b.test.yaml", "job: job.sql\ntests: [{name: t, want: {out_t: [{id: 1}]}}]\n"),
		"FAULTYUNIT": w.file("c.test.yaml", "job: job.sql\ntests: [{name: t, want: {nothing: []}}]\n"),
		"PRINTED":    w.file("printed.sql", "CREATE TABLE o (i INT) WITH ('connector' = 'print');\nINSERT INTO o VALUES (1);\n"),
		"PASSWORD":   w.file("password.txt", "sesame\n"),
		"QUERY":      "SELECT 1", "BADQUERY": "SELECT * FROM nothing", "OUTQUERY": "SELECT COUNT(*) FROM out_t",
	}
	w.env = []string{"OUT=" + w.lake, "BOUNDED=latest-offset"}
	covered := map[string]bool{}
	root := cli.Root(cli.NewEnv("test"))
	for _, in := range invocations {
		args := strings.Fields(in.args)
		for i, a := range args {
			if s, ok := texts[a]; ok {
				args[i] = s
			}
		}
		if cmd, _, err := root.Find(args); err == nil {
			covered[cmd.CommandPath()] = true
		}
		r := w.run(args...)
		if s, ok := texts[in.says]; ok {
			in.says = s
		}
		if r.code != in.code || !strings.Contains(r.stdout+r.stderr, in.says) {
			t.Errorf("millrace %s: exit code %d, want %d and %q\nstdout: %s\nstderr: %s", in.args, r.code, in.code, in.says, cut(r.stdout), cut(r.stderr))
		}
		if r.code != 0 && r.stdout+r.stderr == "" {
			t.Errorf("millrace %s ends with %d without a word", in.args, r.code)
		}
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if !c.Hidden && !covered[c.CommandPath()] && c.Name() != "help" && c.Name() != "completion" && !strings.Contains(c.CommandPath(), " completion ") {
			t.Errorf("no exit code of %q is tested", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if c.Hidden || c == root {
			return
		}
		// Two things that hold for every command.
		args := strings.Fields(c.CommandPath())[1:]
		w.run(append(slices.Clone(args), "--no-such-flag")...).must(t, 2).says(t, "unknown flag: --no-such-flag")
		w.run(append(slices.Clone(args), "--help")...).must(t, 0).says(t, "Usage:")
	}
	walk(root)
}

func cut(s string) string {
	if len(s) > 600 {
		return s[:600] + "..."
	}
	return s
}
