package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/state"
)

// Version is the version of the manifest's layout and of the state files beside it. Version
// 1 has state files that are read whole, and a crc32c where there is a hash now.
const Version = 2

const magic = "MRCK"

// Errors of decoding.
var (
	// ErrCorrupt is a manifest whose bytes do not hold.
	ErrCorrupt = errors.New("corrupt checkpoint manifest")
	// ErrVersion is a manifest of a later version of Millrace.
	ErrVersion = errors.New("checkpoint manifest of an unknown version")
)

// Manifest is everything that a restart of the keyed stages needs.
type Manifest struct {
	// Version is the version that was read; what is written has the newest.
	Version uint16
	Number  uint64
	// Epoch is the job epoch that wrote it.
	Epoch      uint64
	TimeMillis int64
	Scope      ledger.Scope
	Stages     []Stage
	// Cursors are the positions behind the last hand-over, by exchange output
	// and source partition, with the counts of everything below.
	Cursors []ledger.Cursor
	// Artifacts are what was sealed at this checkpoint, and every earlier one
	// whose commit was not in the ledger.
	Artifacts []connector.Artifact
	// SealedMillis is, by artefact, when it was sealed, for people.
	SealedMillis []int64
	// Dead are the result rows since the checkpoint before that no table could
	// hold.
	Dead []DeadResult
	// Emitted are the results since the job's beginning, by table.
	Emitted []ledger.Emitted
}

// Stage is one stage's saved state.
type Stage struct {
	// Name is the stage's: the paths of its operators.
	Name string
	// Watermark is what it has fired up to, in milliseconds.
	Watermark int64
	Blobs     []Blob
}

// Blob is the saved state of one subtask: a file of the checkpoint.
type Blob struct {
	Name   string
	Groups state.Range
	Bytes  int64
	// Hash is xxh64 of the whole file: the crc32c of bytes that end with their own
	// crc32c, as those of version 1 do, is the same for all.
	Hash uint64
}

// DeadResult is a result row that no table could hold.
type DeadResult struct {
	Table     connector.UUID
	TableName string
	// Stage, Subtask and Sequence, with the manifest's number, name it for
	// ever: writing it again is seen as the same entry.
	Stage                   string
	Subtask                 uint32
	Sequence                uint64
	Reason, Column, Message string
	// Row is the row as JSON.
	Row []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encode gives the manifest's bytes.
func (m *Manifest) Encode() []byte {
	b := append([]byte(nil), magic...)
	b = binary.BigEndian.AppendUint16(b, Version)
	b = binary.BigEndian.AppendUint64(b, m.Number)
	b = binary.BigEndian.AppendUint64(b, m.Epoch)
	b = binary.AppendVarint(b, m.TimeMillis)
	b = append(b, m.Scope.Job[:]...)
	b = binary.BigEndian.AppendUint32(b, m.Scope.Generation)
	b = binary.AppendUvarint(b, uint64(len(m.Stages)))
	for i := range m.Stages {
		s := &m.Stages[i]
		b = state.AppendBytes(b, s.Name)
		b = binary.AppendVarint(b, s.Watermark)
		b = binary.AppendUvarint(b, uint64(len(s.Blobs)))
		for _, x := range s.Blobs {
			b = state.AppendBytes(b, x.Name)
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(x.Groups.From)), uint64(x.Groups.To))
			b = binary.AppendUvarint(b, uint64(x.Bytes))
			b = binary.BigEndian.AppendUint64(b, x.Hash)
		}
	}
	b = m.appendFacts(b)
	b = binary.AppendUvarint(b, uint64(len(m.Dead)))
	for i := range m.Dead {
		d := &m.Dead[i]
		b = append(b, d.Table[:]...)
		b = state.AppendBytes(state.AppendBytes(b, d.TableName), d.Stage)
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(d.Subtask)), d.Sequence)
		b = state.AppendBytes(state.AppendBytes(state.AppendBytes(b, d.Reason), d.Column), d.Message)
		b = state.AppendBytes(b, d.Row)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// appendFacts appends cursors, artefacts and emitted counts as the ledger's
// records: one layout for both.
func (m *Manifest) appendFacts(b []byte) []byte {
	fact := func(f ledger.Fact) {
		r := ledger.EncodeFact(m.Scope, f)
		b = state.AppendBytes(state.AppendBytes(b, r.Key), r.Value)
	}
	b = binary.AppendUvarint(b, uint64(len(m.Cursors)))
	for i := range m.Cursors {
		fact(&m.Cursors[i])
	}
	b = binary.AppendUvarint(b, uint64(len(m.Artifacts)))
	for i := range m.Artifacts {
		var sealed int64
		if i < len(m.SealedMillis) {
			sealed = m.SealedMillis[i]
		}
		fact(m.intent(i, sealed))
	}
	b = binary.AppendUvarint(b, uint64(len(m.Emitted)))
	for i := range m.Emitted {
		fact(&m.Emitted[i])
	}
	return b
}

func (m *Manifest) intent(i int, sealed int64) *ledger.Intent {
	return &ledger.Intent{Writer: ledger.Writer{Keyed: true, Epoch: m.Epoch},
		Artifacts: []connector.Artifact{m.Artifacts[i]}, SealedMillis: sealed}
}

// Intents are the facts of the artefacts, one each.
func (m *Manifest) Intents() []*ledger.Intent {
	out := make([]*ledger.Intent, len(m.Artifacts))
	for i := range m.Artifacts {
		out[i] = m.intent(i, m.SealedMillis[i])
	}
	return out
}

// Decode reads a manifest.
func Decode(b []byte) (*Manifest, error) {
	if len(b) < len(magic)+2+4 || string(b[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: no manifest", ErrCorrupt)
	}
	version := binary.BigEndian.Uint16(b[len(magic):])
	if version == 0 || version > Version {
		return nil, fmt.Errorf("%w: %d", ErrVersion, version)
	}
	body := b[:len(b)-4]
	if binary.LittleEndian.Uint32(b[len(body):]) != crc32.Checksum(body, castagnoli) {
		return nil, fmt.Errorf("%w: checksum", ErrCorrupt)
	}
	r := state.NewReader(body[len(magic)+2:])
	m := &Manifest{Version: version, Number: r.Uint64(), Epoch: r.Uint64(), TimeMillis: r.Varint()}
	r.Fixed(m.Scope.Job[:])
	m.Scope.Generation = r.Uint32()
	m.Stages = make([]Stage, r.Count())
	for i := range m.Stages {
		s := Stage{Name: r.String(), Watermark: r.Varint()}
		s.Blobs = make([]Blob, r.Count())
		for k := range s.Blobs {
			s.Blobs[k] = Blob{Name: r.String(), Groups: state.Range{From: int(r.Uvarint()), To: int(r.Uvarint())}, Bytes: int64(r.Uvarint())}
			if version == 1 {
				s.Blobs[k].Hash = uint64(r.Uint32())
			} else {
				s.Blobs[k].Hash = r.Uint64()
			}
		}
		m.Stages[i] = s
	}
	if err := m.readFacts(r); err != nil {
		return nil, err
	}
	m.Dead = make([]DeadResult, r.Count())
	for i := range m.Dead {
		d := &m.Dead[i]
		r.Fixed(d.Table[:])
		d.TableName, d.Stage = r.String(), r.String()
		d.Subtask, d.Sequence = uint32(r.Uvarint()), r.Uvarint()
		d.Reason, d.Column, d.Message = r.String(), r.String(), r.String()
		d.Row = r.Bytes()
	}
	if r.Err() != nil || r.Rest() > 0 {
		return nil, fmt.Errorf("%w: fields", ErrCorrupt)
	}
	return m, nil
}

func (m *Manifest) readFacts(r *state.Reader) error {
	read := func(add func(ledger.Fact) bool) error {
		for range r.Count() {
			rec := ledger.Record{Key: r.Bytes(), Value: r.Bytes()}
			if r.Err() != nil {
				return fmt.Errorf("%w: fields", ErrCorrupt)
			}
			s, f, err := ledger.DecodeFact(rec)
			if err != nil {
				return fmt.Errorf("reading a fact of a manifest: %w", err)
			}
			if s != m.Scope || !add(f) {
				return fmt.Errorf("%w: a fact of another kind or job", ErrCorrupt)
			}
		}
		return nil
	}
	err := read(func(f ledger.Fact) bool {
		c, ok := f.(*ledger.Cursor)
		if ok {
			m.Cursors = append(m.Cursors, *c)
		}
		return ok
	})
	if err != nil {
		return err
	}
	err = read(func(f ledger.Fact) bool {
		in, ok := f.(*ledger.Intent)
		if !ok || len(in.Artifacts) != 1 {
			return false
		}
		a := in.Artifacts[0]
		a.Header.ID.Job, a.Header.ID.Generation = m.Scope.Job, m.Scope.Generation
		m.Artifacts, m.SealedMillis = append(m.Artifacts, a), append(m.SealedMillis, in.SealedMillis)
		return true
	})
	if err != nil {
		return err
	}
	return read(func(f ledger.Fact) bool {
		e, ok := f.(*ledger.Emitted)
		if ok {
			m.Emitted = append(m.Emitted, *e)
		}
		return ok
	})
}
