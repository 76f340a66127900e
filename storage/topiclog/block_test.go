package topiclog

import "testing"

// TestBlockPool: released blocks are taken again, no more than the bound are kept, and
// none when nothing was taken for a while.
func TestBlockPool(t *testing.T) {
	p := &blockPool{size: 8 << 10, most: 2, poison: true}
	var all []*block
	for range 3 {
		all = append(all, p.take(1))
	}
	big := p.take(16 << 10)
	if len(all[0].buf) != p.size || len(big.buf) != 16<<10 {
		t.Fatalf("blocks of %d and %d bytes", len(all[0].buf), len(big.buf))
	}
	all[0].retain()
	for _, b := range append(all, big) {
		b.release()
	}
	if len(p.free) != 2 || all[0].buf[0] == 0xdb {
		t.Fatalf("%d blocks kept, want the two that nobody uses", len(p.free))
	}
	all[0].release()
	if b := p.take(1); b != all[2] || b.refs.Load() != 1 || b.buf[0] != 0xdb {
		t.Error("not the block that was released last, or not overwritten")
	}
	p.trim() // blocks were taken
	if len(p.free) != 1 {
		t.Errorf("%d blocks kept, want 1", len(p.free))
	}
	p.trim()
	if len(p.free) != 0 {
		t.Errorf("%d blocks kept while none was needed", len(p.free))
	}
}
