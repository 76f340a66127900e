package watermark

// Idleness decides which partitions have nothing to say. A partition is idle
// only while its position has been at the log's end for the timeout; it is
// never idle while it is read to an end (bounded) or catches up. It has no
// clock: the caller passes the time in milliseconds.
type Idleness struct {
	timeout int64
	parts   []idlePart
}

type idlePart struct {
	atEnd bool
	since int64
	idle  bool
}

// NewIdleness returns a tracker for a number of partitions; timeout 0: no
// partition is ever idle.
func NewIdleness(timeoutMillis int64, partitions int) *Idleness {
	return &Idleness{timeout: timeoutMillis, parts: make([]idlePart, partitions)}
}

// Observe says whether a partition's position is at the log's end now.
func (s *Idleness) Observe(partition int32, atEnd bool, now int64) {
	p := &s.parts[partition]
	if !atEnd {
		p.atEnd = false
		return
	}
	if !p.atEnd {
		p.atEnd, p.since = true, now
	}
}

// Due gives, appended to out, the partitions that have become idle by now and
// marks them.
func (s *Idleness) Due(now int64, out []int32) []int32 {
	if s.timeout == 0 {
		return out
	}
	for i := range s.parts {
		if p := &s.parts[i]; p.atEnd && !p.idle && now-p.since >= s.timeout {
			p.idle = true
			out = append(out, int32(i))
		}
	}
	return out
}

// Next is when the next partition may become idle, -1: none is on its way.
func (s *Idleness) Next() int64 {
	next := int64(-1)
	if s.timeout == 0 {
		return next
	}
	for i := range s.parts {
		if p := &s.parts[i]; p.atEnd && !p.idle && (next < 0 || p.since+s.timeout < next) {
			next = p.since + s.timeout
		}
	}
	return next
}

// Idle reports whether a partition is idle.
func (s *Idleness) Idle(partition int32) bool { return s.parts[partition].idle }

// Rejoined marks a partition active again.
func (s *Idleness) Rejoined(partition int32) { s.parts[partition] = idlePart{} }
