package operator

import (
	"bytes"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/storage/vfs"
)

// TestLongerTimeToLiveBringsNothingBack: a key that is forgotten has older rows on disk,
// which a longer time to live after a restart does not make its newest.
func TestLongerTimeToLiveBringsNothingBack(t *testing.T) {
	n := NewNormalize(&graph.Normalize{Keys: []int{0}, TTL: 100}, pairSchema)
	n.SpillTo(spill.New(vfs.NewMem(), "/spill"), 1<<40)
	x := &spilled{t: t}
	fold := func(k *Normalize, now int64, c ...change) {
		k.Age(now)
		if err := k.Fold(nil, changesOf(c), x.results(0)); err != nil {
			t.Fatal(err)
		}
	}
	fold(n, 0, change{k: 1, v: 10}, change{k: 2, v: 10})
	if err := n.Spill(); err != nil {
		t.Fatal(err)
	}
	fold(n, 50, change{k: 1, v: 11})
	n.Age(160)
	p := new(state.Payload)
	if err := n.SaveTo(p); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := p.WritePart(&b, 0, nil); err != nil || p.Parts() != 1 {
		t.Fatal(p.Parts(), err)
	}
	p.Release()
	m := NewNormalize(&graph.Normalize{Keys: []int{0}, TTL: 1000}, pairSchema)
	m.Age(160)
	if err := m.Load(b.Bytes(), state.Range{From: 0, To: state.Groups}); err != nil {
		t.Fatal(err)
	}
	x.said[0] = nil
	fold(m, 161, change{k: 1, v: 12})
	if !slices.Equal(x.said[0], []string{"+I|1|12"}) {
		t.Fatal(x.said[0])
	}
}
