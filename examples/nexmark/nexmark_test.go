package nexmark

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/blackhole"
	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/connectors/format/csvfmt"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	connector "github.com/millrace/millrace/connectors/nexmark"
	"github.com/millrace/millrace/jobs/spec"
	rtconnector "github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/logictest"
	"github.com/millrace/millrace/sql/sqltest"
	"github.com/millrace/millrace/storage/vfs"
)

// The events of the tests: 100 seconds of event time around midnight, each event at
// a time of its own, a hundred out of order with each other.
const (
	events = 20_000
	start  = "2024-05-01T23:59:20Z"
	config = "20,000 events, 200 a second from 23:59:20, groups of 100, seed 1"
)

// source is the table of the events, as one of the files in source declares it.
func source(t testing.TB, name string) string {
	t.Helper()
	b, err := files.ReadFile("source/" + name + ".sql")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(b), "'connector' = 'nexmark',",
		"'connector' = 'nexmark', 'start-time' = '"+start+"', 'out-of-order-group.size' = '100',", 1)
}

// world runs queries over the events.
type world struct {
	dir string
	out *sqltest.Collect
	reg *rtconnector.Registry
}

// newWorld makes the side input; the events come with writeEvents.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{dir: t.TempDir(), out: sqltest.NewCollect()}
	var err error
	w.reg, err = rtconnector.NewRegistry(connector.New(), blackhole.New(), w.out,
		filesystem.New(vfs.NewOS(), nil, jsonfmt.Format{}, csvfmt.Format{}))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, "%d,%d\n", i, i)
	}
	for name, text := range map[string]string{w.side(): b.String()} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *world) side() string { return filepath.Join(w.dir, "side", "side.csv") }

func (w *world) vars() spec.Vars {
	return spec.Vars{Set: map[string]string{"EVENTS": filepath.Join(w.dir, "events"), "SIDE": filepath.Dir(w.side()), "OUT": filepath.Join(w.dir, "out"),
		"EVENTS_NUM": strconv.Itoa(events), "RATE": "200", "SEED": "1"}}
}

// blackholes are what the queries write to; the test collects it.
var (
	blackholes  = regexp.MustCompile(`'connector' = 'blackhole'`)
	partitioned = regexp.MustCompile(`(?s)\) PARTITIONED BY.*?\);`)
)

func collected(query string) string {
	return partitioned.ReplaceAllString(blackholes.ReplaceAllString(query, "'connector' = 'collect'"), ") WITH ('connector' = 'collect');")
}

// run runs a job file and returns the rows in its table, sorted.
func (w *world) run(t testing.TB, table, sql string, src string, ex logictest.Executor, way logictest.Way) ([]string, diag.List) {
	t.Helper()
	views, err := files.ReadFile("views.sql")
	if err != nil {
		t.Fatal(err)
	}
	u, ds := compile.Compile([]compile.Source{{Name: "source.sql", Text: source(t, src)}, {Name: "views.sql", Text: string(views)}, {Name: table + ".sql", Text: sql}},
		compile.Options{Registry: w.reg, Vars: w.vars(), NoOptimizer: way.NoOptimizer})
	if ds.HasErrors() {
		return nil, ds
	}
	w.out.Clear()
	got, err := ex.Run(context.Background(), u.Job, way.Run)
	if err != nil {
		t.Fatalf("%s: %v", table, err)
	}
	if got.Late > 0 || len(got.Dead) > 0 {
		t.Errorf("%s: %d rows late, dead %v", table, got.Late, got.Dead)
	}
	rows := w.out.Rows(table).Text(u.Zone())
	return settled(table, rows), nil
}

// settled sorts rows. Of q12 the sums of a bidder are what does not depend on
// when it ran.
func settled(table string, rows []string) []string {
	if table == "nexmark_q12" {
		sums := map[string]int{}
		for _, r := range rows {
			cells := strings.Split(r, "|")
			n, _ := strconv.Atoi(cells[1])
			sums[cells[0]] += n
		}
		rows = nil
		for bidder, n := range sums {
			rows = append(rows, bidder+"|"+strconv.Itoa(n))
		}
	}
	slices.Sort(rows)
	return rows
}

// writeEvents runs generate.sql.
func (w *world) writeEvents(t testing.TB) {
	t.Helper()
	sql, err := files.ReadFile("generate.sql")
	if err != nil {
		t.Fatal(err)
	}
	if _, ds := w.run(t, "files", string(sql), "generator", &logictest.Engine{}, logictest.Way{}); ds.HasErrors() {
		t.Fatal(diag.Renderer{}.String(ds))
	}
}

// answer is what a query gives: its rows, as a hash and some of them; or why it is
// refused.
type answer struct {
	rows    int
	hash    string
	sample  []string
	refused string
}

func answerOf(rows []string) *answer {
	sum := sha256.Sum256([]byte(strings.Join(rows, "\n")))
	a := &answer{rows: len(rows), hash: hex.EncodeToString(sum[:])}
	for i := range min(len(rows), 3) {
		a.sample = append(a.sample, rows[i*(len(rows)-1)/2])
	}
	return a
}

const answersPath = "testdata/answers.txt"

// readAnswers reads what Flink gave, by query.
func readAnswers(t testing.TB) map[string]*answer {
	t.Helper()
	b, err := os.ReadFile(answersPath)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*answer{}
	var a *answer
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == ' ':
			a.sample = append(a.sample, strings.TrimPrefix(line, "  "))
		default:
			name, rest, _ := strings.Cut(line, " ")
			a = &answer{}
			out[name] = a
			if why, ok := strings.CutPrefix(rest, "refused "); ok {
				a.refused = why
			} else if _, err := fmt.Sscanf(rest, "%d rows %s", &a.rows, &a.hash); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
	}
	return out
}

// refusals are the queries that Millrace does not run, with what it says.
var refusals = map[int]string{
	6: "in a stream a frame over another order than row time begins with UNBOUNDED PRECEDING",
}

// bidsByBidder counts the rows of q0, which are Flink's, as settled does those of q12.
func (w *world) bidsByBidder(t testing.TB, src string) []string {
	t.Helper()
	sql, err := Query(0)
	if err != nil {
		t.Fatal(err)
	}
	bids, ds := w.run(t, "nexmark_q0", collected(sql), src, &logictest.Engine{}, logictest.Way{})
	if ds.HasErrors() || len(bids) == 0 {
		t.Fatalf("%d bids: %s", len(bids), diag.Renderer{}.String(ds))
	}
	counts := map[string]int{}
	for _, b := range bids {
		counts[strings.Split(b, "|")[1]]++
	}
	var out []string
	for bidder, n := range counts {
		out = append(out, bidder+"|"+strconv.Itoa(n))
	}
	slices.Sort(out)
	return out
}

// TestAnswers runs each query over both sources, and compares with Flink's rows.
func TestAnswers(t *testing.T) {
	want := readAnswers(t)
	w := newWorld(t)
	w.writeEvents(t)
	for n := range Queries {
		name := fmt.Sprintf("q%d", n)
		t.Run(name, func(t *testing.T) {
			sql, err := Query(n)
			if err != nil {
				t.Fatal(err)
			}
			a := want[name]
			if a == nil {
				t.Fatal("no answer of Flink: make oracle")
			}
			for _, src := range []string{"generator", "files"} {
				way := logictest.Way{Run: logictest.RunOptions{Restart: src == "generator"}}
				rows, ds := w.run(t, "nexmark_"+name, collected(sql), src, &logictest.Engine{}, way)
				if ds.HasErrors() || refusals[n] != "" {
					if text := (diag.Renderer{}).String(ds); refusals[n] == "" || !strings.Contains(text, refusals[n]) {
						t.Fatalf("refused, want %q:\n%s", refusals[n], text)
					}
					continue
				}
				if a.refused != "" {
					t.Fatalf("it runs, and Flink refuses it: %s", a.refused)
				}
				if n == 12 {
					// Flink gives none of them: its windows would end after the events.
					if bids := w.bidsByBidder(t, src); !slices.Equal(rows, bids) {
						t.Errorf("%s: the sums of %d bidders are not the bids of %d", src, len(rows), len(bids))
					}
					continue
				}
				if got := answerOf(rows); got.hash != a.hash {
					t.Errorf("%s: %d rows, want %d\ngot  %s\nwant %s", src, got.rows, a.rows, strings.Join(got.sample, "\n     "), strings.Join(a.sample, "\n     "))
				}
			}
		})
	}
}
