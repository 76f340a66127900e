package kafka

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/runtime/connector"
)

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

// transactionalID names the one producer of a lane, or of a subtask of a keyed
// stage, of one table of one job.
func transactionalID(prefix string, id connector.ArtifactID) string {
	b := hex.AppendEncode(append([]byte(prefix), '-'), id.Job[:])
	b = hex.AppendEncode(append(b, '-'), id.Table[:])
	if id.Keyed {
		return fmt.Sprintf("%s-k%d", b, id.Subtask)
	}
	b = hex.AppendEncode(append(b, '-'), id.Lane.Topic[:])
	return fmt.Sprintf("%s-l%d", b, id.Lane.Set)
}

// laneState is one lane's. Whoever holds sem may use the producer.
type laneState struct {
	txn string
	sem chan struct{}

	// client is nil until the producer was initialized, and after whatever went
	// wrong with it.
	client *kgo.Client
	record laneRecord
	// hanging is what was found to hang before the producer was initialized, until it is ended.
	hanging []openIn
	mend    *mend // that ends it; nil: none was begun
	ending  ending
	opened  bool
	high    point // epoch of the newest attempt of this process
	// settled: what is before it is never asked for again.
	settled point
	// sealed are the rows of artefacts that were not published yet.
	sealed    map[point][]byte
	discarded map[point]bool
	// turn is the partition of the next artefact of rows without a key.
	turn int32
}

func newLane(txn string) *laneState {
	return &laneState{txn: txn, sem: make(chan struct{}, 1), sealed: map[point][]byte{}, discarded: map[point]bool{}}
}

func (st *laneState) lock(ctx context.Context) error {
	select {
	case st.sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (st *laneState) unlock() { <-st.sem }

// drop gives the producer up. What it left open is aborted by the next one.
func (st *laneState) drop() {
	if st.client != nil {
		st.client.Close()
		st.client = nil
	}
}

// payload is what publishing an artefact takes.
type payload struct {
	// topic and commits are the ids of the topics that it is for.
	topic, commits connector.UUID
	txn            string
	rows           uint64
	// records is nil when they live in this process alone.
	records []byte
}

const (
	payloadVersion    = 1
	payloadHasRecords = 1
)

func (p *payload) encode() []byte {
	b := append(make([]byte, 0, 64+len(p.txn)+len(p.records)), payloadVersion, 0)
	if p.records != nil {
		b[1] = payloadHasRecords
	}
	b = append(b, p.topic[:]...)
	b = append(b, p.commits[:]...)
	b = appendText(b, []byte(p.txn))
	b = binary.AppendUvarint(b, p.rows)
	return append(b, p.records...)
}

func decodePayload(b []byte) (*payload, error) {
	if len(b) < 2 || b[0] != payloadVersion || b[1]&^payloadHasRecords != 0 {
		return nil, fmt.Errorf("reading the payload of an artefact: %w", errEncoding)
	}
	d := reading{b: b[2:]}
	p := &payload{topic: d.uuid(), commits: d.uuid(), txn: string(d.text()), rows: d.uvarint()}
	if has := b[1]&payloadHasRecords != 0; d.bad || has != (len(d.b) > 0) {
		return nil, fmt.Errorf("reading the payload of an artefact: %w", errEncoding)
	} else if has {
		p.records = d.b
	}
	return p, nil
}

// noValue stands for the length of a value that is not there: the record deletes
// its key.
const noValue = 1 << 63

// appendRecord adds a record to those of an artefact; a nil key is none, and so is
// a nil value.
func appendRecord(b []byte, millis int64, key, value []byte) []byte {
	b = binary.AppendVarint(b, millis)
	if key == nil {
		b = append(b, 0)
	} else {
		b = binary.AppendUvarint(b, uint64(len(key))+1)
		b = append(b, key...)
	}
	if value == nil {
		return binary.AppendUvarint(b, noValue)
	}
	return appendText(b, value)
}

// eachRecord gives the records of an artefact, which alias b.
func eachRecord(b []byte, f func(millis int64, key, value []byte)) error {
	d := reading{b: b}
	for len(d.b) > 0 {
		millis := d.varint()
		var key []byte
		if n := d.uvarint(); n > 0 {
			key = d.take(n - 1)
		}
		var value []byte
		if n := d.uvarint(); n != noValue {
			value = d.take(n)
		}
		if d.bad {
			return fmt.Errorf("reading the records of an artefact: %w", errEncoding)
		}
		f(millis, key, value)
	}
	return nil
}

func appendText(b, text []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(text)))
	return append(b, text...)
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

func (d *reading) varint() int64 {
	x, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return x
}

func (d *reading) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	out := d.b[:n:n]
	d.b = d.b[n:]
	return out
}

func (d *reading) text() []byte { return d.take(d.uvarint()) }

func (d *reading) uuid() (u connector.UUID) {
	copy(u[:], d.take(uint64(len(u))))
	return u
}

// laneRecord is what the topic of commits says of a lane.
type laneRecord struct {
	job, table connector.UUID
	lane       connector.LaneID
	keyed      bool
	subtask    uint32
	// high is the newest attempt that was opened.
	high point
	// published are the artefacts that readers see and somebody may ask for,
	// the newest last.
	published []point
}

// with is the record after another artefact; settled ones are left out.
func (r *laneRecord) with(p, settled point) laneRecord {
	out := *r
	out.published = nil
	for _, x := range r.published {
		if !x.before(settled) {
			out.published = append(out.published, x)
		}
	}
	out.published = append(out.published, p)
	return out
}

func (r *laneRecord) has(p point) bool { return slices.Contains(r.published, p) }

const recordVersion = 1

func (r *laneRecord) encode() []byte {
	b := append(make([]byte, 0, 128), recordVersion)
	b = append(b, r.job[:]...)
	b = append(b, r.table[:]...)
	if r.keyed {
		b = binary.AppendUvarint(append(b, 'k'), uint64(r.subtask))
	} else {
		b = append(append(b, 'l'), r.lane.Topic[:]...)
		b = binary.AppendUvarint(b, uint64(r.lane.Set))
	}
	b = binary.AppendUvarint(b, uint64(r.high.generation))
	b = binary.AppendUvarint(b, r.high.epoch)
	b = binary.AppendUvarint(b, uint64(len(r.published)))
	for _, p := range r.published {
		for _, x := range [...]uint64{uint64(p.generation), p.epoch, p.manifest, p.sequence} {
			b = binary.AppendUvarint(b, x)
		}
	}
	return b
}

// decodeLaneRecord refuses what it cannot read whole: it might name an artefact
// which is then published twice.
func decodeLaneRecord(b []byte) (r laneRecord, err error) {
	if len(b) == 0 || b[0] != recordVersion {
		return r, errEncoding
	}
	d := reading{b: b[1:]}
	r.job, r.table = d.uuid(), d.uuid()
	switch kind := d.take(1); {
	case d.bad:
	case kind[0] == 'k':
		r.keyed, r.subtask = true, uint32(d.uvarint())
	case kind[0] == 'l':
		r.lane.Topic = d.uuid()
		r.lane.Set = uint32(d.uvarint())
	default:
		d.bad = true
	}
	r.high.generation, r.high.epoch = uint32(d.uvarint()), d.uvarint()
	for n := d.uvarint(); n > 0 && !d.bad; n-- {
		r.published = append(r.published, point{uint32(d.uvarint()), d.uvarint(), d.uvarint(), d.uvarint()})
	}
	if d.bad || len(d.b) > 0 {
		return r, errEncoding
	}
	return r, nil
}

// jobRecord is what the topic of commits says of a job: its newest run.
type jobRecord struct {
	epoch uint64
	dir   connector.UUID // the data directory that it runs from
}

func (r jobRecord) encode() []byte {
	b := binary.AppendUvarint([]byte{recordVersion}, r.epoch)
	return append(b, r.dir[:]...)
}

func decodeJobRecord(b []byte) (r jobRecord, err error) {
	if len(b) == 0 || b[0] != recordVersion {
		return r, errEncoding
	}
	d := reading{b: b[1:]}
	r.epoch, r.dir = d.uvarint(), d.uuid()
	if d.bad || len(d.b) > 0 {
		return r, errEncoding
	}
	return r, nil
}
