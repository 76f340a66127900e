package githubevents

import (
	"bytes"
	"embed"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

//go:embed job.sql ddl/*.sql data/events.ndjson.zst
var content embed.FS

// Files are the job's files: "job.sql" and "ddl/....sql".
func Files() embed.FS { return content }

// Topics are the topics, one an event type, in the order of their traffic.
var Topics = [...]string{
	"PushEvent", "CreateEvent", "PullRequestEvent", "WatchEvent", "IssueCommentEvent",
	"PullRequestReviewEvent", "DeleteEvent", "IssuesEvent", "ForkEvent", "PullRequestReviewCommentEvent",
	"MemberEvent", "ReleaseEvent", "PublicEvent", "CommitCommentEvent", "GollumEvent",
}

// Event is one event as it is produced.
type Event struct {
	Topic string
	// Value is the JSON text; it is valid until the next event.
	Value []byte
	// TimestampMillis is the event's time (a spoilt event's original one).
	TimestampMillis int64
	// Spoilt says what was done to it.
	Spoilt Spoilt
}

// Spoilt is a fault made on purpose.
type Spoilt uint8

const (
	Sound Spoilt = iota
	// Broken JSON: the text is cut in its middle.
	Broken
	// WrongType: actor.id is a word.
	WrongType
	// Late: created_at is three hours back.
	Late
)

// sliceSize is the number of events of each hour's slice.
const sliceSize = 200

// source is an event of the shipped file with the places that Generate edits.
type source struct {
	topic string
	line  []byte
	id    int64
	// idAt and timeAt are where the top-level id's digits and created_at's
	// text start; actorAt is where actor.id's digits start, actorEnd where
	// they end.
	idAt, idEnd, timeAt, actorAt, actorEnd int
	at                                     time.Time
}

const timeLayout = "2006-01-02T15:04:05Z"

var load = sync.OnceValues(func() ([]source, error) {
	packed, err := content.ReadFile("data/events.ndjson.zst")
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	raw, err := dec.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("unpacking the shipped events: %w", err)
	}
	var out []source
	for line := range bytes.Lines(raw) {
		s, err := locate(bytes.TrimRight(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("shipped event %d: %w", len(out), err)
		}
		out = append(out, s)
	}
	if len(out)%sliceSize != 0 {
		return nil, fmt.Errorf("%d shipped events are no whole slices of %d", len(out), sliceSize)
	}
	return out, nil
})

// locate finds the places to edit by the file's fixed key order.
func locate(line []byte) (s source, err error) {
	s.line = line
	after := func(from int, mark string) int {
		i := bytes.Index(line[from:], []byte(mark))
		if i < 0 {
			err = fmt.Errorf("no %s", mark)
			return 0
		}
		return from + i + len(mark)
	}
	s.idAt = after(0, `{"id":"`)
	s.idEnd = s.idAt + bytes.IndexByte(line[s.idAt:], '"')
	typeAt := after(s.idEnd, `"type":"`)
	s.topic = string(line[typeAt : typeAt+bytes.IndexByte(line[typeAt:], '"')])
	s.actorAt = after(typeAt, `"actor":{"id":`)
	s.actorEnd = s.actorAt + bytes.IndexByte(line[s.actorAt:], ',')
	const mark = `"public":true,"created_at":"`
	i := bytes.LastIndex(line, []byte(mark))
	if i < 0 && err == nil {
		err = fmt.Errorf("no %s", mark)
	}
	if err != nil {
		return s, err
	}
	s.timeAt = i + len(mark)
	if s.id, err = strconv.ParseInt(string(line[s.idAt:s.idEnd]), 10, 64); err != nil {
		return s, err
	}
	s.at, err = time.Parse(timeLayout, string(line[s.timeAt:s.timeAt+len(timeLayout)]))
	return s, err
}

// Options says what Generate makes.
type Options struct {
	// Events is how many; they are whole events spread over all hours.
	Events int
	// Spoil makes about one event in 400 faulty, by turns.
	Spoil bool
}

// spoilEvery is prime, so that the faults wander over topics and hours.
const spoilEvery = 131

// Generate calls emit with each event in order.
func Generate(o Options, emit func(Event) error) error {
	events, err := load()
	if err != nil {
		return err
	}
	slices := len(events) / sliceSize
	n := 0
	var buf []byte
	for h := range slices {
		// This hour's share; the last hour takes the rest.
		share := o.Events / slices
		if h == slices-1 {
			share = o.Events - share*(slices-1)
		}
		repeats := (share + sliceSize - 1) / sliceSize
		// Repeats lie a few seconds apart, and all within fifty minutes.
		step := 4 * time.Second
		if repeats > 750 {
			step = 50 * time.Minute / time.Duration(repeats)
		}
		for i := range share {
			s, r := &events[h*sliceSize+i%sliceSize], i/sliceSize
			ev := Event{Topic: s.topic}
			at := s.at.Add((time.Duration(r) * step).Truncate(time.Second))
			ev.TimestampMillis = at.UnixMilli()
			if o.Spoil && n%spoilEvery == spoilEvery-1 {
				ev.Spoilt = Spoilt(1 + n/spoilEvery%3)
			}
			buf = s.appendTo(buf[:0], int64(r), at, ev.Spoilt)
			ev.Value = buf
			if err := emit(ev); err != nil {
				return err
			}
			n++
		}
	}
	return nil
}

// idStride keeps the ids of all repeats distinct: the shipped ids span less.
const idStride = 100_000_000

func (s *source) appendTo(b []byte, repeat int64, at time.Time, spoilt Spoilt) []byte {
	if spoilt == Late {
		at = at.Add(-3 * time.Hour)
	}
	b = append(b, s.line[:s.idAt]...)
	b = strconv.AppendInt(b, s.id+repeat*idStride, 10)
	if spoilt == WrongType {
		b = append(b, s.line[s.idEnd:s.actorAt]...)
		b = append(b, `"unknown"`...)
		b = append(b, s.line[s.actorEnd:s.timeAt]...)
	} else {
		b = append(b, s.line[s.idEnd:s.timeAt]...)
	}
	b = at.UTC().AppendFormat(b, timeLayout)
	b = append(b, s.line[s.timeAt+len(timeLayout):]...)
	if spoilt == Broken {
		b = b[:len(b)/2]
	}
	return b
}
