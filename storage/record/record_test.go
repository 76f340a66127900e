package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

var codecs = []Codec{None, Gzip, Snappy, LZ4, Zstd}

func build(t testing.TB, c Codec, n int) []byte {
	t.Helper()
	b := Builder{Codec: c}
	for i := range n {
		err := b.Append(int64(1700000000000+i*7), fmt.Appendf(nil, "key-%d", i), []byte(strings.Repeat("some text ", 1+i%5)),
			[]RecordHeader{{Key: []byte("n"), Value: fmt.Append(nil, i)}})
		if err != nil {
			t.Fatal(err)
		}
	}
	raw, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// seal makes the checksum of an altered batch right.
func seal(raw []byte) []byte {
	binary.BigEndian.PutUint32(raw[posCRC:], Checksum(raw[posAttributes:]))
	return raw
}

func TestRoundTripOfEveryCodec(t *testing.T) {
	for _, c := range codecs {
		for _, n := range []int{1, 2, 1000, 20000} {
			raw := build(t, c, n)
			b, rest, err := Split(raw)
			if err != nil || len(rest) != 0 {
				t.Fatal(c, n, err)
			}
			if n >= 1000 && b.Attributes.Codec() != c {
				t.Fatalf("%s: written as %s", c, b.Attributes.Codec())
			}
			var d Decoder
			if err := CheckRecords(b, &d); err != nil {
				t.Fatal(c, n, err)
			}
			for i, r := range collect(t, b) {
				if r.Offset != int64(i) || string(r.Key) != fmt.Sprintf("key-%d", i) || len(r.Value) != 10*(1+i%5) || r.Timestamp != int64(1700000000000+i*7) {
					t.Fatalf("%s record %d: %+v", c, i, r)
				}
			}
		}
	}
}

func TestIncompressibleStaysUncompressed(t *testing.T) {
	for _, c := range codecs[1:] {
		b := Builder{Codec: c}
		if err := b.Append(0, nil, []byte("x"), nil); err != nil {
			t.Fatal(err)
		}
		raw, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		batch, _, err := Split(raw)
		if err != nil || batch.Attributes.Codec() != None || string(collect(t, batch)[0].Value) != "x" {
			t.Fatal(c, batch.Attributes, err)
		}
	}
}

func TestBuilderIsReusable(t *testing.T) {
	for _, c := range codecs {
		b := Builder{Codec: c}
		var first []byte
		for round := range 3 {
			for i := range 500 {
				if err := b.Append(int64(i), []byte("k"), []byte("the same text again and again"), nil); err != nil {
					t.Fatal(err)
				}
			}
			raw, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			if round == 0 {
				first = bytes.Clone(raw)
			} else if !bytes.Equal(first, raw) {
				t.Fatalf("%s: round %d differs", c, round)
			}
			b.Reset()
		}
		if _, err := b.Build(); !errors.Is(err, ErrInvalid) {
			t.Fatalf("building nothing: %v", err)
		}
	}
}

func TestExtremeTimestamps(t *testing.T) {
	var b Builder
	times := []int64{math.MaxInt64, math.MinInt64, -1, 0}
	for _, ts := range times {
		if err := b.Append(ts, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	raw, _ := b.Build()
	batch, _, err := Split(raw)
	if err != nil || batch.MaxTimestamp != math.MaxInt64 {
		t.Fatal(batch.MaxTimestamp, err)
	}
	for i, r := range collect(t, batch) {
		if r.Timestamp != times[i] {
			t.Fatalf("timestamp %d, want %d", r.Timestamp, times[i])
		}
	}
}

func TestAssignKeepsTheChecksum(t *testing.T) {
	raw := build(t, Zstd, 100)
	Assign(raw, 1<<40, 12)
	b, _, err := Split(raw)
	if err != nil || b.BaseOffset != 1<<40 || b.LeaderEpoch != 12 || collect(t, b)[99].Offset != 1<<40+99 {
		t.Fatal(b.Header, err)
	}
}

func TestStampLogAppendTime(t *testing.T) {
	raw := build(t, Snappy, 50)
	StampLogAppendTime(raw, 42)
	b, _, err := Split(raw)
	if err != nil || !b.Attributes.LogAppendTime() || b.Attributes.Codec() != Snappy || b.MaxTimestamp != 42 {
		t.Fatal(b.Header, err)
	}
	for _, r := range collect(t, b) {
		if r.Timestamp != 42 {
			t.Fatalf("timestamp %d", r.Timestamp)
		}
	}
}

func TestGapsOfCompaction(t *testing.T) {
	var b Builder
	for _, delta := range []int32{0, 3, 10} {
		if err := b.AppendAt(delta, 5, nil, []byte("v"), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.AppendAt(10, 5, nil, nil, nil); !errors.Is(err, ErrInvalid) {
		t.Fatalf("same delta twice: %v", err)
	}
	raw, _ := b.Build()
	batch, _, err := Split(raw)
	if err != nil || batch.LastOffset() != 10 || batch.Count != 3 {
		t.Fatal(batch.Header, err)
	}
	if r := collect(t, batch); r[1].Offset != 3 || r[2].Offset != 10 {
		t.Fatal(r)
	}
	if err := batch.CheckProduced(); !errors.Is(err, ErrInvalid) {
		t.Fatalf("a producer may not leave gaps: %v", err)
	}
}

func TestEmptiedBatch(t *testing.T) {
	raw := build(t, None, 1)[:HeaderSize]
	binary.BigEndian.PutUint32(raw[posLength:], HeaderSize-lengthEnd)
	binary.BigEndian.PutUint32(raw[posCount:], 0)
	binary.BigEndian.PutUint32(raw[posLastDelta:], 9)
	b, _, err := Split(seal(raw))
	if err != nil || len(collect(t, b)) != 0 || b.LastOffset() != 9 {
		t.Fatal(b.Header, err)
	}
}

func TestSequenceWraps(t *testing.T) {
	h := Header{BaseSequence: math.MaxInt32 - 1, LastOffsetDelta: 3}
	if got := h.LastSequence(); got != 1 {
		t.Fatalf("got %d, want 1: sequences go from 2147483647 to 0", got)
	}
}

func TestProducedRules(t *testing.T) {
	good := func() []byte { return build(t, None, 3) }
	for name, spoil := range map[string]func(raw []byte){
		"log-append time":             func(raw []byte) { raw[posAttributes+1] |= 8 },
		"control":                     func(raw []byte) { raw[posAttributes+1] |= 0x20 },
		"transactional without id":    func(raw []byte) { raw[posAttributes+1] |= 0x10 },
		"producer id without a epoch": func(raw []byte) { binary.BigEndian.PutUint64(raw[posProducerID:], 5) },
		"offsets wider than count":    func(raw []byte) { binary.BigEndian.PutUint32(raw[posLastDelta:], 5) },
	} {
		raw := good()
		spoil(raw)
		b, _, err := Split(seal(raw))
		if err != nil {
			t.Fatal(name, err)
		}
		if err := b.CheckProduced(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	raw := good()
	binary.BigEndian.PutUint64(raw[posMaxTime:], 1)
	b, _, _ := Split(seal(raw))
	if err := CheckRecords(b, new(Decoder)); !errors.Is(err, ErrInvalid) {
		t.Errorf("wrong largest timestamp: %v", err)
	}
	want, _, _ := Split(good())
	if err := CorrectRecords(&b, new(Decoder)); err != nil || b.MaxTimestamp != want.MaxTimestamp {
		t.Errorf("putting it right: %v, %d, want %d", err, b.MaxTimestamp, want.MaxTimestamp)
	}
	if again, _, err := Split(raw); err != nil || again.Header != b.Header || !bytes.Equal(raw, good()) {
		t.Errorf("the batch is not as it should have been: %v", err)
	}
}

func TestHeaderErrors(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(raw []byte) []byte
		want  error
	}{
		"empty":           {func(raw []byte) []byte { return nil }, ErrTruncated},
		"half a header":   {func(raw []byte) []byte { return raw[:60] }, ErrTruncated},
		"half a batch":    {func(raw []byte) []byte { return raw[:len(raw)-1] }, ErrTruncated},
		"magic 1":         {func(raw []byte) []byte { raw[posMagic] = 1; return raw }, ErrMagic},
		"magic 3":         {func(raw []byte) []byte { raw[posMagic] = 3; return raw }, ErrMagic},
		"short length":    {func(raw []byte) []byte { binary.BigEndian.PutUint32(raw[posLength:], 48); return raw }, ErrCorrupt},
		"negative length": {func(raw []byte) []byte { binary.BigEndian.PutUint32(raw[posLength:], 1<<31); return raw }, ErrCorrupt},
		"negative offset": {func(raw []byte) []byte { raw[0] = 0x80; return raw }, ErrCorrupt},
		"negative count":  {func(raw []byte) []byte { raw[posCount] = 0x80; return seal(raw) }, ErrCorrupt},
		"count too large": {func(raw []byte) []byte { raw[posCount+3]++; return seal(raw) }, ErrCorrupt},
		"offset overflow": {func(raw []byte) []byte {
			binary.BigEndian.PutUint64(raw, math.MaxInt64)
			return raw
		}, ErrCorrupt},
		"codec 5":    {func(raw []byte) []byte { raw[posAttributes+1] = 5; return seal(raw) }, ErrCodec},
		"body bit":   {func(raw []byte) []byte { raw[len(raw)-1] ^= 1; return raw }, ErrChecksum},
		"crc bit":    {func(raw []byte) []byte { raw[posCRC] ^= 1; return raw }, ErrChecksum},
		"length bit": {func(raw []byte) []byte { raw[posLength+3]--; return raw }, ErrChecksum},
	} {
		in := c.spoil(build(t, None, 3))
		_, rest, err := Split(in)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if len(rest) != len(in) {
			t.Errorf("%s: took %d bytes of a bad batch", name, len(in)-len(rest))
		}
	}
}

func TestBombsAreRefused(t *testing.T) {
	for _, c := range codecs[1:] {
		b := Builder{Codec: c}
		if err := b.Append(0, nil, make([]byte, 8<<20), nil); err != nil {
			t.Fatal(err)
		}
		raw, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		batch, _, err := Split(raw)
		if err != nil {
			t.Fatal(err)
		}
		d := Decoder{MaxUnpackedBytes: 1 << 20}
		if _, err := d.Records(batch); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", c, err)
		}
		if cap(d.buf) > 2<<20 {
			t.Errorf("%s: kept %d bytes", c, cap(d.buf))
		}
		d = Decoder{MaxUnpackedBytes: 9 << 20}
		if _, err := d.Records(batch); err != nil {
			t.Errorf("%s within the bound: %v", c, err)
		}
		d.Close()
	}
}

func TestDecodingAllocatesNothingPerRecord(t *testing.T) {
	raw := build(t, None, 1000)
	var d Decoder
	var r Record
	var h RecordHeader
	allocs := testing.AllocsPerRun(20, func() {
		b, _, err := Split(raw)
		if err != nil {
			t.Fatal(err)
		}
		it, err := d.Records(b)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for it.Next(&r) {
			hs := r.Headers()
			for hs.Next(&h) {
				n++
			}
		}
		if n != 1000 || it.Err() != nil {
			t.Fatal(n, it.Err())
		}
	})
	if allocs != 0 {
		t.Fatalf("%v allocations for 1000 records", allocs)
	}
}

func TestParseCodec(t *testing.T) {
	for _, c := range codecs {
		if got, err := ParseCodec(c.String()); got != c || err != nil {
			t.Error(c, got, err)
		}
	}
	if _, err := ParseCodec("brotli"); !errors.Is(err, ErrCodec) {
		t.Error(err)
	}
}

func TestVarintLimits(t *testing.T) {
	for _, v := range []int64{0, -1, 1, 63, -64, 64, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64} {
		b := appendVarint(nil, v)
		if len(b) != varintSize(v) {
			t.Errorf("%d: size %d, want %d", v, varintSize(v), len(b))
		}
		if got, n := varlong(b, 0); got != v || n != len(b) {
			t.Errorf("varlong(%d) = %d, %d", v, got, n)
		}
		got, n := varint(b, 0)
		if fits := v >= math.MinInt32 && v <= math.MaxInt32; fits != (n > 0) || fits && int64(got) != v {
			t.Errorf("varint(%d) = %d, %d", v, got, n)
		}
		for cut := range b {
			if _, n := varlong(b[:cut], 0); n >= 0 {
				t.Errorf("varlong of %d cut to %d bytes accepted", v, cut)
			}
		}
	}
	if _, n := varlong(bytes.Repeat([]byte{0xff}, 11), 0); n >= 0 {
		t.Error("endless varint accepted")
	}
}
