package record

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// golden reads a hex dump. The dumps were made from the format's description
// by a program that shares no code with this package.
func golden(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for line := range strings.Lines(string(text)) {
		b, err := hex.DecodeString(strings.ReplaceAll(line[9:59], " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b...)
	}
	return out
}

func TestGoldenBatch(t *testing.T) {
	var b Builder
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check(b.Append(1700000000000, []byte("key"), []byte("value"), nil))
	check(b.Append(1700000000500, nil, []byte{}, []RecordHeader{{Key: []byte("h"), Value: []byte("v")}, {Key: []byte("h")}}))
	check(b.Append(1699999999997, []byte{}, nil, nil))
	got, err := b.Build()
	check(err)
	Assign(got, 1000, 7)
	want := golden(t, "plain")
	if !bytes.Equal(got, want) {
		t.Fatalf("got\n%swant\n%s", hex.Dump(got), hex.Dump(want))
	}
	batch, rest, err := Split(want)
	check(err)
	if len(rest) != 0 || batch.BaseOffset != 1000 || batch.LastOffset() != 1002 || batch.LeaderEpoch != 7 ||
		batch.BaseTimestamp != 1700000000000 || batch.MaxTimestamp != 1700000000500 || batch.Count != 3 ||
		batch.ProducerID != NoProducerID || batch.LastSequence() != NoSequence || batch.Size() != len(want) {
		t.Fatalf("header %+v, %d bytes left", batch.Header, len(rest))
	}
	recs := collect(t, batch)
	if recs[0].Offset != 1000 || recs[2].Offset != 1002 || recs[1].Timestamp != 1700000000500 || recs[2].Timestamp != 1699999999997 {
		t.Fatalf("records %+v", recs)
	}
	if recs[1].Key != nil || recs[1].Value == nil || recs[2].Key == nil || recs[2].Value != nil {
		t.Fatal("null and empty are mixed up")
	}
	var h RecordHeader
	it := recs[1].Headers()
	if !it.Next(&h) || string(h.Key) != "h" || string(h.Value) != "v" || !it.Next(&h) || string(h.Key) != "h" || h.Value != nil || it.Next(&h) {
		t.Fatal("headers differ")
	}
}

func TestGoldenControl(t *testing.T) {
	want := golden(t, "commit")
	got, err := EndTransaction(ControlCommit, 4000, 3, 9, 1700000000000)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%v, got\n%s", err, hex.Dump(got))
	}
	b, _, err := Split(want)
	if err != nil {
		t.Fatal(err)
	}
	if !b.Attributes.Control() || !b.Attributes.Transactional() || b.ProducerID != 4000 || b.ProducerEpoch != 3 {
		t.Fatalf("header %+v", b.Header)
	}
	typ, epoch, err := ParseControl(&collect(t, b)[0])
	if typ != ControlCommit || epoch != 9 || err != nil {
		t.Fatal(typ, epoch, err)
	}
}

func TestGoldenXerial(t *testing.T) {
	out, err := unpackSnappy(nil, golden(t, "xerial"), 100)
	if err != nil || string(out) != "hello!!" {
		t.Fatalf("%q, %v", out, err)
	}
}

// collect decodes all records of a batch.
func collect(t testing.TB, b Batch) []Record {
	t.Helper()
	var d Decoder
	it, err := d.Records(b)
	if err != nil {
		t.Fatal(err)
	}
	var out []Record
	var r Record
	for it.Next(&r) {
		out = append(out, r)
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	return out
}

// TestMurmur2 uses the vectors of Kafka's own UtilsTest.
func TestMurmur2(t *testing.T) {
	for key, want := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		if got := int32(Murmur2([]byte(key))); got != want {
			t.Errorf("murmur2(%q) = %d, want %d", key, got, want)
		}
	}
	if p := PartitionOf([]byte("21"), 10); p != int(uint32(0xffffffff&(1<<32-973932308))&0x7fffffff)%10 {
		t.Errorf("partition %d", p)
	}
}

func TestChecksumIsCastagnoli(t *testing.T) {
	// The check value of CRC-32C (RFC 3720, B.4 lists its relatives).
	if got := Checksum([]byte("123456789")); got != 0xE3069283 {
		t.Fatalf("%08x", got)
	}
	if UpdateChecksum(Checksum([]byte("1234")), []byte("56789")) != 0xE3069283 {
		t.Fatal("UpdateChecksum does not continue")
	}
}
