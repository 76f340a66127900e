package topiclog

import "github.com/millrace/millrace/storage/record"

// Helpers over rows of raw batches that were verified before.

// cutAfter drops the batches that begin after an offset.
func cutAfter(batches []byte, offset int64) []byte {
	for n := 0; n < len(batches); {
		h, err := record.ParseHeader(batches[n:])
		if err != nil || h.BaseOffset > offset {
			return batches[:n]
		}
		n += h.Size()
	}
	return batches
}

// lastOffset is the last offset of the last batch, -1 if there is none.
func lastOffset(batches []byte) int64 {
	last := int64(-1)
	for len(batches) > 0 {
		h, err := record.ParseHeader(batches)
		if err != nil {
			break
		}
		last = h.LastOffset()
		batches = batches[h.Size():]
	}
	return last
}
