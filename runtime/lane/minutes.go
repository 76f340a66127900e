package lane

import (
	"cmp"
	"slices"

	"github.com/millrace/millrace/runtime/ledger"
)

const (
	minuteMillis = 60_000
	dayMinutes   = 24 * 60
	// otherMinute stands for minutes outside log time -30 d .. +1 d.
	otherMinute int64 = -1 << 62
)

// minuteKey is a minute since 1970 UTC, of row time or of log time.
type minuteKey struct {
	kind   ledger.MinuteKind
	minute int64
}

// minutes counts rows by minute and fate.
type minutes map[minuteKey]ledger.MinuteCounts

func (m minutes) addAll(o minutes) {
	for k, c := range o {
		sum := m[k]
		sum.Add(&c)
		m[k] = sum
	}
}

// eventMinute is the minute of a row time, both times in milliseconds; a row
// time far from the log's is put into one bucket, so that a bad clock cannot
// make the ledger grow without bound.
func eventMinute(event, log int64) int64 {
	m := floorDiv(event, minuteMillis)
	if log > 0 {
		at := floorDiv(log, minuteMillis)
		if m < at-30*dayMinutes || m > at+dayMinutes {
			return otherMinute
		}
	}
	return m
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// hours folds minutes into the hours they lie in: absolute counts, old ones
// included. old gives an hour as it is now, or nil.
func (m minutes) hours(proto ledger.Hour, old func(ledger.MinuteKind, int64) *ledger.Hour) []*ledger.Hour {
	type hourKey struct {
		kind ledger.MinuteKind
		hour int64
	}
	out := map[hourKey]*ledger.Hour{}
	for k, c := range m {
		hk, minute := hourKey{k.kind, floorDiv(k.minute, 60)}, int8(k.minute-floorDiv(k.minute, 60)*60)
		if k.minute == otherMinute {
			hk.hour, minute = ledger.OtherHour, -1
		}
		h := out[hk]
		if h == nil {
			h = new(ledger.Hour)
			*h = proto
			h.Kind, h.Hour = hk.kind, hk.hour
			if o := old(hk.kind, hk.hour); o != nil {
				h.Minutes = slices.Clone(o.Minutes)
			}
			out[hk] = h
		}
		// An hour that was rolled up stays one row.
		if len(h.Minutes) == 1 && h.Minutes[0].Minute == -1 {
			minute = -1
		}
		i, ok := slices.BinarySearchFunc(h.Minutes, minute, func(x ledger.Minute, m int8) int { return cmp.Compare(x.Minute, m) })
		if !ok {
			h.Minutes = slices.Insert(h.Minutes, i, ledger.Minute{Minute: minute})
		}
		h.Minutes[i].Counts.Add(&c)
	}
	list := make([]*ledger.Hour, 0, len(out))
	for _, h := range out {
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b *ledger.Hour) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Hour, b.Hour)) })
	return list
}
