package lane

const (
	// firstWidth is how many rows are read at first where each may become many: it is
	// not known how many.
	firstWidth = 64
	// wideRows is how many rows a batch is to become at most, about.
	wideRows = 1 << 16
)

// width bounds the rows of a batch by what earlier ones became, so that rows that
// become thousands each are not in memory all at once. Results do not depend on it
// (invariant 7).
type width struct{ rows, most int }

// newWidth is the width of batches of at most so many rows that go through chains.
func newWidth(chains []*sourceChain, most int) width {
	for _, c := range chains {
		if c.chain.Widens() {
			return width{rows: min(firstWidth, most), most: most}
		}
	}
	return width{rows: most, most: most}
}

// became says that the last batch had so many rows, and how many they became at most.
func (w *width) became(from, rows int) {
	switch {
	case rows > wideRows:
		w.rows = max(int(int64(from)*wideRows/int64(rows)), 1)
	case rows <= wideRows/2 && from >= w.rows:
		w.rows = min(2*w.rows, w.most)
	}
}

// widest is the most rows that chains made of the batch last evaluated.
func widest(chains []*sourceChain) int {
	most := 0
	for _, c := range chains {
		most = max(most, c.chain.Widest())
	}
	return most
}
