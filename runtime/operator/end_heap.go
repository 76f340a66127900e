package operator

// sessionEnd says that a session of a key ended at an instant when it was put
// in; it may have grown since.
type sessionEnd struct {
	end int64
	key int32
}

// endHeap is a binary heap, the earliest end first.
type endHeap []sessionEnd

func (h *endHeap) push(x sessionEnd) {
	*h = append(*h, x)
	a := *h
	for i := len(a) - 1; i > 0; {
		up := (i - 1) / 2
		if a[up].end <= a[i].end {
			return
		}
		a[up], a[i] = a[i], a[up]
		i = up
	}
}

func (h *endHeap) pop() sessionEnd {
	a := *h
	top, n := a[0], len(a)-1
	a[0] = a[n]
	*h = a[:n]
	for i := 0; ; {
		least := 2*i + 1
		if least >= n {
			return top
		}
		if least+1 < n && a[least+1].end < a[least].end {
			least++
		}
		if a[i].end <= a[least].end {
			return top
		}
		a[i], a[least] = a[least], a[i]
		i = least
	}
}

// renumber takes over new numbers of the keys; entries of keys that are not there any
// more (-1) go.
func (h *endHeap) renumber(to []int32) {
	old := *h
	*h = nil
	for _, e := range old {
		if to[e.key] >= 0 {
			h.push(sessionEnd{e.end, to[e.key]})
		}
	}
}
