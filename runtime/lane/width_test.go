package lane

import "testing"

// TestWidth: batches grow while rows become few, and shrink to what rows that become
// many allow, down to one row.
func TestWidth(t *testing.T) {
	w := width{rows: firstWidth, most: 4096}
	for _, step := range []struct{ from, became, want int }{
		{64, 64, 128}, {128, wideRows / 2, 256}, {256, wideRows/2 + 1, 256}, {10, 10, 256},
		{256, 4 * wideRows, 64}, {64, wideRows, 64}, {8, 4 * wideRows, 2}, {2, 64 * wideRows, 1}, {1, wideRows * wideRows, 1}, {1, 10, 2},
	} {
		if w.became(step.from, step.became); w.rows != step.want {
			t.Fatalf("%d rows that became %d: %d may be read, want %d", step.from, step.became, w.rows, step.want)
		}
	}
	for range 20 {
		w.became(w.rows, 0)
	}
	if w.rows != w.most {
		t.Errorf("%d rows at most, want %d", w.rows, w.most)
	}
}
