package record

import (
	"bytes"
	"testing"
)

// FuzzDecode feeds arbitrary bytes, once as they are and once with a right
// checksum, so that the records behind it are reached.
func FuzzDecode(f *testing.F) {
	for _, c := range codecs {
		f.Add(build(f, c, 40))
	}
	f.Add(golden(f, "plain"))
	f.Add(golden(f, "commit"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		decode(t, data)
		if len(data) >= HeaderSize {
			decode(t, seal(bytes.Clone(data)))
		}
	})
}

func decode(t *testing.T, data []byte) {
	d := Decoder{MaxUnpackedBytes: 1 << 20}
	defer d.Close()
	for rest := data; len(rest) > 0; {
		b, after, err := Split(rest)
		if err != nil {
			return
		}
		if len(rest)-len(after) != b.Size() {
			t.Fatalf("took %d bytes for a batch of %d", len(rest)-len(after), b.Size())
		}
		rest = after
		it, err := d.Records(b)
		if err != nil {
			continue
		}
		var r Record
		n, prev := int32(0), b.BaseOffset-1
		for it.Next(&r) {
			if r.Offset <= prev || r.Offset > b.LastOffset() {
				t.Fatalf("offset %d after %d in %d to %d", r.Offset, prev, b.BaseOffset, b.LastOffset())
			}
			prev = r.Offset
			n++
			hs, count := r.Headers(), 0
			var h RecordHeader
			for hs.Next(&h) {
				count++
			}
			if count != r.HeaderCount {
				t.Fatalf("%d headers of %d", count, r.HeaderCount)
			}
			if b.Attributes.Control() {
				_, _, _ = ParseControl(&r)
			}
		}
		if it.Err() == nil && n != b.Count {
			t.Fatalf("%d records of %d", n, b.Count)
		}
		if cap(d.buf) > 2<<20 {
			t.Fatalf("buffer of %d bytes", cap(d.buf))
		}
	}
}

// FuzzBuild checks that what the Builder takes comes back the same.
func FuzzBuild(f *testing.F) {
	f.Add([]byte("key"), []byte("value"), int64(5), uint8(4))
	f.Add([]byte{}, []byte{}, int64(-1), uint8(0))
	f.Fuzz(func(t *testing.T, key, value []byte, ts int64, codec uint8) {
		b := Builder{Codec: Codec(codec % 5)}
		for i := range int64(3) {
			if err := b.Append(ts*i, key, value, []RecordHeader{{Key: value, Value: key}}); err != nil && value != nil {
				t.Fatal(err)
			}
		}
		if b.Count() == 0 {
			return
		}
		size := b.Size()
		if bound := HeaderSize + 3*RecordSize(key, value, []RecordHeader{{Key: value, Value: key}}); size > bound {
			t.Fatalf("size %d over the bound %d", size, bound)
		}
		raw, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		batch, _, err := Split(raw)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range collect(t, batch) {
			if !bytes.Equal(r.Key, key) || !bytes.Equal(r.Value, value) || r.Timestamp != ts*int64(i) {
				t.Fatalf("record %d: %+v", i, r)
			}
		}
	})
}
