package logictest

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/graph"
)

// newest is the last row of each key that is not deleted.
func (r *run) newest(n *graph.Node, op *graph.Normalize) (*collected, error) {
	in := r.input(n, 0)
	last := map[string]int{}
	for row := range in.n {
		key, ok, err := r.key(n, in, op.Keys, row)
		switch {
		case err != nil:
			return nil, err
		case !ok:
		case in.kinds[row] == batch.Delete:
			delete(last, string(key))
		default:
			last[string(key)] = row
		}
	}
	var rows []int
	for _, row := range last {
		rows = append(rows, row)
	}
	slices.Sort(rows)
	out, b := newCollected(n.Schema), in.batch()
	for _, row := range rows {
		out.addAt(b, int32(row), in.position[row])
	}
	return out, nil
}
