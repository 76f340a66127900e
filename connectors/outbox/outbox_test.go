package outbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// system is the outside system: a map by key, which a repeated request leaves as it
// is. It fails before or after it has taken a body.
type system struct {
	mu   sync.Mutex
	rows map[int64]bool
}

// world is the suite's table over a filesystem in memory and a system in memory;
// disk and requests are counted and fail alike.
type world struct {
	*conntest.Faulty
	mem    *vfs.MemFS
	system *system
}

func newWorld(mem *vfs.MemFS, s *system) *world {
	return &world{mem: mem, system: s, Faulty: conntest.NewFaulty()}
}

// Send implements Sender. It can fail before and after the system has the rows.
func (w *world) Send(_ context.Context, _ Lane, m *Message) error {
	if err := w.Step(); err != nil {
		return err
	}
	w.system.mu.Lock()
	for b := m.Body; len(b) > 0; b = b[8:] {
		w.system.rows[int64(binary.LittleEndian.Uint64(b))] = true
	}
	w.system.mu.Unlock()
	return w.Step()
}

// Close implements Sender.
func (w *world) Close() error { return nil }

// Check and Append implement Encoder: a row is its id.
func (w *world) Check(_ *batch.Batch, _ batch.Sel, bad []batch.ValueError) []batch.ValueError {
	return bad
}

func (w *world) Append(body []byte, b *batch.Batch, row int) ([]byte, int64, error) {
	return binary.LittleEndian.AppendUint64(body, uint64(b.Cols[0].I64[row])), 1, nil
}

// Shared says that jobs do not exclude each other.
func (w *world) Shared() {}

func (w *world) AfterCrash(seed uint64) conntest.FaultWorld {
	return newWorld(w.mem.CrashClone(conntest.PowerCut(seed)), w.system)
}

func (w *world) Open(_ context.Context, o connector.Owner) (connector.Sink, error) {
	return w.open(o, w)
}

func (w *world) open(o connector.Owner, s Sender) (*Sink, error) {
	return Open(Config{FS: vfs.NewFault(w.mem, w), Root: "/staging", Kind: "test", Table: &connector.Table{Name: "t"}, Owner: o,
		Location: "memory", Sender: s, NewEncoder: func() (Encoder, error) { return w, nil }})
}

func (w *world) Visible(testing.TB) []int64 {
	w.system.mu.Lock()
	defer w.system.mu.Unlock()
	var out []int64
	for id := range w.system.rows {
		out = append(out, id)
	}
	return out
}

func TestAcceptance(t *testing.T) {
	conntest.RunSink(t, func(testing.TB) conntest.World {
		return newWorld(vfs.NewMem(), &system{rows: map[int64]bool{}})
	})
}

// script is a Sender that answers by a list.
type script struct {
	answers []error
	sent    []string
	lanes   []Lane
}

func (s *script) Send(_ context.Context, lane Lane, m *Message) error {
	s.sent, s.lanes = append(s.sent, m.ID[len(m.ID)-1:]), append(s.lanes, lane)
	if len(s.answers) == 0 {
		return nil
	}
	err := s.answers[0]
	s.answers = s.answers[1:]
	return err
}

func (s *script) Close() error { return nil }

// TestAnswers: what each answer leaves, and that nothing overtakes.
func TestAnswers(t *testing.T) {
	ctx := context.Background()
	for what, c := range map[string]struct {
		answer   error
		outcomes []connector.Outcome // of both artefacts, after the first try
		refused  bool
		discard  bool // whether the first may be discarded
	}{
		"an unknown outcome": {errors.New("reset"), []connector.Outcome{connector.Sealed, connector.Sealed}, false, false},
		"refused":            {fmt.Errorf("no: %w", connector.ErrRefused), []connector.Outcome{connector.Sealed, connector.Sealed}, true, true},
		"stopped":            {&StopError{Err: errors.New("ask a person")}, []connector.Outcome{connector.Unknown, connector.Sealed}, false, false},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(vfs.NewMem(), &system{rows: map[int64]bool{}})
			sender := &script{answers: []error{c.answer}}
			s, err := w.open(conntest.OwnerOf(1, 4), sender)
			if err != nil {
				t.Fatal(err)
			}
			id := connector.ArtifactID{Job: conntest.UUID(1), Epoch: 6}
			wr, err := s.OpenWriter(ctx, connector.Attempt{ID: id})
			if err != nil {
				t.Fatal(err)
			}
			var as []connector.Artifact
			for range 2 {
				if err := wr.Write(conntest.Rows(0, 3), nil, 0); err != nil {
					t.Fatal(err)
				}
				a, err := wr.Seal(ctx, []connector.SealRequest{{Header: connector.Header{ID: id, Rows: 3}}})
				if err != nil {
					t.Fatal(err)
				}
				as, id.Sequence = append(as, a...), id.Sequence+1
			}
			for i, err := range s.Publish(ctx, as) {
				if err == nil || errors.Is(err, connector.ErrRefused) != c.refused {
					t.Errorf("artefact %d: %v", i, err)
				}
			}
			if o, err := s.Resolve(ctx, as); err != nil || !slices.Equal(o, c.outcomes) {
				t.Errorf("outcomes %v, %v", o, err)
			}
			if c.outcomes[0] == connector.Unknown && s.ExplainUnknown(as[0]) != "ask a person" {
				t.Errorf("explained as %q", s.ExplainUnknown(as[0]))
			}
			if c.discard {
				if err := s.Discard(ctx, as); err != nil {
					t.Error(err)
				}
				return
			}
			if err := s.Discard(ctx, as[:1]); err == nil {
				t.Error("discarded what may be visible")
			}
			for i, err := range s.Publish(ctx, as) {
				if err != nil {
					t.Errorf("artefact %d again: %v", i, err)
				}
			}
			if fmt.Sprint(sender.sent) != "[0 0 1]" || sender.lanes[0].JobEpoch != 4 || sender.lanes[0].Epoch != 6 {
				t.Errorf("sent %v by %v", sender.sent, sender.lanes)
			}
			id.Sequence = 9
			if err := s.Settled(ctx, id); err != nil {
				t.Error(err)
			}
			if _, state, err := s.staging.Find(as[0].Header.ID); state != "" || err != nil {
				t.Errorf("a settled file is %q, %v", state, err)
			}
		})
	}
}

// TestGoldenFile: a file of version 1 stays readable.
func TestGoldenFile(t *testing.T) {
	m := Message{ID: "artefact-1", Rows: 300, Units: 301, Body: []byte("body\x00\xff")}
	want, err := os.ReadFile("testdata/sealed-v1")
	if err != nil {
		t.Fatal(err)
	}
	if have := m.encode(); !bytes.Equal(have, want) {
		t.Errorf("sealed\n%q\nwant\n%q", have, want)
	}
	have, err := decodeMessage(want)
	if err != nil || have.ID != m.ID || have.Rows != m.Rows || have.Units != m.Units || !bytes.Equal(have.Body, m.Body) {
		t.Errorf("golden file %+v, %v", have, err)
	}
	for i := range want {
		if _, err := decodeMessage(want[:i]); err == nil {
			t.Errorf("a file cut at byte %d is taken", i)
		}
		bad := slices.Clone(want)
		bad[i] ^= 1
		if _, err := decodeMessage(bad); err == nil {
			t.Errorf("a file with byte %d changed is taken", i)
		}
	}
	newer := slices.Clone(want)
	newer[7] = 2
	if _, err := decodeMessage(newer); !errors.Is(err, errFile) {
		t.Errorf("a newer version: %v", err)
	}
}
