package rowset

import (
	"encoding/json"
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
)

// Change is a row with what becomes of it.
type Change struct {
	Kind batch.Kind
	// Row is a JSON object; whoever applies the change gives it away.
	Row json.RawMessage
}

// Set is the rows that changes leave. The zero value is empty and ready.
type Set struct {
	rows []json.RawMessage // nil where one was taken away
	at   map[string][]int  // places of equal rows
	// owed are rows that were taken away before they came: changes of several
	// writers meet in any order.
	owed  map[string]int
	count int
}

// Apply does changes in order.
func (s *Set) Apply(changes ...Change) {
	for _, c := range changes {
		switch c.Kind {
		case batch.UpdateBefore, batch.Delete:
			s.take(c.Row)
		default:
			s.put(c.Row)
		}
	}
}

func (s *Set) put(row json.RawMessage) {
	if n := s.owed[string(row)]; n > 0 {
		if s.owed[string(row)] = n - 1; n == 1 {
			delete(s.owed, string(row))
		}
		return
	}
	if s.at == nil {
		s.at = map[string][]int{}
	}
	s.at[string(row)] = append(s.at[string(row)], len(s.rows))
	s.rows = append(s.rows, row)
	s.count++
}

func (s *Set) take(row json.RawMessage) {
	places := s.at[string(row)]
	if len(places) == 0 {
		if s.owed == nil {
			s.owed = map[string]int{}
		}
		s.owed[string(row)]++
		return
	}
	last := len(places) - 1
	s.rows[places[last]] = nil
	s.count--
	if s.at[string(row)] = places[:last]; last == 0 {
		delete(s.at, string(row))
	}
}

// Len is the number of rows that are left.
func (s *Set) Len() int { return s.count }

// Rows are the rows that are left, in the order in which they came.
func (s *Set) Rows() []json.RawMessage {
	out := make([]json.RawMessage, 0, s.count)
	for _, r := range s.rows {
		if r != nil {
			out = append(out, r)
		}
	}
	return out
}

// Err says that a row was taken away that never came.
func (s *Set) Err() error {
	n, one := 0, ""
	for row, times := range s.owed {
		n, one = n+times, row
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d rows were taken back that never came, one is %s", n, one)
}
