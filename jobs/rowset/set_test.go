package rowset

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
)

func texts(s *Set) (out []string) {
	for _, r := range s.Rows() {
		out = append(out, string(r))
	}
	return out
}

func change(k batch.Kind, row string) Change { return Change{k, json.RawMessage(row)} }

func TestChanges(t *testing.T) {
	for _, c := range []struct {
		changes []Change
		want    string
		broken  bool
	}{
		{nil, "[]", false},
		{[]Change{change(batch.Insert, "a"), change(batch.Insert, "b"), change(batch.Insert, "a")}, "[a b a]", false},
		{[]Change{change(batch.Insert, "a"), change(batch.UpdateBefore, "a"), change(batch.UpdateAfter, "b")}, "[b]", false},
		{[]Change{change(batch.Insert, "a"), change(batch.Insert, "a"), change(batch.Delete, "a")}, "[a]", false},
		{[]Change{change(batch.UpdateBefore, "a"), change(batch.UpdateAfter, "b"), change(batch.Insert, "a")}, "[b]", false},
		{[]Change{change(batch.Insert, "a"), change(batch.Delete, "b")}, "[a]", true},
	} {
		var s Set
		s.Apply(c.changes...)
		if got := fmt.Sprint(texts(&s)); got != c.want || s.Len() != len(s.Rows()) || (s.Err() != nil) != c.broken {
			t.Errorf("%v: %s, %d rows, %v; want %s", c.changes, got, s.Len(), s.Err(), c.want)
		}
	}
}

// TestAnyOrder: what changes leave does not depend on the order in which they meet.
func TestAnyOrder(t *testing.T) {
	var all []Change
	for i := range 50 {
		all = append(all, change(batch.Insert, fmt.Sprint(i)))
		if i%2 == 0 {
			all = append(all, change(batch.UpdateBefore, fmt.Sprint(i)), change(batch.UpdateAfter, "x"))
		}
	}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		var s Set
		s.Apply(all...)
		if s.Len() != 50 || s.Err() != nil {
			t.Fatalf("seed %d: %d rows, %v", seed, s.Len(), s.Err())
		}
	}
}
