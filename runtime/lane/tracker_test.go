package lane

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/offsets"
)

// TestTracker runs the scripts in testdata/tracker: they tell what an output
// did and show where it would resume, what it skips and what an intent says.
//
//	new partitions=N [offset=N]          an attempt begins at cursors
//	committed p=N set=RANGES [odd=OFF:WRITTEN/DEAD]
//	read p=N to=N [bytes=N] [read=N] [file=NAME:RANGES]... [link=A+B] [odd=FILE@OFF:WRITTEN/DEAD]
//	seal FILE...                          gives intents; "all" seals everything
//	commit                                what was sealed is committed
//	due now=S [age=S] [bytes=N] [replay=N] [replaying] [closing=TP]
//	state
func TestTracker(t *testing.T) {
	datadriven.Walk(t, "testdata/tracker", func(t *testing.T, path string) {
		s := &script{names: map[string]connector.BucketID{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.out.Reset()
			s.run(t, d)
			if s.out.Len() == 0 {
				return "ok\n"
			}
			return s.out.String()
		})
	})
}

type script struct {
	t       *Tracker
	names   map[string]connector.BucketID
	sealing []*Sealing
	now     int64
	out     strings.Builder
}

func (s *script) run(t *testing.T, d *datadriven.TestData) {
	switch d.Cmd {
	case "new":
		s.start(d)
	case "committed":
		var set offsets.Set
		for _, r := range ranges(t, value(d, "set")) {
			set.Add(r.First, r.End)
		}
		in := &ledger.Input{Offsets: set}
		if odd := value(d, "odd"); odd != "" {
			in.Odd = ledger.OddsOf(parseOdd(t, odd))
		}
		s.t.AddCommitted(int32(number(d, "p", 0)), in)
	case "read":
		s.read(t, d)
	case "seal":
		s.seal(t, d)
	case "commit":
		for _, x := range s.sealing {
			s.t.Done(x)
		}
		s.sealing = nil
		for _, f := range s.t.Advance() {
			if c, ok := f.(*ledger.Cursor); ok {
				fmt.Fprintf(&s.out, "cursor p%d at %d: read %d, written %d, dead %d, filtered %d\n", c.Partition, c.Offset,
					c.Counts.Read, c.Counts.Written, c.Counts.Dead.Sum(), c.Counts.Filtered.Sum())
				if c.Counts.Open() != 0 {
					t.Errorf("%s: a cursor with %d open rows", d.Pos, c.Counts.Open())
				}
			}
		}
	case "due":
		s.due(d)
	case "state":
		s.state()
	default:
		t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
}

func (s *script) start(d *datadriven.TestData) {
	n := int(number(d, "partitions", 1))
	parts, cursors := make([]connector.Partition, n), make([]ledger.Cursor, n)
	for i := range parts {
		parts[i].ID = int32(i)
		cursors[i] = ledger.Cursor{Partition: int32(i), Offset: number(d, "offset", 0)}
	}
	s.t = NewTracker(connector.ArtifactID{}, parts, cursors)
}

// read is one batch of one partition: rows into files, then the counts.
func (s *script) read(t *testing.T, d *datadriven.TestData) {
	p := int32(number(d, "p", 0))
	s.now = number(d, "now", s.now/1000) * 1000
	s.t.Begin(p)
	c := ledger.Counts{Read: number(d, "read", 0)}
	var again ledger.Counts // committed offsets count as their intents say
	for _, in := range s.t.parts[p].inputs {
		x := in.Counts(s.t.Next(p).Offset, number(d, "to", 0))
		again.Add(&x)
	}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "file":
			name, set, _ := strings.Cut(a.Vals[0], ":")
			id := s.id(name)
			s.t.Open(id, name, s.now)
			for _, r := range ranges(t, set) {
				n := r.End - r.First
				s.t.Put(id, p, r.First, r.End, n)
				s.t.PutRecords(id, p, n, ledger.Odds{})
				c.Written += n
			}
		case "odd": // of an offset that a file has one row of, so far
			name, text, _ := strings.Cut(a.Vals[0], "@")
			o := parseOdd(t, text)
			s.t.PutRecords(s.id(name), p, 0, ledger.OddsOf(o))
			c.Dead.AddAll(o.Dead)
		case "link":
			x, y, _ := strings.Cut(a.Vals[0], "+")
			s.t.Link(s.id(x), s.id(y))
		case "dead":
			n, _ := strconv.ParseInt(a.Vals[0], 10, 64)
			c.Dead.Add(ledger.Reason{Code: "bad"}, n)
		}
	}
	c.Read = max(c.Read, c.Written+c.Dead.Sum())
	c.Filtered.Add(ledger.Reason{Code: ledger.ReasonWhere}, c.Read-c.Written-c.Dead.Sum())
	s.t.Account(p, &c)
	s.t.Account(p, &again)
	s.t.End(p, Position{Offset: number(d, "to", 0), Bytes: number(d, "bytes", 0)})
}

func (s *script) id(name string) connector.BucketID {
	id, ok := s.names[name]
	if !ok {
		id = connector.BucketID(len(s.names))
		s.names[name] = id
	}
	return id
}

func (s *script) seal(t *testing.T, d *datadriven.TestData) {
	var groups []*group
	for _, g := range s.t.groups {
		for _, a := range d.CmdArgs {
			hit := a.Key == "all" && !g.sealed
			for _, b := range g.buckets {
				hit = hit || !g.sealed && b.tablePartition == a.Key
			}
			if hit && !slices.Contains(groups, g) {
				groups = append(groups, g)
			}
		}
	}
	x := s.t.Seal(groups, 0)
	var as []connector.Artifact
	for _, r := range x.Requests {
		as = append(as, connector.Artifact{Header: r.Header})
	}
	intents, err := s.t.Intents(x, as, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range intents {
		fmt.Fprintf(&s.out, "intent")
		for i := range in.Artifacts {
			h := &in.Artifacts[i].Header
			fmt.Fprintf(&s.out, " %s(%d rows, #%d)", h.TablePartition, h.Rows, h.ID.Sequence)
		}
		for i := range in.Inputs {
			fmt.Fprintf(&s.out, " p%d:%s", in.Inputs[i].Partition, in.Inputs[i].Offsets)
		}
		fmt.Fprintln(&s.out)
	}
	s.sealing = append(s.sealing, x)
}

func (s *script) due(d *datadriven.TestData) {
	s.now = number(d, "now", s.now/1000) * 1000
	in := DueInput{Now: s.now, ReadBytes: number(d, "bytes", 0), ReplayMax: number(d, "replay", 0), Replaying: d.HasArg("replaying"),
		Roll:  connector.RollPolicy{Age: time.Duration(number(d, "age", 0)) * time.Second},
		Bytes: func(connector.BucketID) int64 { return 0 }, All: d.HasArg("all")}
	if tp := value(d, "closing"); tp != "" {
		in.Closing = func(x string) bool { return x == tp }
	}
	for _, g := range s.t.Due(in) {
		fmt.Fprintln(&s.out, names(g))
	}
	if s.out.Len() == 0 {
		s.out.WriteString("nothing\n")
	}
}

func (s *script) state() {
	for i := range s.t.parts {
		p := int32(i)
		c, open := s.t.Live(p)
		fmt.Fprintf(&s.out, "p%d cursor %d resume %d next %d: read %d = written %d + filtered %d + dead %d + open %d\n", i,
			s.t.Cursor(p).Offset, s.t.Resume(p), s.t.Next(p).Offset, c.Read, c.Written, c.Filtered.Sum(), c.Dead.Sum(), open)
	}
	for _, g := range s.t.groups {
		what := "open"
		if g.sealed {
			what = "sealed"
		}
		fmt.Fprintf(&s.out, "%s %s, began at %v\n", what, names(g), g.begin)
	}
}

func names(g *group) string {
	var out []string
	for _, b := range g.buckets {
		out = append(out, b.tablePartition)
	}
	slices.Sort(out)
	return strings.Join(out, "+")
}

func value(d *datadriven.TestData, key string) string {
	for _, a := range d.CmdArgs {
		if a.Key == key && len(a.Vals) > 0 {
			return a.Vals[0]
		}
	}
	return ""
}

func number(d *datadriven.TestData, key string, def int64) int64 {
	n, err := strconv.ParseInt(value(d, key), 10, 64)
	if err != nil {
		return def
	}
	return n
}

// ranges reads "3-5;9".
func ranges(t *testing.T, text string) []offsets.Range {
	t.Helper()
	var out []offsets.Range
	for _, part := range strings.Split(text, ";") {
		a, b, ok := strings.Cut(part, "-")
		if !ok {
			b = a
		}
		first, err1 := strconv.ParseInt(a, 10, 64)
		last, err2 := strconv.ParseInt(b, 10, 64)
		if err1 != nil || err2 != nil {
			t.Fatalf("no ranges: %q", text)
		}
		out = append(out, offsets.Range{First: first, End: last + 1})
	}
	return out
}

func parseOdd(t *testing.T, text string) ledger.Odd {
	t.Helper()
	var o ledger.Odd
	var n int64
	if _, err := fmt.Sscanf(text, "%d:%d/%d", &o.Offset, &o.Written, &n); err != nil {
		t.Fatalf("no exception: %q", text)
	}
	o.Dead.Add(ledger.Reason{Code: "bad"}, n)
	return o
}
