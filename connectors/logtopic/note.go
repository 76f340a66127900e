package logtopic

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/offsets"
	"github.com/millrace/millrace/storage/topiclog"
)

// errEncoding says that a note or a payload is not of a version known here.
var errEncoding = errors.New("unknown encoding")

// noteVersion and payloadVersion are the first byte of each; see doc.go.
const (
	noteVersion    = 1
	payloadVersion = 1

	payloadHasBatches = 1
)

// laneKey names who writes: a lane, or a subtask of a keyed stage, of one table
// of one job. Each has its own notes, so that none waits for another to have
// them trimmed.
type laneKey struct {
	job, table connector.UUID
	lane       connector.LaneID
	keyed      bool
	subtask    uint32
}

func laneKeyOf(id connector.ArtifactID) laneKey {
	k := laneKey{job: id.Job, table: id.Table, keyed: id.Keyed}
	if id.Keyed {
		k.subtask = id.Subtask
	} else {
		k.lane = id.Lane
	}
	return k
}

// noteKey is the key's form in the log.
func (k laneKey) noteKey() string {
	b := append([]byte("sink/"), k.job[:]...)
	b = append(b, k.table[:]...)
	if k.keyed {
		b = append(b, 'k')
		return string(binary.BigEndian.AppendUint32(b, k.subtask))
	}
	b = append(b, 'l')
	b = append(b, k.lane.Topic[:]...)
	return string(binary.BigEndian.AppendUint32(b, k.lane.Set))
}

// point is where an artefact stands among those of its lane.
type point struct {
	generation uint32
	epoch      uint64
	manifest   uint64
	sequence   uint64
}

func pointOf(id connector.ArtifactID) point {
	p := point{generation: id.Generation, epoch: id.Epoch, sequence: id.Sequence}
	if id.Keyed {
		p.manifest = id.Manifest
	}
	return p
}

func (p point) before(q point) bool {
	switch {
	case p.generation != q.generation:
		return p.generation < q.generation
	case p.epoch != q.epoch:
		return p.epoch < q.epoch
	case p.manifest != q.manifest:
		return p.manifest < q.manifest
	}
	return p.sequence < q.sequence
}

// attempt is the point before all artefacts of p's epoch.
func (p point) attempt() point { return point{generation: p.generation, epoch: p.epoch} }

// encodeNote names an artefact and what it holds. Invariant 2.
func encodeNote(h *connector.Header) []byte {
	p := pointOf(h.ID)
	b := append(make([]byte, 0, 64), noteVersion)
	for _, x := range []uint64{uint64(p.generation), p.epoch, p.manifest, p.sequence, uint64(len(h.Inputs))} {
		b = binary.AppendUvarint(b, x)
	}
	for i := range h.Inputs {
		in := &h.Inputs[i]
		b = append(b, in.Topic[:]...)
		b = binary.AppendUvarint(b, uint64(uint32(in.Partition)))
		b = in.Offsets.AppendTo(b)
	}
	return b
}

// decodeNote reads the whole note: one that cannot be read might be that of an
// artefact which is then published twice.
func decodeNote(b []byte) (point, []connector.Input, error) {
	var p point
	if len(b) == 0 || b[0] != noteVersion {
		return p, nil, fmt.Errorf("reading a note: %w", errEncoding)
	}
	d := reading{b: b[1:]}
	p.generation, p.epoch, p.manifest, p.sequence = uint32(d.uvarint()), d.uvarint(), d.uvarint(), d.uvarint()
	var in []connector.Input
	for n := d.uvarint(); n > 0 && !d.bad; n-- {
		x := connector.Input{Topic: d.uuid(), Partition: int32(d.uvarint())}
		if !d.bad {
			var err error
			if x.Offsets, d.b, err = offsets.Decode(d.b); err != nil {
				return p, nil, fmt.Errorf("reading a note: %w", err)
			}
		}
		in = append(in, x)
	}
	if d.bad || len(d.b) > 0 {
		return p, nil, fmt.Errorf("reading a note: %w", errEncoding)
	}
	return p, in, nil
}

// payload is what publishing an artefact takes.
type payload struct {
	topic     topiclog.UUID
	index     int32 // of the partition in the topic
	partition topiclog.PartitionID
	rows      int64
	// batches is nil when they live in this process alone.
	batches []byte
}

func (p *payload) encode() []byte {
	b := append(make([]byte, 0, 40+len(p.batches)), payloadVersion, 0)
	if p.batches != nil {
		b[1] = payloadHasBatches
	}
	b = append(b, p.topic[:]...)
	b = binary.AppendUvarint(b, uint64(uint32(p.index)))
	b = binary.AppendUvarint(b, uint64(p.partition))
	b = binary.AppendUvarint(b, uint64(p.rows))
	return append(b, p.batches...)
}

func decodePayload(b []byte) (*payload, error) {
	if len(b) < 2 || b[0] != payloadVersion || b[1]&^payloadHasBatches != 0 {
		return nil, fmt.Errorf("reading the payload of an artefact: %w", errEncoding)
	}
	d := reading{b: b[2:]}
	p := &payload{topic: topiclog.UUID(d.uuid()), index: int32(d.uvarint()), partition: topiclog.PartitionID(d.uvarint()), rows: int64(d.uvarint())}
	has := b[1]&payloadHasBatches != 0
	if d.bad || has != (len(d.b) > 0) {
		return nil, fmt.Errorf("reading the payload of an artefact: %w", errEncoding)
	}
	if has {
		p.batches = d.b
	}
	return p, nil
}

// reading takes values off bytes; bad stays once there were too few.
type reading struct {
	b   []byte
	bad bool
}

func (d *reading) uvarint() uint64 {
	x, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return x
}

func (d *reading) uuid() (u connector.UUID) {
	if len(d.b) < len(u) {
		d.bad, d.b = true, nil
		return u
	}
	copy(u[:], d.b)
	d.b = d.b[len(u):]
	return u
}
