package topiclog

import (
	"slices"
	"sort"

	"github.com/millrace/millrace/storage/record"
)

// abortedBetween lists the aborted transactions that reach into the offsets from
// one to before another; the shard's mutex is held.
func (p *partition) abortedBetween(from, to int64) []AbortedTransaction {
	if p.producers == nil {
		return nil
	}
	all := p.producers.aborted
	var out []AbortedTransaction
	for i := sort.Search(len(all), func(i int) bool { return all[i].LastOffset >= from }); i < len(all); i++ {
		if all[i].FirstOffset < to {
			out = append(out, all[i])
		}
		if all[i].stable >= to {
			break // those after it begin later
		}
	}
	return out
}

// isolate applies the isolation to a lease. It returns false if it must be fetched
// anew: because all of it was aborted and more follows, or because records were
// deleted meanwhile, and with them what is known of their transactions.
func (p *partition) isolate(l *Lease, req FetchRequest) bool {
	if req.Isolation == Uncommitted || len(l.Chunks) == 0 {
		return true
	}
	p.shard.mu.Lock()
	gone := p.start > req.Offset
	aborted := p.abortedBetween(req.Offset, l.NextOffset)
	p.shard.mu.Unlock()
	if gone {
		return false
	}
	if req.Isolation == CommittedRaw {
		l.Aborted = aborted
		return true
	}
	if len(aborted) > 0 {
		l.dropAborted(aborted)
	}
	return len(l.Chunks) > 0
}

// skipAborted gives a lease without anything to read back and returns where to go
// on.
func (p *partition) skipAborted(l *Lease, offset int64) int64 {
	if len(l.Chunks) == 0 {
		offset = l.NextOffset
	}
	l.Release()
	return offset
}

// dropAborted takes the batches of aborted transactions out.
func (l *Lease) dropAborted(aborted []AbortedTransaction) {
	var kept [][]byte
	l.Bytes = 0
	for _, chunk := range l.Chunks {
		from, at := 0, 0
		keep := func(to int) {
			if to > from {
				kept = append(kept, chunk[from:to:to])
				l.Bytes += to - from
			}
		}
		for at < len(chunk) {
			h, err := record.ParseHeader(chunk[at:])
			if err != nil {
				break // cannot be: the batches were verified
			}
			next := at + h.Size()
			if isAborted(&h, aborted) {
				keep(at)
				from = next
			}
			at = next
		}
		keep(len(chunk))
	}
	l.Chunks = kept
}

// isAborted says that a data batch belongs to one of the transactions.
func isAborted(h *record.Header, aborted []AbortedTransaction) bool {
	return h.Attributes.Transactional() && !h.Attributes.Control() && slices.ContainsFunc(aborted, func(a AbortedTransaction) bool {
		return a.ProducerID == h.ProducerID && a.FirstOffset <= h.BaseOffset && h.BaseOffset < a.LastOffset
	})
}

// cutAt drops the batches from an offset on: a segment may have been read beyond
// the bound.
func (l *Lease) cutAt(end int64) {
	if l.NextOffset <= end || len(l.Chunks) == 0 {
		return
	}
	bytes, next := 0, end
	for i, chunk := range l.Chunks {
		n := 0
		for n < len(chunk) {
			h, err := record.ParseHeader(chunk[n:])
			if err != nil || h.BaseOffset >= end {
				break
			}
			next = h.LastOffset() + 1
			n += h.Size()
		}
		if bytes += n; n == len(chunk) {
			continue
		}
		if n > 0 {
			l.Chunks[i] = chunk[:n:n]
			i++
		}
		l.Chunks = l.Chunks[:i]
		break
	}
	if l.Bytes, l.NextOffset = bytes, next; bytes == 0 {
		l.Chunks = nil
	}
}
