package keyed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
)

// sealedOnly runs a job that dies before its first publish, and gives the world
// that it leaves: a durable manifest with sealed artefacts.
func sealedOnly(t *testing.T) (*scenario, *world) {
	rng := rand.New(rand.NewPCG(1, 1))
	s := &scenario{t: t, window: &graph.Window{Size: minute}, feeds: []*feed{randomFeed(rng, "a", 1, 30, 5*minute)}}
	s.job = windowJob(t, 1, 0, "a")
	w := newWorld()
	p := w.process(0, false)
	p.fault = func(op string) (error, bool) {
		if op == "publish" {
			p.dead = true
			close(p.dying)
			return errCrashed, false
		}
		return nil, true
	}
	if _, err := s.run(p, 1); !p.dead {
		t.Fatalf("nothing was published: %v", err)
	}
	return s, w
}

// A sealed artefact that vanished stops the stages, which name it: its rows are
// nowhere else.
func TestVanishedArtefact(t *testing.T) {
	s, w := sealedOnly(t)
	clear(w.table("out").staged)
	var amb *AmbiguousError
	if _, err := s.run(w.process(0, false), 2); !errors.As(err, &amb) || !amb.Gone || !strings.Contains(err.Error(), amb.Artifacts[0].Location) {
		t.Fatalf("got %v", err)
	}
	if n := len(w.rows("out")); n != 0 {
		t.Fatalf("%d rows were published", n)
	}
}

// A sink that cannot say whether an artefact is visible stops them, too; nothing
// is published again, and when it can say they go on.
func TestUnknownOutcome(t *testing.T) {
	s, w := sealedOnly(t)
	want := windowOracle(s)
	p := w.process(0, false)
	p.fault = func(op string) (error, bool) {
		if op == "resolve" {
			return errors.New("no quorum"), false
		}
		return nil, true
	}
	if _, err := s.run(p, 2); err == nil || !strings.Contains(err.Error(), "no quorum") {
		t.Fatalf("got %v", err)
	}
	if slices.Contains(p.names, "publish") {
		t.Fatalf("published without looking: %v", p.names)
	}
	book, err := s.run(w.process(0, false), 3)
	if err != nil {
		t.Fatal(err)
	}
	s.proof(w, book, want, "after the sink can say")
}

// forgetful is a sink that keeps what is sealed in its process alone.
type forgetful struct{ *memSink }

func (forgetful) ReplayableSeals() bool { return true }

// What such a sink had sealed when its process ended is void, and said.
func TestSealsThatDieWithTheProcess(t *testing.T) {
	s, w := sealedOnly(t)
	clear(w.table("out").staged)
	var told []string
	s.wrap = func(m *memSink) connector.Sink { return forgetful{m} }
	s.notice = func(line string) { told = append(told, line) }
	book, err := s.run(w.process(0, false), 2)
	if err != nil {
		t.Fatal(err)
	}
	void := book.Intents(func(e *ledger.Entry) bool { return e.Result == ledger.Void })
	if len(void) == 0 || !slices.ContainsFunc(told, func(l string) bool { return strings.Contains(l, "they are not made again") }) {
		t.Fatalf("%d void intents; told %q", len(void), told)
	}
}

// settling is a sink that is told what nobody will ask about.
type settling struct {
	*memSink
	told *[]connector.ArtifactID
}

func (s settling) Settled(_ context.Context, id connector.ArtifactID) error {
	*s.told = append(*s.told, id)
	return nil
}

// Settled names nothing that a manifest which can be restored still lists.
func TestSettled(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	s := &scenario{t: t, window: &graph.Window{Size: minute}, feeds: []*feed{randomFeed(rng, "a", 1, 80, 20*minute)}, opts: Options{Retained: 2}}
	s.job = windowJob(t, 1, 0, "a")
	var told []connector.ArtifactID
	s.wrap = func(m *memSink) connector.Sink { return settling{m, &told} }
	w := newWorld()
	if _, err := s.run(w.process(0, false), 1); err != nil {
		t.Fatal(err)
	}
	if len(told) == 0 {
		t.Fatal("nothing was settled")
	}
	h := w.checkpoints.Handle()
	ns, err := h.List(context.Background())
	if err != nil || len(ns) != 2 {
		t.Fatalf("manifests %v, %v; want two", ns, err)
	}
	for _, n := range ns {
		b, err := h.Read(context.Background(), n, checkpoint.ManifestFile)
		if err != nil {
			t.Fatal(err)
		}
		m, err := checkpoint.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range m.Artifacts {
			if last := told[len(told)-1]; a.Header.ID.Manifest < last.Manifest {
				t.Fatalf("manifest %d lists an artefact of %d, settled up to %d", n, a.Header.ID.Manifest, last.Manifest)
			}
		}
	}
}

// TestZombie: a process that a newer one has replaced writes no manifest, seals
// nothing and publishes nothing.
func TestZombie(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	s := &scenario{t: t, window: &graph.Window{Size: minute}, feeds: []*feed{randomFeed(rng, "a", 1, 30, 5*minute)}}
	s.job = windowJob(t, 1, 0, "a")
	want := windowOracle(s)
	w := newWorld()
	old := w.process(0, false)
	var book *ledger.Book
	var inner error
	old.fault = func(op string) (error, bool) {
		if op == "manifest" && book == nil {
			// While it is about to write its first manifest, another one runs
			// the whole job.
			book = &ledger.Book{}
			next := &scenario{t: t, window: s.window, feeds: s.feeds, job: windowJob(t, 2, 0, "a")}
			book, inner = next.run(w.process(0, false), 9)
		}
		return nil, true
	}
	if _, err := s.run(old, 1); !errors.Is(err, connector.ErrFenced) {
		t.Fatalf("the old process: %v, want ErrFenced", err)
	}
	if inner != nil {
		t.Fatal(inner)
	}
	s.proof(w, book, want, "with a zombie")
}

// TestFailPolicy ends the stages with the row.
func TestFailPolicy(t *testing.T) {
	most := int64(1<<63 - 1)
	b, g := groupJob(t, 1, []int{0}, call(t, "SUM(v)", "SUM", eventSchema, 2))
	b.sink("out", g)
	b.job.Nodes[len(b.job.Nodes)-1].Op.(*graph.Sink).OnError = graph.Fail
	s := &scenario{t: t, job: b.job, feeds: []*feed{events(event{num(1), 0, num(most), ""}, event{num(1), 0, num(1), ""})}}
	var fail *FailError
	if _, err := s.run(newWorld().process(0, false), 1); !errors.As(err, &fail) || fail.Reason != "overflow" || string(fail.Row) != `{"uid":1,"SUM(v)":null}` {
		t.Fatalf("got %v", err)
	}
}

// TestUnreadableManifest: an older one is taken only while nothing above it began
// to be published.
func TestUnreadableManifest(t *testing.T) {
	// What began to be published is unreadable, and whatever came after it; how many
	// checkpoints came before depends on the scheduler.
	var s *scenario
	var w *world
	var torn []uint64
	for try := 0; len(torn) == 0; try++ {
		if try == 100 {
			t.Fatal("no run published behind its first checkpoint")
		}
		s, w = sealedOnly(t)
		l, err := ledger.OpenLedger(context.Background(), w.ledger)
		if err != nil {
			t.Fatal(err)
		}
		first := l.Book(ledger.Scope{Job: connector.UUID{9}, Generation: 1}).Publishing(0)[0].Manifest
		ns, err := w.checkpoints.Handle().List(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if ns[0] < first {
			torn = slices.DeleteFunc(ns, func(n uint64) bool { return n < first })
		}
	}
	h := w.checkpoints.Handle()
	if err := h.Open(context.Background(), 100); err != nil {
		t.Fatal(err)
	}
	for _, n := range torn {
		if err := h.Write(context.Background(), n, []checkpoint.File{{Name: checkpoint.ManifestFile, Data: []byte("torn")}}); err != nil {
			t.Fatal(err)
		}
	}
	s.epoch = 100
	var abandoned *checkpoint.AbandonedError
	if _, err := s.run(w.process(0, false), 2); !errors.As(err, &abandoned) {
		t.Fatalf("got %v, want a refusal", err)
	}
	if abandoned.Restorable == 0 {
		t.Fatal("there is an older checkpoint")
	}
	if want := fmt.Sprintf("--discard-after %d", abandoned.Restorable); !strings.Contains(abandoned.Error(), want) {
		t.Fatalf("%q names no way out", abandoned.Error())
	}
	// By name it is given up; nothing of it was visible, so that the table is
	// whole and has nothing twice.
	s.opts.DiscardAfter = abandoned.Restorable
	book, err := s.run(w.process(0, false), 3)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := w.rows("out"), windowOracle(s); !slices.Equal(got, want) {
		t.Fatalf("after giving up:\n%s", diff(got, want))
	}
	if void := book.Intents(func(e *ledger.Entry) bool { return e.Result == ledger.Void }); len(void) == 0 {
		t.Fatal("what was given up is not void")
	}
}
