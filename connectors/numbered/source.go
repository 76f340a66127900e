package numbered

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/runtime/connector"
)

// Source is the part of connector.Source that does not make rows; connectors embed it.
type Source struct {
	// ID names the rows: another seed, rate or schema is another id.
	ID connector.UUID
	// Table is the table's name.
	Table string
	// Rows is how many there are, connector.Unbounded: without end.
	Rows int64
	// Changed says what else another ID comes from, and Fewer that there are less
	// rows than there were: for people.
	Changed, Fewer string
}

// Partitions implements connector.Source.
func (s *Source) Partitions(context.Context) ([]connector.Partition, error) {
	return []connector.Partition{{TopicID: s.ID, Topic: s.Table}}, nil
}

// Start implements connector.Source.
func (s *Source) Start(_ context.Context, parts []connector.Partition) ([]connector.Position, error) {
	out := make([]connector.Position, len(parts))
	for i, p := range parts {
		out[i] = connector.Position{Partition: p}
	}
	return out, nil
}

// End implements connector.Source.
func (s *Source) End(_ context.Context, parts []connector.Partition) ([]int64, error) {
	out := make([]int64, len(parts))
	for i := range parts {
		out[i] = s.Rows
	}
	return out, nil
}

// Check implements connector.Source.
func (s *Source) Check(_ context.Context, saved []connector.Position) ([]error, error) {
	out := make([]error, len(saved))
	for i, p := range saved {
		if p.Partition.TopicID != s.ID || p.Partition.ID != 0 {
			out[i] = &connector.MismatchError{Position: p, Latest: s.Rows, Lost: -1, Recreated: true, Reason: s.Changed}
		} else if p.Offset > s.Rows {
			out[i] = &connector.MismatchError{Position: p, Latest: s.Rows, Lost: -1, Reason: s.Fewer}
		}
	}
	return out, nil
}

// Close implements connector.Source.
func (s *Source) Close() error { return nil }

// Split is a stretch of rows that is being made.
type Split struct {
	// Number is the lane's, Next the row to make next; End is not made.
	Number    int32
	Next, End int64
}

// Splits are the stretches of a reader.
type Splits struct {
	left []Split
	ends map[int32]int64
}

// Splits gives what a reader is to make; splits of other tables are an error.
func (s *Source) Splits(splits []connector.Split) (*Splits, error) {
	out := &Splits{ends: map[int32]int64{}}
	for _, sp := range splits {
		if sp.From.Partition.TopicID != s.ID {
			return nil, fmt.Errorf("partition %s %d is not of this table", sp.From.Partition.Topic, sp.From.Partition.ID)
		}
		end := min(sp.End, s.Rows)
		out.left = append(out.left, Split{Number: sp.Number, Next: sp.From.Offset, End: end})
		out.ends[sp.Number] = end
	}
	return out, nil
}

// Current is the first stretch with rows left, nil when all are made. Whoever makes
// rows moves its Next.
func (s *Splits) Current() *Split {
	for len(s.left) > 0 && s.left[0].Next >= s.left[0].End {
		s.left = s.left[1:]
	}
	if len(s.left) == 0 {
		return nil
	}
	return &s.left[0]
}

// End is the row behind the last one of a stretch.
func (s *Splits) End(number int32) int64 { return s.ends[number] }

// Unmade is the stretch of that number, nil when all its rows are made.
func (s *Splits) Unmade(number int32) *Split {
	for i := range s.left {
		if s.left[i].Number == number {
			return &s.left[i]
		}
	}
	return nil
}

// Clear gives the stretches up.
func (s *Splits) Clear() { s.left = nil }
