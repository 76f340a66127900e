package segment

import (
	"fmt"
	"sort"
	"unsafe"
)

// Index is the list of a segment's extents in memory, sorted by (partition,
// base offset). It never changes.
type Index struct {
	extents []Extent
	// maxTimes[i] is the largest timestamp in extents up to i of the same
	// partition. It never falls within a partition, so it can be searched.
	maxTimes []int64
}

// add appends an extent in order. The caller must be the only writer; copies of
// the Index made before keep seeing what they saw.
func (x *Index) add(e Extent) error {
	maxTime := e.MaxTimestamp
	if n := len(x.extents); n > 0 {
		last := &x.extents[n-1]
		switch {
		case e.Partition < last.Partition:
			return fmt.Errorf("%w: partition %d after %d", ErrOrder, e.Partition, last.Partition)
		case e.Partition == last.Partition && e.BaseOffset <= last.LastOffset:
			return fmt.Errorf("%w: offset %d of partition %d after %d", ErrOrder, e.BaseOffset, e.Partition, last.LastOffset)
		case e.Partition == last.Partition:
			maxTime = max(maxTime, x.maxTimes[n-1])
		}
	}
	x.extents = append(x.extents, e)
	x.maxTimes = append(x.maxTimes, maxTime)
	return nil
}

// Extents returns all extents, sorted by (partition, base offset). The slice
// must not be changed.
func (x *Index) Extents() []Extent { return x.extents }

// Partition returns the extents of one partition, in offset order.
func (x *Index) Partition(partition uint64) []Extent {
	lo, hi := x.bounds(partition)
	return x.extents[lo:hi]
}

// Find returns the first extent of the partition that holds the offset or
// something after it.
func (x *Index) Find(partition uint64, offset int64) (Extent, bool) {
	if i := x.find(partition, offset); i >= 0 {
		return x.extents[i], true
	}
	return Extent{}, false
}

// FindTime returns the first extent of the partition with a record whose
// timestamp is at least timestampMs.
func (x *Index) FindTime(partition uint64, timestampMs int64) (Extent, bool) {
	lo, hi := x.bounds(partition)
	i := lo + sort.Search(hi-lo, func(i int) bool { return x.maxTimes[lo+i] >= timestampMs })
	if i == hi {
		return Extent{}, false
	}
	return x.extents[i], true
}

// find is the position of Find's extent, or -1.
func (x *Index) find(partition uint64, offset int64) int {
	i := sort.Search(len(x.extents), func(i int) bool {
		e := &x.extents[i]
		return e.Partition > partition || e.Partition == partition && e.LastOffset >= offset
	})
	if i == len(x.extents) || x.extents[i].Partition != partition {
		return -1
	}
	return i
}

func (x *Index) bounds(partition uint64) (lo, hi int) {
	lo = sort.Search(len(x.extents), func(i int) bool { return x.extents[i].Partition >= partition })
	hi = lo + sort.Search(len(x.extents)-lo, func(i int) bool { return x.extents[lo+i].Partition > partition })
	return lo, hi
}

// bytes is the memory the index takes.
func (x *Index) bytes() int64 {
	return int64(len(x.extents)) * int64(unsafe.Sizeof(Extent{})+8)
}
