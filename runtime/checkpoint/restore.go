package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/runtime/ledger"
)

// AbandonedError says that results of checkpoints above the one that could be
// restored may already be visible: restoring it would publish them twice.
type AbandonedError struct {
	// Restorable is the newest checkpoint that can be read, 0: none.
	Restorable uint64
	// Above began to be published.
	Above []*ledger.Publishing
	// Unreadable are why the newer ones cannot be read.
	Unreadable []error
}

func (e *AbandonedError) Error() string {
	var b strings.Builder
	if e.Restorable == 0 {
		b.WriteString("no checkpoint can be read")
	} else {
		fmt.Fprintf(&b, "the newest checkpoint that can be read is %d", e.Restorable)
	}
	b.WriteString(", but results of later ones began to be published:")
	for i, p := range e.Above {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " checkpoint %d (%d artefacts)", p.Manifest, len(p.IDs))
	}
	for _, err := range e.Unreadable {
		fmt.Fprintf(&b, "; %v", err)
	}
	if e.Restorable == 0 {
		b.WriteString("; restore the checkpoints' directory, or start a new generation with --fresh")
	} else {
		fmt.Fprintf(&b, "; --discard-after %d goes on from there, and results that are visible already come a second time", e.Restorable)
	}
	return b.String()
}

// Restored is what a restart goes on from.
type Restored struct {
	// Manifest is nil at the first start.
	Manifest *Manifest
	// Kept are the complete checkpoints up to Manifest, ascending; Newer are
	// those above it, which could not be read or are given up.
	Kept, Newer []uint64
	// Next is a number above every one that was ever used.
	Next uint64
}

// Restore finds the newest checkpoint whose files all hold, which take finds out: it reads
// the state of a candidate into operators, and is called again, with an older one, where a
// file is damaged (*DamagedError). So all is read once. An older checkpoint than the newest
// is good only if nothing above it began to be published, or if it is discardAfter (0:
// none), by which somebody gives up everything above it.
func Restore(ctx context.Context, s Store, book *ledger.Book, discardAfter uint64, take func(*Candidate) error) (*Restored, error) {
	all, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	out := &Restored{Next: 1}
	if len(all) > 0 {
		out.Next = all[len(all)-1] + 1
	}
	for _, p := range book.Publishing(0) {
		out.Next = max(out.Next, p.Manifest+1)
	}
	var unreadable []error
	for i := len(all) - 1; i >= 0 && out.Manifest == nil; i-- {
		if discardAfter > 0 && all[i] > discardAfter {
			out.Newer = append(out.Newer, all[i])
			continue
		}
		m, err := readManifest(ctx, s, all[i], book.Scope())
		if errors.Is(err, ErrVersion) {
			return nil, fmt.Errorf("checkpoint %d: %w", all[i], err)
		}
		if err == nil {
			err = take(&Candidate{m, s, ctx})
			var damaged *DamagedError
			if err != nil && !errors.As(err, &damaged) {
				return nil, err
			}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			unreadable = append(unreadable, fmt.Errorf("checkpoint %d: %w", all[i], err))
			out.Newer = append(out.Newer, all[i])
			continue
		}
		out.Manifest, out.Kept = m, all[:i+1]
	}
	slices.Reverse(out.Newer)
	number := uint64(0)
	if out.Manifest != nil {
		number = out.Manifest.Number
	}
	if discardAfter > 0 && number != discardAfter {
		return nil, fmt.Errorf("%w: %d, after which all others were to be given up; the newest that can be read is %d", ErrNotExist, discardAfter, number)
	}
	if above := book.Publishing(number); len(above) > 0 && discardAfter == 0 {
		return nil, &AbandonedError{Restorable: number, Above: above, Unreadable: unreadable}
	}
	if out.Manifest == nil && len(unreadable) > 0 {
		// Nothing was published, but positions may have moved: what the ledger
		// counts as folded is in these checkpoints alone.
		return nil, errors.Join(unreadable...)
	}
	return out, nil
}

func readManifest(ctx context.Context, s Store, n uint64, scope ledger.Scope) (*Manifest, error) {
	b, err := s.Read(ctx, n, ManifestFile)
	if err != nil {
		return nil, err
	}
	m, err := Decode(b)
	if err != nil {
		return nil, err
	}
	if m.Number != n || m.Scope != scope {
		return nil, fmt.Errorf("%w: it is of checkpoint %d of another place", ErrCorrupt, m.Number)
	}
	return m, nil
}
