package record

import (
	"encoding/binary"
	"fmt"
)

// ControlType is the kind of marker in a control batch.
type ControlType int16

// The markers that end a transaction. Others may come with newer protocol
// versions; readers skip what they do not know.
const (
	ControlAbort  ControlType = 0
	ControlCommit ControlType = 1
)

// ParseControl reads the marker from a record of a control batch: the type from
// its key and the coordinator epoch from its value.
func ParseControl(r *Record) (t ControlType, coordinatorEpoch int32, err error) {
	if len(r.Key) < 4 {
		return 0, 0, fmt.Errorf("%w: control key of %d bytes at offset %d", ErrCorrupt, len(r.Key), r.Offset)
	}
	if version := int16(binary.BigEndian.Uint16(r.Key)); version < 0 {
		return 0, 0, fmt.Errorf("%w: control key version %d at offset %d", ErrCorrupt, version, r.Offset)
	}
	t = ControlType(binary.BigEndian.Uint16(r.Key[2:]))
	if t != ControlAbort && t != ControlCommit {
		return t, 0, nil
	}
	if len(r.Value) < 6 {
		return t, 0, fmt.Errorf("%w: control value of %d bytes at offset %d", ErrCorrupt, len(r.Value), r.Offset)
	}
	return t, int32(binary.BigEndian.Uint32(r.Value[2:])), nil
}

// EndTransaction builds the control batch that ends a transaction of the given
// producer, at base offset 0.
func EndTransaction(t ControlType, producerID int64, producerEpoch int16, coordinatorEpoch int32, timestampMs int64) ([]byte, error) {
	var key [4]byte
	binary.BigEndian.PutUint16(key[2:], uint16(t))
	var value [6]byte
	binary.BigEndian.PutUint32(value[2:], uint32(coordinatorEpoch))
	var b Builder
	b.SetProducer(producerID, producerEpoch, NoSequence, true)
	b.producer.flags |= attrControl
	if err := b.Append(timestampMs, key[:], value[:], nil); err != nil {
		return nil, err
	}
	return b.Build()
}
