package filesystem

import (
	"context"
	"slices"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// sealOne seals one row by an attempt of an epoch.
func sealOne(t *testing.T, s *Sink, cols []connector.Column, epoch, sequence uint64) connector.Artifact {
	t.Helper()
	ctx := context.Background()
	id := connector.ArtifactID{Job: conntest.UUID(1), Lane: connector.LaneID{Topic: conntest.UUID(3)}, Epoch: epoch, Sequence: sequence}
	w, err := s.OpenWriter(ctx, connector.Attempt{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	b := textBatch(cols, []string{"a"})
	ids, err := w.Buckets(b, batch.Sel{0}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(b, nil, ids[0]); err != nil {
		t.Fatal(err)
	}
	as, err := w.Seal(ctx, []connector.SealRequest{{Bucket: ids[0], Header: connector.Header{ID: id, Rows: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	return as[0]
}

// TestRetract: what is void is out of sight in whatever state it is, for good, and
// kept; what is not named stays.
func TestRetract(t *testing.T) {
	mem := vfs.NewMem()
	c := newConnector(mem)
	cols := []connector.Column{column("v", types.NewString())}
	ctx := context.Background()
	cs, err := c.OpenSink(ctx, tableOf(c, cols, nil, map[string]string{"path": "/t", "format": "json"}), conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	s := cs.(*Sink)
	kept, published := sealOne(t, s, cols, 1, 1), sealOne(t, s, cols, 2, 2)
	fenced, sealed := sealOne(t, s, cols, 3, 3), sealOne(t, s, cols, 4, 4)
	for _, err := range s.Publish(ctx, []connector.Artifact{kept, published}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	void := []connector.Artifact{published, fenced, sealed}
	for range 2 {
		if err := s.Retract(ctx, void); err != nil {
			t.Fatal(err)
		}
		visible, err := mem.List("/t")
		if err != nil {
			t.Fatal(err)
		}
		visible = slices.DeleteFunc(visible, func(n string) bool { return n[0] == '.' })
		if want := mem.Base(kept.Location); !slices.Equal(visible, []string{want}) {
			t.Fatalf("readers see %v, want %s", visible, want)
		}
		for i, err := range s.Publish(ctx, void) {
			if err == nil {
				t.Errorf("void artefact %d can be published", i)
			}
		}
	}
	hidden, err := mem.List("/t/.staging/" + conntest.UUID(1).String() + "/void")
	if err != nil || len(hidden) != 3 {
		t.Errorf("kept are %v, %v", hidden, err)
	}
	// Two of them are of no use any more, and one that was never kept.
	for range 2 {
		if err := s.Purge(ctx, []connector.Artifact{published, sealed, kept}); err != nil {
			t.Fatal(err)
		}
	}
	p, err := decodePayload(fenced.Payload)
	if err != nil {
		t.Fatal(err)
	}
	hidden, err = mem.List("/t/.staging/" + conntest.UUID(1).String() + "/void")
	if want := mem.Base(p.final); err != nil || !slices.Equal(hidden, []string{want}) {
		t.Errorf("kept are %v, %v, want %s", hidden, err, want)
	}
	if ok, _ := vfs.Exists(mem, kept.Location); !ok {
		t.Error("a file that is not void was removed")
	}
	if err := s.Probe(ctx); err != nil {
		t.Error(err)
	}
	if ok, _ := vfs.Exists(mem, "/t/.staging/probe"); ok {
		t.Error("the probe stays")
	}
}
