package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestBrokerCheckerFinds: the checker finds each kind of anomaly in a history that
// was made up to have it, and nothing in one without.
func TestBrokerCheckerFinds(t *testing.T) {
	p := logPart{"t", 0}
	// a, b: plain; x, y: one transaction, committed; z: an aborted one.
	base := func() (*brokerHistory, *brokerCheck) {
		h := &brokerHistory{}
		for i, w := range []written{
			{by: "p", value: "a"}, {by: "p", value: "b"}, {by: "q", value: "x", txn: "q1"}, {by: "q", value: "y", txn: "q1"}, {by: "q", value: "z", txn: "q2"},
		} {
			w.n, w.place, w.once, w.acked, w.offset = i, p, true, true, int64(i)
			h.sent(&w)
		}
		h.ended("q1", txnCommitted)
		h.ended("q2", txnAborted)
		all := []seen{{0, "a"}, {1, "b"}, {2, "x"}, {3, "y"}, {4, "z"}}
		h.reads(&reading{by: "r", group: "g", place: p, committed: true, records: slices.Clone(all[:4])})
		h.reads(&reading{by: "s", place: p, records: slices.Clone(all[1:])})
		h.committed("g", p, 2)
		h.looked(cursorLook{"g", p, 2, 10, 11})
		h.looked(cursorLook{"g", p, 4, 12, 13})
		return h, &brokerCheck{h: h, all: map[logPart][]seen{p: slices.Clone(all)}, committed: map[logPart][]seen{p: slices.Clone(all[:4])}}
	}
	without := func(log []seen, value string) []seen {
		return slices.DeleteFunc(log, func(s seen) bool { return s.value == value })
	}
	for _, x := range []struct {
		what string
		make func(h *brokerHistory, c *brokerCheck)
		want []string
	}{
		{"nothing", func(*brokerHistory, *brokerCheck) {}, nil},
		{"a confirmed record is gone", func(h *brokerHistory, c *brokerCheck) {
			h.readings, h.looks = nil, nil
			c.all[p], c.committed[p] = without(c.all[p], "b"), without(c.committed[p], "b")
		}, []string{lostWrite}},
		{"a confirmed record is elsewhere", func(h *brokerHistory, c *brokerCheck) { h.writes[0].offset = 7 }, []string{lostWrite}},
		{"an unconfirmed record is gone", func(h *brokerHistory, c *brokerCheck) {
			h.readings, h.looks = nil, nil
			h.writes[1].acked = false
			c.all[p], c.committed[p] = without(c.all[p], "b"), without(c.committed[p], "b")
		}, nil},
		{"a plain record hidden by a transaction", func(h *brokerHistory, c *brokerCheck) {
			h.readings, h.looks = nil, nil
			c.committed[p] = without(c.committed[p], "b")
		}, []string{lostWrite}},
		{"a committed record is hidden", func(h *brokerHistory, c *brokerCheck) {
			h.readings, h.looks = nil, nil
			c.committed[p] = without(c.committed[p], "y")
		}, []string{lostWrite}},
		{"a record twice", func(h *brokerHistory, c *brokerCheck) { c.all[p] = append(c.all[p], seen{5, "a"}) }, []string{duplicateWrite}},
		{"a record twice of a producer that may", func(h *brokerHistory, c *brokerCheck) {
			h.writes[0].once = false
			c.all[p] = append(c.all[p], seen{5, "a"})
		}, nil},
		{"an aborted record is in the log of the committed", func(h *brokerHistory, c *brokerCheck) {
			c.committed[p] = append(c.committed[p], seen{4, "z"})
		}, []string{abortedRead}},
		{"an aborted record was read", func(h *brokerHistory, c *brokerCheck) { h.read(h.readings[0], seen{4, "z"}) }, []string{abortedRead}},
		{"half of a transaction in doubt", func(h *brokerHistory, c *brokerCheck) {
			h.readings, h.looks = nil, nil
			h.ended("q1", txnInDoubt)
			c.committed[p] = without(c.committed[p], "y")
		}, []string{tornTransaction}},
		{"nothing of a transaction in doubt", func(h *brokerHistory, c *brokerCheck) {
			h.readings, h.looks = nil, nil
			h.ended("q1", txnInDoubt)
			c.committed[p] = without(without(c.committed[p], "y"), "x")
		}, nil},
		{"two records change places", func(h *brokerHistory, c *brokerCheck) {
			h.readings = nil
			h.writes[0].offset, h.writes[1].offset = 1, 0
			for _, log := range []map[logPart][]seen{c.all, c.committed} {
				log[p][0].value, log[p][1].value = "b", "a"
			}
		}, []string{reordered}},
		{"an offset was another record", func(h *brokerHistory, c *brokerCheck) { h.readings[1].records[0].value = "w" }, []string{twoRecords}},
		{"a record of nobody", func(h *brokerHistory, c *brokerCheck) { c.all[p] = append(c.all[p], seen{5, "w"}) }, []string{strangeWrite}},
		{"a record was read that is gone", func(h *brokerHistory, c *brokerCheck) { h.read(h.readings[1], seen{5, "w"}) }, []string{phantomRead}},
		{"a reader goes back", func(h *brokerHistory, c *brokerCheck) { h.read(h.readings[1], seen{2, "x"}) }, []string{wentBack}},
		{"a reader skips", func(h *brokerHistory, c *brokerCheck) {
			h.readings[1].records = slices.Delete(h.readings[1].records, 1, 2)
		}, []string{skipped}},
		{"a reader of committed records skips what is aborted", func(h *brokerHistory, c *brokerCheck) {
			w := &written{by: "p", n: 9, place: p, value: "c", once: true}
			h.sent(w)
			h.acked(w, 6)
			for _, log := range []map[logPart][]seen{c.all, c.committed} {
				log[p] = append(log[p], seen{6, "c"})
			}
			h.read(h.readings[0], seen{6, "c"})
		}, nil},
		{"a position before a confirmed one", func(h *brokerHistory, c *brokerCheck) { h.looks[0].offset = 1 }, []string{cursorRegress}},
		{"a position before one that was seen", func(h *brokerHistory, c *brokerCheck) { h.looks[1].offset, h.looks[0].offset = 3, 4 }, []string{cursorRegress}},
		{"a position confirmed while it was looked at", func(h *brokerHistory, c *brokerCheck) {
			h.commits = append(h.commits, cursorCommit{"g", p, 4, 11})
		}, nil},
		{"a position behind what nobody read", func(h *brokerHistory, c *brokerCheck) {
			h.readings[0].records = h.readings[0].records[1:]
		}, []string{unreadCursor}},
	} {
		h, c := base()
		x.make(h, c)
		var kinds []string
		for _, a := range c.run() {
			if !slices.Contains(kinds, a.kind) {
				kinds = append(kinds, a.kind)
			}
		}
		for _, want := range x.want {
			if !slices.Contains(kinds, want) {
				t.Errorf("%s: found %q, want %q", x.what, kinds, want)
			}
		}
		if len(x.want) == 0 && len(kinds) > 0 {
			t.Errorf("%s: found %v", x.what, c.found)
		}
	}
}

// TestBrokerCheckerFindsInCopies does the same for what was copied.
func TestBrokerCheckerFindsInCopies(t *testing.T) {
	for _, x := range []struct{ copied, want string }{
		{"abc", ""}, {"ab", lostWrite}, {"bc", lostWrite}, {"abbc", duplicateWrite}, {"acb", reordered}, {"", lostWrite},
	} {
		c := &brokerCheck{h: &brokerHistory{}, committed: map[logPart][]seen{}}
		for i, r := range "abc" {
			c.committed[logPart{"from", 1}] = append(c.committed[logPart{"from", 1}], seen{int64(i), string(r)})
		}
		for i, r := range x.copied {
			c.committed[logPart{"to", 1}] = append(c.committed[logPart{"to", 1}], seen{int64(2 * i), fmt.Sprint("copy of ", string(r))})
		}
		c.checkCopy("from", "to", func(s string) string { return strings.TrimPrefix(s, "copy of ") })
		if len(c.found) == 0 && x.want != "" || len(c.found) > 0 && c.found[0].kind != x.want {
			t.Errorf("copied as %q: found %v, want %q", x.copied, c.found, x.want)
		}
	}
}
