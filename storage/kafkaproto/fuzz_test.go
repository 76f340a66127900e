package kafkaproto

import (
	"bytes"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// FuzzRequest takes bytes through framing, header and the decoders of every
// served key. Nothing may panic, and no decoder may make more elements than the
// request has bytes.
func FuzzRequest(f *testing.F) {
	formatter := kmsg.NewRequestFormatter(kmsg.FormatterClientID("fuzz"))
	for _, a := range apis() {
		for v := a.Min; v <= a.Max; v++ {
			req := kmsg.RequestForKey(a.Key)
			req.SetVersion(v)
			f.Add(formatter.AppendRequest(nil, req, 1))
		}
	}
	table := map[int16]api{}
	for _, a := range apis() {
		table[a.Key] = a
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		src := bytes.NewReader(b)
		fr, err := readFrame(src, limits{produce: 1 << 16, control: 1 << 12})
		if err != nil {
			return
		}
		body, err := readBody(src, fr, nil)
		if err != nil {
			return
		}
		a, ok := table[fr.key]
		if !ok || fr.version < a.Min || fr.version > a.Max {
			return
		}
		_, rest, err := parseHeader(body, fr.version >= a.flexible)
		if err != nil {
			return
		}
		switch fr.key {
		case 0:
			var p produceRequest
			if err := p.parse(fr.version, rest); err == nil && len(p.all) > len(rest) {
				t.Fatalf("%d partitions in %d bytes", len(p.all), len(rest))
			}
		case 1:
			var p fetchRequest
			if err := p.parse(fr.version, rest); err == nil && len(p.topics) > len(rest) {
				t.Fatalf("%d topics in %d bytes", len(p.topics), len(rest))
			}
		default:
			// No more than the request is counted for; what a decoder always needs is free.
			if used := allocated(func() { decode(fr.key, fr.version, rest) }); used > controlWeight*float64(len(b))+64<<10 {
				t.Fatalf("decoding %d bytes of key %d version %d allocated %.0f", len(b), fr.key, fr.version, used)
			}
		}
	})
}

// TestFlexibleVersions compares the table's first flexible versions with kmsg's.
func TestFlexibleVersions(t *testing.T) {
	for _, a := range apis() {
		for v := a.Min; v <= a.Max; v++ {
			req := kmsg.RequestForKey(a.Key)
			req.SetVersion(v)
			if got := v >= a.flexible; got != req.IsFlexible() {
				t.Errorf("key %d version %d: flexible %v, want %v", a.Key, v, got, req.IsFlexible())
			}
		}
	}
}
