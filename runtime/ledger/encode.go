package ledger

import (
	"github.com/millrace/millrace/runtime/connector"
)

func (f *Start) kind() kind                { return kindStart }
func (f *Start) appendKey(b []byte) []byte { return b }
func (f *Start) appendFields(b []byte) []byte {
	return appendVarint(appendU64(b, f.Epoch), f.TimeMillis)
}

func (f *Table) kind() kind                { return kindTable }
func (f *Table) appendKey(b []byte) []byte { return append(b, f.Name...) }
func (f *Table) appendFields(b []byte) []byte {
	b = append(b, f.ID[:]...)
	b = append(b, boolByte(f.Exchange))
	b = appendUvarint(b, uint64(len(f.Feeds)))
	for _, s := range f.Feeds {
		b = appendString(b, s)
	}
	return b
}

func (f *Lane) kind() kind                { return kindLane }
func (f *Lane) appendKey(b []byte) []byte { return appendLane(b, f.ID) }
func (f *Lane) appendFields(b []byte) []byte {
	b = appendString(appendString(b, f.Topic), f.Source)
	b = appendUvarint(b, uint64(len(f.Partitions)))
	for _, p := range f.Partitions {
		b = appendUvarint(b, uint64(uint32(p)))
	}
	return append(b, boolByte(f.Retired)|boolByte(f.Later)<<1)
}

func (f *Open) kind() kind                { return kindOpen }
func (f *Open) appendKey(b []byte) []byte { return appendU64(appendLane(b, f.Lane), f.Epoch) }
func (f *Open) appendFields(b []byte) []byte {
	b = appendVarint(appendU64(b, f.Fingerprint), f.TimeMillis)
	if len(f.Ends) == 0 {
		return b
	}
	b = appendPartitionOffsets(b, f.Ends)
	return appendU64(b, f.EndsBy)
}

func appendPartitionOffsets(b []byte, list []PartitionOffset) []byte {
	b = appendUvarint(b, uint64(len(list)))
	for _, p := range list {
		b = appendInt(appendUvarint(b, uint64(uint32(p.Partition))), p.Offset)
	}
	return b
}

func (d *decoder) partitionOffsets() (list []PartitionOffset) {
	for range d.count() {
		list = append(list, PartitionOffset{int32(d.uvarint()), d.int64()})
	}
	return list
}

func (f *Cursor) kind() kind { return kindCursor }
func (f *Cursor) appendKey(b []byte) []byte {
	b = append(append(b, f.Output[:]...), f.Topic[:]...)
	return appendU64(appendU32(b, uint32(f.Partition)), f.Epoch)
}
func (f *Cursor) appendFields(b []byte) []byte {
	b = appendLane(b, f.Lane)
	b = appendInt(b, f.Offset)
	b = appendVarint(b, int64(f.LeaderEpoch))
	b = appendVarint(b, f.Watermark)
	b = appendCounts(b, &f.Counts)
	return f.LostRanges.AppendTo(b)
}

func (f *Hour) kind() kind { return kindHour }
func (f *Hour) appendKey(b []byte) []byte {
	b = append(append(b, f.Output[:]...), f.Topic[:]...)
	b = append(appendU32(b, uint32(f.Partition)), byte(f.Kind))
	return appendU64(appendU64(b, uint64(f.Hour)), f.Epoch)
}
func (f *Hour) appendFields(b []byte) []byte {
	b = appendLane(b, f.Lane)
	b = appendUvarint(b, uint64(len(f.Minutes)))
	for i := range f.Minutes {
		b = append(b, byte(f.Minutes[i].Minute))
		for _, x := range f.Minutes[i].Counts {
			b = appendInt(b, x)
		}
	}
	return b
}

func (f *Head) kind() kind { return kindHead }
func (f *Head) appendKey(b []byte) []byte {
	return appendU64(appendLane(append(b, f.Output[:]...), f.Lane), f.Epoch)
}
func (f *Head) appendFields(b []byte) []byte {
	return appendVarint(appendPartitionOffsets(b, f.Next), f.OldestAgeMillis)
}

func (f *Intent) kind() kind                { return kindIntent }
func (f *Intent) appendKey(b []byte) []byte { return appendID(b, f.ID()) }
func (f *Intent) appendFields(b []byte) []byte {
	b = appendWriter(b, f.Writer)
	b = appendVarint(b, f.SealedMillis)
	b = appendUvarint(b, uint64(len(f.Artifacts)))
	for i := range f.Artifacts {
		a := &f.Artifacts[i]
		b = appendID(b, a.Header.ID)
		b = appendString(b, a.Header.TablePartition)
		b = appendInt(b, a.Header.Rows)
		b = appendU64(appendU64(b, a.Header.RowHash), a.Header.SchemaHash)
		b = appendVarint(appendVarint(b, a.Header.MinEventTime), a.Header.MaxEventTime)
		b = appendInt(b, a.Bytes)
		b = appendString(b, a.Location)
		b = appendString(b, string(a.Payload))
		inputs := a.Header.Inputs
		if len(f.Artifacts) == 1 {
			inputs = nil // those of the intent
		}
		b = appendUvarint(b, uint64(len(inputs)))
		for _, in := range inputs {
			b = append(b, in.Topic[:]...)
			b = appendUvarint(b, uint64(uint32(in.Partition)))
			b = in.Offsets.AppendTo(b)
		}
	}
	b = appendUvarint(b, uint64(len(f.Inputs)))
	for i := range f.Inputs {
		b = f.Inputs[i].appendTo(b)
	}
	b = appendUvarint(b, uint64(len(f.Minutes)))
	for i := range f.Minutes {
		m := &f.Minutes[i]
		b = appendVarint(append(b, byte(m.Kind)), m.Minute)
		for _, x := range m.Counts {
			b = appendInt(b, x)
		}
	}
	return f.appendHomes(b)
}

// appendHomes says where the artefacts lie: nothing for a table with one home.
func (f *Intent) appendHomes(b []byte) []byte {
	some := f.Rewrite
	for i := range f.Artifacts {
		some = some || f.Artifacts[i].Home != 0
	}
	if !some {
		return b
	}
	b = append(b, boolByte(f.Rewrite))
	for i := range f.Artifacts {
		b = append(b, f.Artifacts[i].Home)
	}
	return b
}

func (f *Intent) decodeHomes(v *decoder) {
	if len(v.b) == 0 {
		return
	}
	f.Rewrite = v.byte() == 1
	for i := range f.Artifacts {
		f.Artifacts[i].Home = v.byte()
		v.bad = v.bad || f.Artifacts[i].Home >= connector.Homes
	}
}

func (f *Switch) kind() kind                { return kindSwitch }
func (f *Switch) appendKey(b []byte) []byte { return appendU32(append(b, f.Table[:]...), f.Number) }
func (f *Switch) appendFields(b []byte) []byte {
	return appendString(appendVarint(append(b, f.To, boolByte(f.Edge)), f.TimeMillis), f.Reason)
}

func (f *Moved) kind() kind { return kindMoved }
func (f *Moved) appendKey(b []byte) []byte {
	return append(appendU32(append(b, f.Table[:]...), f.Number), f.TablePartition...)
}
func (f *Moved) appendFields(b []byte) []byte {
	b = append(b, f.To, boolByte(f.Retracted))
	b = appendUvarint(b, uint64(len(f.IDs)))
	for _, id := range f.IDs {
		b = appendID(b, id)
	}
	return b
}

func (in *Input) appendTo(b []byte) []byte {
	b = append(b, in.Topic[:]...)
	b = appendUvarint(b, uint64(uint32(in.Partition)))
	b = in.Offsets.AppendTo(b)
	b = append(appendUvarint(b, uint64(in.Odd.n)), in.Odd.packed...)
	return b
}

func (f *Outcome) kind() kind { return kindOutcome }
func (f *Outcome) appendKey(b []byte) []byte {
	return appendWriter(appendID(b, f.ID), f.Writer)
}
func (f *Outcome) appendFields(b []byte) []byte {
	return appendString(appendVarint(append(b, byte(f.Result)), f.TimeMillis), f.Reason)
}

func (f *Close) kind() kind { return kindClose }
func (f *Close) appendKey(b []byte) []byte {
	return append(append(b, f.Table[:]...), f.TablePartition...)
}
func (f *Close) appendFields(b []byte) []byte {
	b = append(b, byte(f.Step))
	b = appendUvarint(b, uint64(f.Version))
	b = appendVarint(b, f.TimeMillis)
	b = appendUvarint(b, uint64(len(f.Bounds)))
	for _, x := range f.Bounds {
		b = append(b, x.Topic[:]...)
		b = appendInt(appendUvarint(b, uint64(uint32(x.Partition))), x.Offset)
	}
	return b
}

func (f *Publishing) kind() kind                { return kindPublishing }
func (f *Publishing) appendKey(b []byte) []byte { return appendU64(appendU64(b, f.Manifest), f.Epoch) }
func (f *Publishing) appendFields(b []byte) []byte {
	b = appendUvarint(b, uint64(len(f.IDs)))
	for _, id := range f.IDs {
		b = appendID(b, id)
	}
	return b
}

func (f *Emitted) kind() kind                { return kindEmitted }
func (f *Emitted) appendKey(b []byte) []byte { return append(b, f.Table[:]...) }
func (f *Emitted) appendFields(b []byte) []byte {
	b = appendU64(appendU64(b, f.Epoch), f.Manifest)
	return appendTallies(appendInt(b, f.Rows), f.Dead)
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// decode reads a fact of a kind from the rest of its key and its fields; nil:
// unknown kind.
func decode(k kind, key, v *decoder) Fact {
	switch k {
	case kindStart:
		return &Start{Epoch: v.u64(), TimeMillis: v.varint()}
	case kindTable:
		f := &Table{Name: key.rest(), ID: v.uuid(), Exchange: v.byte() == 1}
		for range v.count() {
			f.Feeds = append(f.Feeds, v.string())
		}
		return f
	case kindLane:
		f := &Lane{ID: key.lane(), Topic: v.string(), Source: v.string()}
		for range v.count() {
			f.Partitions = append(f.Partitions, int32(v.uvarint()))
		}
		flags := v.byte()
		f.Retired, f.Later = flags&1 != 0, flags&2 != 0
		return f
	case kindOpen:
		f := &Open{Lane: key.lane(), Epoch: key.u64(), Fingerprint: v.u64(), TimeMillis: v.varint()}
		if len(v.b) > 0 {
			f.Ends, f.EndsBy = v.partitionOffsets(), v.u64()
		}
		return f
	case kindCursor:
		f := &Cursor{Output: key.uuid(), Topic: key.uuid(), Partition: int32(key.u32()), Epoch: key.u64()}
		f.Lane, f.Offset, f.LeaderEpoch, f.Watermark = v.lane(), v.int64(), int32(v.varint()), v.varint()
		f.Counts, f.LostRanges = v.counts(), v.set()
		return f
	case kindHour:
		return decodeHour(key, v)
	case kindHead:
		f := &Head{Output: key.uuid(), Lane: key.lane(), Epoch: key.u64()}
		f.Next = v.partitionOffsets()
		f.OldestAgeMillis = v.varint()
		return f
	case kindIntent:
		return decodeIntent(key, v)
	case kindOutcome:
		f := &Outcome{ID: key.id(), Writer: key.writer()}
		f.Result, f.TimeMillis, f.Reason = Result(v.byte()), v.varint(), v.string()
		return f
	case kindClose:
		f := &Close{Table: key.uuid(), TablePartition: key.rest()}
		f.Step, f.Version, f.TimeMillis = CloseStep(v.byte()), uint32(v.uvarint()), v.varint()
		for range v.count() {
			f.Bounds = append(f.Bounds, Bound{v.uuid(), int32(v.uvarint()), v.int64()})
		}
		return f
	case kindPublishing:
		f := &Publishing{Manifest: key.u64(), Epoch: key.u64()}
		for range v.count() {
			f.IDs = append(f.IDs, v.id())
		}
		return f
	case kindSwitch:
		return &Switch{Table: key.uuid(), Number: key.u32(), To: v.byte(), Edge: v.byte() == 1, TimeMillis: v.varint(), Reason: v.string()}
	case kindMoved:
		f := &Moved{Table: key.uuid(), Number: key.u32(), TablePartition: key.rest(), To: v.byte(), Retracted: v.byte() == 1}
		for range v.count() {
			f.IDs = append(f.IDs, v.id())
		}
		return f
	case kindEmitted:
		return &Emitted{Table: key.uuid(), Epoch: v.u64(), Manifest: v.u64(), Rows: v.int64(), Dead: v.tallies()}
	}
	return nil
}

func decodeHour(key, v *decoder) *Hour {
	f := &Hour{Output: key.uuid(), Topic: key.uuid(), Partition: int32(key.u32()), Kind: MinuteKind(key.byte())}
	f.Hour, f.Epoch = int64(key.u64()), key.u64()
	f.Lane = v.lane()
	for range v.count() {
		m := Minute{Minute: int8(v.byte())}
		for i := range m.Counts {
			m.Counts[i] = v.int64()
		}
		f.Minutes = append(f.Minutes, m)
	}
	return f
}

func decodeIntent(key, v *decoder) *Intent {
	id := key.id()
	f := &Intent{Writer: v.writer(), SealedMillis: v.varint()}
	for range v.count() {
		var a connector.Artifact
		a.Header.ID = v.id()
		a.Header.TablePartition = v.string()
		a.Header.Rows = v.int64()
		a.Header.RowHash, a.Header.SchemaHash = v.u64(), v.u64()
		a.Header.MinEventTime, a.Header.MaxEventTime = v.varint(), v.varint()
		a.Bytes, a.Location, a.Payload = v.int64(), v.string(), v.bytes()
		for range v.count() {
			a.Header.Inputs = append(a.Header.Inputs,
				connector.Input{Topic: v.uuid(), Partition: int32(v.uvarint()), Offsets: v.set()})
		}
		f.Artifacts = append(f.Artifacts, a)
	}
	if len(f.Artifacts) == 0 || f.Artifacts[0].Header.ID != id {
		v.bad = true
		f.Artifacts = make([]connector.Artifact, 1)
	}
	for range v.count() {
		in := Input{Topic: v.uuid(), Partition: int32(v.uvarint()), Offsets: v.set(), Odd: v.odds()}
		f.Inputs = append(f.Inputs, in)
	}
	for range v.count() {
		m := MinuteSum{Kind: MinuteKind(v.byte()), Minute: v.varint()}
		for i := range m.Counts {
			m.Counts[i] = v.int64()
		}
		f.Minutes = append(f.Minutes, m)
	}
	if len(f.Artifacts) == 1 {
		f.Artifacts[0].Header.Inputs = f.headerInputs()
	}
	f.decodeHomes(v)
	return f
}

func (f *Intent) headerInputs() []connector.Input {
	var out []connector.Input
	for i := range f.Inputs {
		in := &f.Inputs[i]
		out = append(out, connector.Input{Topic: in.Topic, Partition: in.Partition, Offsets: in.Offsets})
	}
	return out
}

// keyOf is the key of a fact alone.
func keyOf(s Scope, f Fact) []byte {
	return f.appendKey(appendScope(make([]byte, 0, 96), f.kind(), s))
}
