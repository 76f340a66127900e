package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// logPart is a partition of a topic.
type logPart struct {
	topic     string
	partition int32
}

func (p logPart) String() string { return fmt.Sprintf("%s/%d", p.topic, p.partition) }

// seen is a record at its offset.
type seen struct {
	offset int64
	value  string
}

// written is a record that was sent. Values are unique over a history.
type written struct {
	// by is a producer that keeps the order of what it sends to a partition, and
	// n says when this one was sent. The order of different producers is free.
	by    string
	n     int
	place logPart
	value string
	// txn names its transaction, "" for none. once says that it must not be in the
	// log twice: its producer is idempotent.
	txn  string
	once bool
	// acked says that it was confirmed, with the offset.
	acked  bool
	offset int64
}

// outcome of a transaction, as its producer knows it.
type txnEnd int

const (
	// txnInDoubt is a commit that nobody confirmed: all of it or nothing.
	txnInDoubt txnEnd = iota
	txnCommitted
	// txnAborted also says of a transaction that its commit was never asked for.
	txnAborted
)

// reading is what one consumer read of a partition without being put elsewhere.
type reading struct {
	by        string
	group     string // "" for a consumer without one
	place     logPart
	committed bool // it reads committed records only
	records   []seen
}

// cursorCommit is a position of a group that was confirmed.
type cursorCommit struct {
	group  string
	place  logPart
	offset int64
	at     int // when it was confirmed
}

// cursorLook is a position that a group was found to have; -1 for none.
type cursorLook struct {
	group      string
	place      logPart
	offset     int64
	began, end int
}

// brokerHistory is all that clients of a broker did and saw. The methods are for
// use by all of them at once.
type brokerHistory struct {
	mu       sync.Mutex
	clock    int
	writes   []*written
	txns     map[string]txnEnd
	readings []*reading
	commits  []cursorCommit
	looks    []cursorLook
}

// tick is the order of events.
func (h *brokerHistory) tick() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	return h.clock
}

// sent notes a record before it is sent; acked, which is called when it is
// confirmed, with its offset.
func (h *brokerHistory) sent(w *written) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes = append(h.writes, w)
}

func (h *brokerHistory) acked(w *written, offset int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.acked, w.offset = true, offset
}

func (h *brokerHistory) ended(txn string, end txnEnd) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.txns == nil {
		h.txns = map[string]txnEnd{}
	}
	h.txns[txn] = end
}

func (h *brokerHistory) reads(r *reading) *reading {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readings = append(h.readings, r)
	return r
}

func (h *brokerHistory) read(r *reading, s seen) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.records = append(r.records, s)
}

func (h *brokerHistory) committed(group string, p logPart, offset int64) {
	at := h.tick()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.commits = append(h.commits, cursorCommit{group, p, offset, at})
}

func (h *brokerHistory) looked(l cursorLook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looks = append(h.looks, l)
}

// Kinds of anomalies.
const (
	lostWrite       = "lost write"
	duplicateWrite  = "duplicate"
	abortedRead     = "aborted read"
	tornTransaction = "torn transaction"
	reordered       = "reordered"
	twoRecords      = "an offset names two records"
	phantomRead     = "read what is not in the log"
	wentBack        = "reader went back"
	skipped         = "reader skipped"
	cursorRegress   = "cursor regress"
	unreadCursor    = "cursor beyond what was read"
	strangeWrite    = "nobody wrote it"
)

// anomaly is something that a broker must not do.
type anomaly struct{ kind, text string }

// brokerCheck compares a history with the logs that were read when all was over: of
// all records, and of the committed ones.
type brokerCheck struct {
	h              *brokerHistory
	all, committed map[logPart][]seen

	byValue map[string]*written
	found   []anomaly
}

func (c *brokerCheck) add(kind, format string, args ...any) {
	c.found = append(c.found, anomaly{kind, fmt.Sprintf(format, args...)})
}

// run gives what is wrong.
func (c *brokerCheck) run() []anomaly {
	c.byValue = map[string]*written{}
	for _, w := range c.h.writes {
		c.byValue[w.value] = w
	}
	c.checkNames()
	c.checkWrites()
	c.checkOrder()
	c.checkTransactions()
	c.checkReadings()
	c.checkCursors()
	return c.found
}

// sortedPlaces are the keys of a map in a fixed order.
func sortedPlaces[V any](m map[logPart]V) []logPart {
	return slices.SortedFunc(maps.Keys(m), func(a, b logPart) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
	})
}

// checkNames: whoever was told of an offset, at any time, was told of the same
// record.
func (c *brokerCheck) checkNames() {
	type name struct {
		place  logPart
		offset int64
	}
	names := map[name]string{}
	is := func(p logPart, s seen, who string) {
		n := name{p, s.offset}
		if old, ok := names[n]; ok && old != s.value {
			c.add(twoRecords, "%v at %d is %q, for %s %q", p, s.offset, old, who, s.value)
			return
		}
		names[n] = s.value
	}
	for _, p := range sortedPlaces(c.all) {
		for _, s := range c.all[p] {
			is(p, s, "the log")
		}
		for _, s := range c.committed[p] {
			is(p, s, "the committed log")
		}
	}
	for _, w := range c.h.writes {
		if w.acked {
			is(w.place, seen{w.offset, w.value}, "its producer")
		}
	}
	for _, r := range c.h.readings {
		for _, s := range r.records {
			is(r.place, s, r.by)
		}
	}
}

// places of each value in a log.
func placesOf(log map[logPart][]seen) map[string][]int64 {
	out := map[string][]int64{}
	for _, records := range log {
		for _, s := range records {
			out[s.value] = append(out[s.value], s.offset)
		}
	}
	return out
}

// checkWrites: what was confirmed is there, and what must not be twice is not.
func (c *brokerCheck) checkWrites() {
	at := placesOf(c.all)
	visible := placesOf(c.committed)
	for _, w := range c.h.writes {
		got := at[w.value]
		if w.acked && !slices.Contains(got, w.offset) {
			c.add(lostWrite, "%q of %v, confirmed at %d, is at %v", w.value, w.place, w.offset, got)
		}
		if w.acked && w.txn == "" && !slices.Contains(visible[w.value], w.offset) {
			c.add(lostWrite, "%q of %v, confirmed at %d, is no committed record", w.value, w.place, w.offset)
		}
		if w.once && len(got) > 1 {
			c.add(duplicateWrite, "%q of %v is at %v", w.value, w.place, got)
		}
	}
	for _, p := range sortedPlaces(c.all) {
		for _, s := range c.all[p] {
			if w := c.byValue[s.value]; w == nil || w.place != p {
				c.add(strangeWrite, "%v at %d has %q", p, s.offset, s.value)
			}
		}
	}
}

// checkOrder: what one producer sent to a partition is there in the order in which
// it was sent. Of what it sent twice, the first counts.
func (c *brokerCheck) checkOrder() {
	for _, p := range sortedPlaces(c.all) {
		last := map[string]*written{}
		known := map[string]bool{}
		for _, s := range c.all[p] {
			w := c.byValue[s.value]
			if w == nil || known[s.value] {
				continue
			}
			known[s.value] = true
			if before := last[w.by]; before != nil && before.n > w.n {
				c.add(reordered, "%v: %q at %d was sent before %q", p, w.value, s.offset, before.value)
			}
			last[w.by] = w
		}
	}
}

// checkTransactions: of each transaction all records are committed, or none is.
func (c *brokerCheck) checkTransactions() {
	visible := placesOf(c.committed)
	sizes, there := map[string]int{}, map[string]int{}
	for _, w := range c.h.writes {
		if w.txn == "" {
			continue
		}
		sizes[w.txn]++
		if n := len(visible[w.value]); n > 0 {
			there[w.txn]++
			if c.h.txns[w.txn] == txnAborted {
				c.add(abortedRead, "%q of %v", w.value, w.place)
			}
		} else if c.h.txns[w.txn] == txnCommitted {
			c.add(lostWrite, "%q of the committed transaction %s", w.value, w.txn)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		if n := there[name]; n > 0 && n < sizes[name] && c.h.txns[name] == txnInDoubt {
			c.add(tornTransaction, "%s: %d of %d records are committed", name, n, sizes[name])
		}
	}
}

// checkReadings: who reads goes forward, passes nothing by, and sees only what is
// in the log to stay.
func (c *brokerCheck) checkReadings() {
	for _, r := range c.h.readings {
		log := c.all[r.place]
		if r.committed {
			log = c.committed[r.place]
		}
		at := -1
		for i, s := range r.records {
			if i > 0 && s.offset <= r.records[i-1].offset {
				c.add(wentBack, "%s in %v from %d to %d", r.by, r.place, r.records[i-1].offset, s.offset)
			}
			k, ok := slices.BinarySearchFunc(log, s.offset, func(x seen, offset int64) int { return cmp.Compare(x.offset, offset) })
			if !ok {
				kind := phantomRead
				if w := c.byValue[s.value]; r.committed && w != nil && w.txn != "" {
					kind = abortedRead
				}
				c.add(kind, "%s in %v: %q at %d", r.by, r.place, s.value, s.offset)
				continue
			}
			if at >= 0 && k > at+1 {
				c.add(skipped, "%s in %v: from %d to %d, past %d", r.by, r.place, log[at].offset, s.offset, log[at+1].offset)
			}
			at = k
		}
	}
}

// checkCursors: a group's position is never before one that was confirmed or seen
// earlier, nor behind a record that none of its members has read.
func (c *brokerCheck) checkCursors() {
	type owner struct {
		group string
		place logPart
	}
	last := map[owner]int64{}
	looks := slices.Clone(c.h.looks)
	slices.SortStableFunc(looks, func(a, b cursorLook) int { return cmp.Compare(a.began, b.began) })
	for i, l := range looks {
		o := owner{l.group, l.place}
		last[o] = max(last[o], l.offset)
		for _, x := range c.h.commits {
			if x.group == l.group && x.place == l.place && x.at < l.began && x.offset > l.offset {
				c.add(cursorRegress, "%s in %v is at %d, after %d was confirmed", l.group, l.place, l.offset, x.offset)
				break
			}
		}
		for _, before := range looks[:i] {
			if before.group == l.group && before.place == l.place && before.end < l.began && before.offset > l.offset {
				c.add(cursorRegress, "%s in %v is at %d, after %d was seen", l.group, l.place, l.offset, before.offset)
				break
			}
		}
	}
	read := map[owner]map[int64]bool{}
	committed := map[owner]bool{}
	for _, r := range c.h.readings {
		o := owner{r.group, r.place}
		if read[o] == nil {
			read[o] = map[int64]bool{}
		}
		committed[o] = r.committed
		for _, s := range r.records {
			read[o][s.offset] = true
		}
	}
	for o, offset := range last {
		if read[o] == nil {
			continue // of this group it is not known what it read
		}
		log := c.all[o.place]
		if committed[o] {
			log = c.committed[o.place]
		}
		for _, s := range log {
			if s.offset < offset && !read[o][s.offset] {
				c.add(unreadCursor, "%s in %v is at %d and has not read %d", o.group, o.place, offset, s.offset)
				break
			}
		}
	}
}

// checkCopy: the committed records of a topic's partitions were copied to the same
// partition of another, each once and in order.
func (c *brokerCheck) checkCopy(from, to string, value func(copied string) string) {
	for _, p := range sortedPlaces(c.committed) {
		if p.topic != from {
			continue
		}
		source, copied := c.committed[p], c.committed[logPart{to, p.partition}]
		n := 0
		for n < len(source) && n < len(copied) && source[n].value == value(copied[n].value) {
			n++
		}
		if n == len(source) && n == len(copied) {
			continue
		}
		have := map[string]int{}
		for _, s := range copied {
			have[value(s.value)]++
		}
		plain := true
		for _, s := range source {
			switch k := have[s.value]; {
			case k == 0:
				c.add(lostWrite, "%q of %v was not copied", s.value, p)
			case k > 1:
				c.add(duplicateWrite, "%q of %v was copied %d times", s.value, p, k)
			default:
				continue
			}
			plain = false
		}
		if plain {
			c.add(reordered, "the copy of %v differs from its %d-th record on", p, n)
		}
	}
}
