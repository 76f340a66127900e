package kafkaproto

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/storage/topiclog"
)

func topicNo(n byte) topiclog.UUID { return topiclog.UUID{n} }

func taker(name string, topics ...byte) *assignee {
	a := &assignee{name: name, topics: map[topiclog.UUID]bool{}}
	for _, t := range topics {
		a.topics[topicNo(t)] = true
	}
	return a
}

func (m *assignee) String() string {
	s := m.name + ":"
	for _, p := range m.got.sorted() {
		s += fmt.Sprintf(" %d/%d", p.topic[0], p.index)
	}
	return s
}

func TestRangeAssignor(t *testing.T) {
	// Topics with equally many partitions fall to members alike; the first members
	// take what does not divide.
	members := []*assignee{taker("b", 1, 2), taker("a", 1, 2), taker("c", 2)}
	shareOut(assignorRange, members, map[topiclog.UUID]int32{topicNo(1): 3, topicNo(2): 3})
	var got []string
	for _, m := range members {
		got = append(got, m.String())
	}
	slices.Sort(got)
	if want := []string{"a: 1/0 1/1 2/0", "b: 1/2 2/1", "c: 2/2"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestUniformAssignor checks, over random groups and changes of them: each
// partition that somebody can take is taken once and by somebody who may; loads
// differ by one at most among members with the same subscription; and no more
// partitions move than the change asks for where all subscribe to the same.
func TestUniformAssignor(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for round := range 300 {
		same := round%2 == 0
		partitions := map[topiclog.UUID]int32{}
		for i := range byte(1 + rng.IntN(4)) {
			partitions[topicNo(i)] = int32(1 + rng.IntN(9))
		}
		var members []*assignee
		join := func() {
			m := taker(fmt.Sprintf("m%02d", rng.IntN(1000)))
			for topic := range partitions {
				if same || rng.IntN(2) == 0 {
					m.topics[topic] = true
				}
			}
			members = append(members, m)
		}
		for range 1 + rng.IntN(5) {
			join()
		}
		for step := range 6 {
			before := map[topicPart]*assignee{}
			for _, m := range members {
				m.had = m.got
				for p := range m.got {
					before[p] = m
				}
			}
			shareOut(assignorUniform, members, partitions)
			where := fmt.Sprintf("seed %d, round %d, step %d: %v", seed, round, step, members)
			checkShares(t, where, members, partitions)
			if same {
				checkMoves(t, where, members, before)
			}
			if rng.IntN(2) == 0 || len(members) == 1 {
				join()
			} else {
				members = slices.Delete(members, 0, 1)
			}
		}
	}
}

func checkShares(t *testing.T, where string, members []*assignee, partitions map[topiclog.UUID]int32) {
	t.Helper()
	owner := map[topicPart]string{}
	for _, m := range members {
		for p := range m.got {
			if owner[p] != "" || !m.topics[p.topic] || p.index >= partitions[p.topic] {
				t.Fatalf("%s: %v is wrong", where, p)
			}
			owner[p] = m.name
		}
	}
	for topic, n := range partitions {
		wanted := slices.ContainsFunc(members, func(m *assignee) bool { return m.topics[topic] })
		for i := range n {
			if (owner[topicPart{topic, i}] != "") != wanted {
				t.Fatalf("%s: partition %d of %d: owner %q", where, i, topic[0], owner[topicPart{topic, i}])
			}
		}
	}
	for _, a := range members {
		for _, b := range members {
			if maps.Equal(a.topics, b.topics) && len(a.got) > len(b.got)+1 {
				t.Fatalf("%s: %d and %d partitions with the same subscription", where, len(a.got), len(b.got))
			}
		}
	}
}

// checkMoves: with equal subscriptions, a partition leaves a member that stays only
// for one that has gained no more than its share.
func checkMoves(t *testing.T, where string, members []*assignee, before map[topicPart]*assignee) {
	t.Helper()
	for _, m := range members {
		lost, gained := 0, 0
		for p := range m.had {
			if !m.got.has(p) {
				lost++
			}
		}
		for p := range m.got {
			if !m.had.has(p) {
				gained++
			}
		}
		if lost > 0 && gained > 0 {
			t.Fatalf("%s: %s lost %d partitions and gained %d", where, m.name, lost, gained)
		}
	}
}

func BenchmarkUniformAssignor(b *testing.B) {
	partitions := map[topiclog.UUID]int32{}
	for i := range 100 {
		partitions[topicNo(byte(i))] = 100
	}
	var members []*assignee
	for i := range 200 {
		m := taker(fmt.Sprint(i))
		for topic := range partitions {
			m.topics[topic] = true
		}
		members = append(members, m)
	}
	for b.Loop() {
		for _, m := range members {
			m.had = nil
		}
		shareOut(assignorUniform, members, partitions)
	}
}
