package topiclog_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// The model of transactions drives some producers at random, with crashes, restarts,
// flushes, merges and deletions in between, and compares what is read with an
// oracle after each step.

// oracleRecord is a record and what became of it.
type oracleRecord struct {
	offset int64
	value  string
	open   *txnProducer // nil: decided
	gone   bool         // aborted
}

type transactionModel struct {
	t     *testing.T
	seed  uint64
	rng   *rand.Rand
	mem   *vfs.MemFS
	o     topiclog.Options
	s     *topiclog.Store
	parts []topiclog.Partition
	logs  map[topiclog.PartitionID][]*oracleRecord
	start map[topiclog.PartitionID]int64
	ps    []*txnProducer
	n     int
}

// TestTransactionsModel runs more seeds with MILLRACE_MODEL_RUNS.
func TestTransactionsModel(t *testing.T) {
	runs := 8
	if v := os.Getenv("MILLRACE_MODEL_RUNS"); v != "" {
		var err error
		if runs, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	for seed := range uint64(runs) {
		m := &transactionModel{t: t, seed: 3000 + seed, rng: rand.New(rand.NewPCG(3000+seed, 1)), mem: vfs.NewMem(),
			logs: map[topiclog.PartitionID][]*oracleRecord{}, start: map[topiclog.PartitionID]int64{}}
		m.run()
		if t.Failed() {
			return
		}
	}
}

func (m *transactionModel) run() {
	m.o = small(m.mem)
	m.o.JournalFileBytes, m.o.TransactionInterval = 32<<10, -1
	if m.seed%2 == 0 {
		m.o = topiclog.RewriteAlways(m.o)
	}
	if m.seed%4 > 1 {
		m.o = topiclog.Promoting(m.o, 1, 1, 1)
	}
	m.s = open(m.t, m.o)
	m.parts = oneTopic(m.t, m.s, "t", 3, map[string]string{"max.message.bytes": "100000"}).Partitions
	for i := range 4 {
		m.ps = append(m.ps, newTxnProducer(m.t, m.s, fmt.Sprint("p", i), i%2 == 0))
	}
	for op := range 250 {
		what := m.step()
		m.compare(fmt.Sprintf("seed %d, operation %d, %s", m.seed, op, what))
		if m.t.Failed() {
			break
		}
	}
	check(m.t, m.s.Close())
}

func (m *transactionModel) step() string {
	ctx := context.Background()
	part := m.parts[m.rng.IntN(len(m.parts))].ID
	p := m.ps[m.rng.IntN(len(m.ps))]
	switch k := m.rng.IntN(40); {
	case k == 0:
		check(m.t, m.s.Flush(ctx))
		return "flush"
	case k == 1:
		_, err := m.s.RunRetention(ctx) // merges
		check(m.t, err)
		return "merge"
	case k == 2:
		st, err := m.s.State(part)
		check(m.t, err)
		before := st.Start + m.rng.Int64N(st.HighWatermark-st.Start+1)
		if m.rng.IntN(3) > 0 {
			before = min(before, st.Start+5)
		}
		m.start[part], err = m.s.DeleteRecords(ctx, part, before)
		check(m.t, err)
		return fmt.Sprint("delete below ", before)
	case k <= 5:
		old := m.s
		if k == 3 {
			check(m.t, old.Close())
		} else {
			// Everything was answered: what is not synced is not needed.
			m.mem = m.mem.CrashClone(vfs.CrashOptions{UnsyncedPercent: m.rng.IntN(101), Rand: m.rng})
			m.o.FS = m.mem
			check(m.t, old.Close())
		}
		m.s = open(m.t, m.o)
		for _, p := range m.ps {
			p.s = m.s
		}
		return "restart"
	case k <= 8:
		m.n++
		value := fmt.Sprint("plain", m.n)
		res, err := m.s.Append(ctx, topiclog.AppendRequest{Partition: part, Batches: batch(m.t, value)})
		check(m.t, err)
		m.logs[part] = append(m.logs[part], &oracleRecord{offset: res.BaseOffset, value: value})
		return "plain"
	case k <= 15:
		commit := m.rng.IntN(2) == 0
		err := p.end(commit)
		if !m.decide(p, commit) {
			return "end of nothing" // an abort of nothing is allowed to some
		}
		check(m.t, err)
		return fmt.Sprint("end of ", p.id, ", commit ", commit)
	case k == 16:
		// Another process takes the id.
		fresh := newTxnProducer(m.t, m.s, p.id, p.bump)
		m.decide(p, false)
		*p = *fresh
		return "init of " + p.id
	}
	m.n++
	value := fmt.Sprint(p.id, "-", m.n, "-", string(make([]byte, m.rng.IntN(2000))))
	check(m.t, p.put(part, value))
	m.logs[part] = append(m.logs[part], &oracleRecord{offset: p.last, value: value, open: p})
	return "put by " + p.id
}

// decide ends a producer's transaction in the oracle and says whether there was one.
func (m *transactionModel) decide(p *txnProducer, commit bool) bool {
	found := false
	for _, log := range m.logs {
		for _, r := range log {
			if r.open == p {
				r.open, r.gone, found = nil, !commit, true
			}
		}
	}
	return found
}

func (m *transactionModel) compare(what string) {
	for _, part := range m.parts {
		st, err := m.s.State(part.ID)
		check(m.t, err)
		stable := st.HighWatermark
		for _, r := range m.logs[part.ID] {
			if r.open != nil {
				stable = min(stable, max(r.offset, st.Start))
			}
		}
		if st.StableEnd != stable || st.Start != m.start[part.ID] {
			m.t.Errorf("%s: partition %d: stable end %d, want %d; start %d, want %d", what, part.ID, st.StableEnd, stable, st.Start, m.start[part.ID])
		}
		committed, all := []string{}, []string{}
		for _, r := range m.logs[part.ID] {
			if r.offset < st.Start {
				continue
			}
			if all = append(all, r.value); r.offset < stable && !r.gone {
				committed = append(committed, r.value)
			}
		}
		for isolation, want := range map[topiclog.Isolation][]string{topiclog.Committed: committed, topiclog.CommittedRaw: committed, topiclog.Uncommitted: all} {
			if got := readWith(m.t, m.s, part.ID, isolation); !slices.Equal(got, want) {
				m.t.Errorf("%s: partition %d, isolation %d: %d records, want %d", what, part.ID, isolation, len(got), len(want))
			}
		}
	}
}
