package difftest

import (
	"math/rand/v2"
	"slices"
)

// choices are what a query is made of: numbers that are drawn by chance and
// remembered, or given to write the query again. 0 is the plainest choice
// everywhere, and what is not given is 0, so that fewer and lower choices are a
// smaller query.
type choices struct {
	rng   *rand.Rand // nil: from given
	given []int
	made  []int
}

func drawn(seed, stream uint64) *choices { return &choices{rng: rand.New(rand.NewPCG(seed, stream))} }

// IntN chooses one of n numbers.
func (c *choices) IntN(n int) int {
	v := 0
	if c.rng != nil {
		v = c.rng.IntN(n)
	} else if len(c.made) < len(c.given) {
		v = min(c.given[len(c.made)], n-1)
	}
	c.made = append(c.made, v)
	return v
}

// Perm chooses an order of n numbers.
func (c *choices) Perm(n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	for i := range p {
		j := i + c.IntN(n-i)
		p[i], p[j] = p[j], p[i]
	}
	return p
}

// shrink looks for the smallest choices that still fail: it takes away stretches,
// then lowers each, as long as that helps and tries are left.
func shrink(failing []int, tries int, fails func([]int) bool) []int {
	best := failing
	try := func(c []int) bool {
		if tries == 0 {
			return false
		}
		tries--
		if !fails(c) {
			return false
		}
		best = c
		return true
	}
	for again := true; again && tries > 0; {
		again = false
		for size := max(1, len(best)/2); size > 0; size /= 2 {
			for at := 0; at+size <= len(best); {
				if try(slices.Delete(slices.Clone(best), at, at+size)) {
					again = true
				} else {
					at += size
				}
			}
		}
		for at := 0; at < len(best); at++ {
			for _, v := range []int{0, best[at] / 2, best[at] - 1} {
				if at >= len(best) || v < 0 || v >= best[at] {
					continue
				}
				lower := slices.Clone(best)
				lower[at] = v
				if try(lower) {
					again = true
					break
				}
			}
		}
	}
	return best
}
