package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/millrace/millrace/jobs/control"
)

// contract are the keys that scripts rely on; see the command line's pages.
var contract = map[string][]string{
	"ledger show":    keys("result.tables[].", "table topic records read written folded filtered dead late open emitted replayed lost"),
	"topics produce": keys("result.", "records bytes seconds"),
	"topics describe": append(keys("result.", "partitions"), keys("result.partitions[].",
		"partition earliest latest bytes")...),
	"topics consume": keys("", "topic partition offset timestamp key value headers"),
	"dead ls":        keys("result.records[].", "table topic partition offset reason column message value_base64"),
	"check":          keys("result.findings[].", "severity code message file line col end_line end_col hint"),
}

func keys(prefix, names string) []string {
	var out []string
	for _, n := range strings.Fields(names) {
		out = append(out, prefix+n)
	}
	return out
}

// dynamic objects have keys that are data.
var dynamic = map[string]bool{"filtered_by": true, "dead_by": true, "config": true, "formats": true}

// shape adds the paths and types of a JSON value.
func shape(into map[string]map[string]bool, path string, v any) {
	add := func(typ string) {
		if into[path] == nil {
			into[path] = map[string]bool{}
		}
		into[path][typ] = true
	}
	switch v := v.(type) {
	case nil:
		add("null")
	case bool:
		add("boolean")
	case json.Number:
		add("number")
	case string:
		add("string")
	case []any:
		add("array")
		for _, x := range v {
			shape(into, path+"[]", x)
		}
	case map[string]any:
		add("object")
		last := path[strings.LastIndexByte(path, '.')+1:]
		for k, x := range v {
			if dynamic[last] {
				k = "*"
			}
			if path != "" {
				k = path + "." + k
			}
			shape(into, k, x)
		}
	}
}

// TestJSONShapes freezes the keys and types of every -o json and -o jsonl
// output: a changed line is a breaking change for scripts.
func TestJSONShapes(t *testing.T) {
	w := newWorld(t)
	w.env = []string{"OUT=" + w.lake}
	job := w.file("job.sql", copyJob())
	bad := w.file("bad.sql", smallJob("id BIGINT", "SELECT idd FROM clicks", ""))
	data := w.file("data.ndjson", click(1)+"\nnot JSON\n"+`{"id":"x"}`+"\n"+click(2)+"\n")
	report := filepath.Join(w.dir, "report.json")

	var golden strings.Builder
	record := func(name string, code int, args ...string) {
		t.Helper()
		r := w.run(args...).must(t, code)
		w.shapeOf(&golden, name, r.stdout)
	}
	record("topics create", 0, "topics", "create", "clicks", "--partitions", "2", "--config", "retention.ms=3600000", "-o", "json")
	record("topics produce", 0, "topics", "produce", "clicks", "-f", data, "-o", "json")
	record("topics ls", 0, "topics", "ls", "-o", "json")
	record("topics describe", 0, "topics", "describe", "clicks", "-o", "json")
	record("topics consume", 0, "topics", "consume", "clicks", "--range", "start:end", "-o", "jsonl")
	record("check", 2, "check", bad, "-o", "json")
	record("check without findings", 0, "check", job, "-o", "json")
	record("explain", 0, "explain", job, "-o", "json")
	record("explain-error", 0, "explain-error", "unknown_column", "-o", "json")
	record("preview", 0, "preview", job, "-o", "jsonl")
	p := w.start("run", job, "--progress", "json", "--report", report)
	w.untilLedger(p, "out_t", "committed", func(l control.TableLedger) bool { return l.Written == 2 })
	record("jobs ls of a running job", 0, "jobs", "ls", "-o", "json")
	record("jobs roll", 0, "jobs", "roll", "job", "-o", "json")
	eventuallyOf(t, p, "a progress line", func() (bool, string) {
		return strings.Contains(p.stderr.String(), `"rows_per_second"`), p.stderr.String()
	})
	p.terminate()
	if code := p.wait(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	for line := range strings.SplitSeq(p.stderr.String(), "\n") {
		if strings.HasPrefix(line, "{") {
			w.shapeOf(&golden, "run --progress json", line)
			break
		}
	}
	b, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	w.shapeOf(&golden, "run --report", string(b))
	record("ledger show", 0, "ledger", "show", "-o", "json")
	record("dead ls", 0, "dead", "ls", "-o", "json")
	record("dead show", 0, "dead", "show", "out_t", "-o", "json")
	record("dead replay", 0, "dead", "replay", "out_t", "-o", "json")
	record("sql -e", 0, "sql", "--job", "job", "-e", "SELECT id, k, n FROM out_t", "-o", "jsonl")
	record("file verify", 0, "file", "verify", w.lake, "-o", "json")
	record("log verify", 0, "log", "verify", "-o", "json")
	record("connectors ls", 0, "connectors", "ls", "-o", "json")
	record("connectors describe", 0, "connectors", "describe", "filesystem", "-o", "json")
	record("version", 0, "version", "-o", "json")
	record("topics rm", 0, "topics", "rm", "clicks", "--yes", "--force", "-o", "json")
	record("an error", 2, "topics", "describe", "clicks", "-o", "json")

	path := filepath.Join("testdata", "json_shapes.golden")
	if *update {
		if err := os.WriteFile(path, []byte(golden.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if golden.String() != string(want) {
		t.Errorf("the shapes of JSON outputs changed (compare, then -update):\n%s", lineDiff(string(want), golden.String()))
	}
}

// shapeOf writes the shape of an output: one document, or one a line.
func (w *world) shapeOf(golden *strings.Builder, name, out string) {
	w.t.Helper()
	into := map[string]map[string]bool{}
	dec := json.NewDecoder(bytes.NewReader([]byte(out)))
	dec.UseNumber()
	n := 0
	for dec.More() {
		var v any
		if err := dec.Decode(&v); err != nil {
			w.t.Errorf("%s: %v in\n%s", name, err, out)
			return
		}
		shape(into, "", v)
		n++
	}
	if n == 0 {
		w.t.Errorf("%s printed nothing", name)
	}
	delete(into, "")
	for _, k := range contract[name] {
		if into[k] == nil {
			w.t.Errorf("%s: key %s is missing in\n%s", name, k, out)
		}
	}
	paths := make([]string, 0, len(into))
	for p := range into {
		paths = append(paths, p)
	}
	sort.Strings(paths)
	fmt.Fprintf(golden, "%s\n", name)
	for _, p := range paths {
		var types []string
		for typ := range into[p] {
			types = append(types, typ)
		}
		sort.Strings(types)
		fmt.Fprintf(golden, "  %s: %s\n", p, strings.Join(types, " or "))
	}
	golden.WriteByte('\n')
}

// lineDiff lists lines that only one of the texts has.
func lineDiff(want, got string) string {
	var out strings.Builder
	section := ""
	collect := func(text string) map[string]int {
		m := map[string]int{}
		for line := range strings.SplitSeq(text, "\n") {
			if !strings.HasPrefix(line, " ") {
				section = line
			}
			m[section+" |"+line]++
		}
		return m
	}
	a, b := collect(want), collect(got)
	for _, side := range []struct {
		mark string
		x, y map[string]int
	}{{"-", a, b}, {"+", b, a}} {
		var lines []string
		for l, n := range side.x {
			if side.y[l] < n {
				lines = append(lines, side.mark+" "+l)
			}
		}
		sort.Strings(lines)
		out.WriteString(strings.Join(lines, "\n") + "\n")
	}
	return out.String()
}
