package logtopic

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/offsets"
	"github.com/millrace/millrace/storage/vfs"
)

// pipe is a lane over the sink, with a ledger that survives: record i of the
// source gives rows 2i and 2i+1, which may go to different partitions.
type pipe struct {
	intents   [][]connector.Artifact // pending, each of artefacts that share records
	committed offsets.Set
	epoch     uint64
	sequence  uint64
}

const (
	pipeRecords = 12
	pipeRound   = 3 // records a round
)

func (p *pipe) run(w *logWorld, jobEpoch uint64, tables *connector.Table) error {
	s, err := w.conn.OpenSink(ctx, tables, conntest.OwnerOf(1, jobEpoch))
	if err != nil {
		return err
	}
	defer s.Close()
	high, err := s.MaxEpoch(ctx, theLane)
	if err != nil {
		return err
	}
	p.epoch = max(p.epoch, high) + 1
	p.sequence = 0
	x, err := s.OpenWriter(ctx, connector.Attempt{ID: artifactID(p.epoch, 0)})
	if err != nil {
		return err
	}
	defer x.Close()
	if err := p.resolve(s); err != nil {
		return err
	}
	settler := s.(connector.Settler)
	if err := settler.Settled(ctx, artifactID(p.epoch, 0)); err != nil {
		return err
	}
	for r := int64(0); r < pipeRecords; r += pipeRound {
		var todo []int64
		for i := r; i < r+pipeRound; i++ {
			if !p.committed.Contains(i) {
				todo = append(todo, i)
			}
		}
		if len(todo) == 0 {
			continue
		}
		if err := p.round(s, x.(*writer), todo); err != nil {
			return err
		}
		if err := settler.Settled(ctx, artifactID(p.epoch, p.sequence+1)); err != nil {
			return err
		}
	}
	return nil
}

// resolve ends what the attempts before left, as a lane does.
func (p *pipe) resolve(s connector.Sink) error {
	for len(p.intents) > 0 {
		in := p.intents[0]
		outcomes, err := s.Resolve(ctx, in)
		if err != nil {
			return err
		}
		absent := 0
		for i, o := range outcomes {
			switch o {
			case connector.Published:
			case connector.Sealed:
				if err := s.Publish(ctx, in[i:i+1])[0]; err != nil {
					return err
				}
			case connector.Absent:
				absent++
			default:
				return fmt.Errorf("artefact %s is %s", in[i].Header.ID, o)
			}
		}
		switch absent {
		case 0:
			p.commit(in)
		case len(in):
			p.intents = p.intents[1:] // void
		default:
			return fmt.Errorf("BUG: %d of %d artefacts that share records are absent", absent, len(in))
		}
	}
	return nil
}

func (p *pipe) commit(in []connector.Artifact) {
	for _, a := range in {
		for _, x := range a.Header.Inputs {
			p.committed = p.committed.Union(x.Offsets)
		}
	}
	p.intents = slices.DeleteFunc(p.intents, func(x []connector.Artifact) bool { return x[0].Header.ID == in[0].Header.ID })
}

// round takes records through the cycle.
func (p *pipe) round(s connector.Sink, wr *writer, todo []int64) error {
	inputs := map[connector.BucketID]offsets.Set{}
	for _, i := range todo {
		b := conntest.Rows(2*i, 2)
		ids, err := wr.Buckets(b, nil, nil)
		if err != nil {
			return err
		}
		for k, id := range ids {
			if err := wr.Write(b, batch.Sel{int32(k)}, id); err != nil {
				return err
			}
			set := inputs[id]
			set.Add(i, i+1)
			inputs[id] = set
		}
	}
	var req []connector.SealRequest
	for _, b := range wr.Open() {
		p.sequence++
		req = append(req, connector.SealRequest{Bucket: b.ID, Header: connector.Header{ID: artifactID(p.epoch, p.sequence), Rows: b.Rows,
			Inputs: []connector.Input{{Topic: theLane.Topic, Offsets: inputs[b.ID]}}}})
	}
	as, err := wr.Seal(ctx, req)
	if err != nil {
		return err
	}
	// One intent a group: two buckets that share a record are one.
	groups := [][]connector.Artifact{as}
	if len(as) == 2 && !sharing(req)[0] {
		groups = [][]connector.Artifact{as[:1], as[1:]}
	}
	p.intents = append(p.intents, groups...)
	if err := errors.Join(s.Publish(ctx, as)...); err != nil {
		return err
	}
	for _, g := range groups {
		p.commit(g)
	}
	return nil
}

// The power is cut before each write and each sync of the log, in the middle of
// appends to two partitions of two shards; every row is there once afterwards.
func TestCrashAtEveryOperation(t *testing.T) {
	for _, keyed := range []bool{true, false} {
		table := func(w *suiteWorld) *connector.Table {
			x := w.log.sinkTable(suiteTopic)
			if keyed {
				x.PrimaryKey = []int{0}
			}
			return x
		}
		clean := openSuite(t, vfs.NewMem(), nil)
		check(t, new(pipe).run(clean.log, 1, table(clean)))
		n := clean.Operations()
		crashes, carried := 0, 0
		for op := range n + 1 {
			for seed := range uint64(3) {
				w, p := openSuite(t, vfs.NewMem(), nil), new(pipe)
				w.CrashAt(op)
				var err error
				for job := uint64(1); job <= 4; job++ {
					if err = p.run(w.log, job, table(w)); err == nil {
						break
					}
					crashes++
					for _, in := range p.intents {
						if len(in) > 1 {
							carried++
						}
					}
					next := w.AfterCrash(seed + job).(*suiteWorld)
					// A second crash while the first is being dealt with.
					if job == 1 && op%2 == 1 {
						next.CrashAt(op % 5)
					}
					w = next
				}
				if err != nil {
					t.Fatalf("keyed %t, operation %d, seed %d: %v", keyed, op, seed, err)
				}
				have := w.Visible(t)
				slices.Sort(have)
				want := make([]int64, 2*pipeRecords)
				for i := range want {
					want[i] = int64(i)
				}
				if !slices.Equal(have, want) {
					t.Fatalf("keyed %t, operation %d, seed %d: rows %v", keyed, op, seed, have)
				}
				_ = w.log.store.Close() // it may be as good as crashed
			}
		}
		if crashes < n || keyed && carried == 0 {
			t.Errorf("keyed %t: %d crashes of %d operations, %d within artefacts that share a record", keyed, crashes, n, carried)
		}
		t.Logf("keyed %t: %d operations, %d crashes, %d within artefacts that share a record", keyed, n, crashes, carried)
	}
}

// What a keyed stage sealed cannot be made again: it is complete in its payload.
func TestKeyedArtefactsSurvive(t *testing.T) {
	mem := vfs.NewMem()
	w := openWorld(t, mem, nil)
	w.topic("out", 2, nil)
	s := w.sink(w.sinkTable("out"), 1)
	id := connector.ArtifactID{Job: theJob, Table: theTable, Keyed: true, Subtask: 2, Epoch: 1, Manifest: 5, Sequence: 1}
	x, err := s.OpenWriter(ctx, connector.Attempt{ID: id})
	check(t, err)
	wr := x.(*writer)
	write(t, wr, conntest.Rows(0, 4))
	as, err := wr.Seal(ctx, []connector.SealRequest{{Bucket: wr.Open()[0].ID, Header: connector.Header{ID: id, Rows: 4}}})
	check(t, err)
	for round := range 3 {
		w = openWorld(t, mem.CrashClone(vfs.CrashOptions{}), nil)
		mem = w.fs.(*vfs.MemFS)
		s = w.sink(w.sinkTable("out"), uint64(round)+2)
		outcomes, err := s.Resolve(ctx, as)
		check(t, err)
		want := connector.Sealed
		if round > 0 {
			want = connector.Published
		}
		if outcomes[0] != want {
			t.Fatalf("round %d: it is %s", round, outcomes[0])
		}
		check(t, s.Publish(ctx, as)...)
		if got := slices.Concat(w.ids("out")...); len(got) != 4 {
			t.Fatalf("round %d: rows %v", round, got)
		}
	}
}
