package record

import (
	"strings"
	"testing"
)

// BenchmarkSplit parses and verifies batches of 64 records of 1 kB.
func BenchmarkSplit(b *testing.B) {
	raw := benchBatch(b, None)
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, _, err := Split(raw); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRecords does what Split does and walks the records.
func BenchmarkRecords(b *testing.B) {
	raw := benchBatch(b, None)
	var d Decoder
	var r Record
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		batch, _, err := Split(raw)
		if err != nil {
			b.Fatal(err)
		}
		it, err := d.Records(batch)
		if err != nil {
			b.Fatal(err)
		}
		for it.Next(&r) {
		}
		if it.Err() != nil {
			b.Fatal(it.Err())
		}
	}
}

// BenchmarkBuild counts bytes before compression.
func BenchmarkBuild(b *testing.B) {
	value := benchValue()
	for _, c := range codecs {
		b.Run(c.String(), func(b *testing.B) {
			w := Builder{Codec: c}
			b.SetBytes(64 * int64(len(value)))
			b.ReportAllocs()
			for b.Loop() {
				w.Reset()
				for i := range int64(64) {
					if err := w.Append(i, nil, value, nil); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := w.Build(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchBatch(b *testing.B, c Codec) []byte {
	w := Builder{Codec: c}
	for i := range int64(64) {
		if err := w.Append(i, nil, benchValue(), nil); err != nil {
			b.Fatal(err)
		}
	}
	raw, err := w.Build()
	if err != nil {
		b.Fatal(err)
	}
	return raw
}

func benchValue() []byte {
	return []byte(strings.Repeat(`{"id":"2489651045","type":"CreateEvent","public":true,"n":17}`, 17)[:1024])
}
