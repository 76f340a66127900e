package kafkaproto

import (
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestControlWeight: decoding a request allocates no more than what it is counted
// for, whatever its lists claim. The worst that a request can do is a list that
// claims as many elements as there are bytes, at any place.
func TestControlWeight(t *testing.T) {
	const size = 16 << 10
	worst, where := 0.0, ""
	for _, a := range apis() {
		if a.Key == 0 || a.Key == 1 {
			continue // their own codec believes no list, see reader.arrayLen
		}
		for _, v := range []int16{a.Min, a.Max} {
			for at := range 24 {
				// An element has so many bytes at the least; claiming more than fits is refused.
				for _, least := range []int{1, 2, 3, 4, 6, 8, 11, 14, 19, 26} {
					body := make([]byte, size)
					claim := (size - at - 8) / least
					if v < a.flexible {
						binary.BigEndian.PutUint32(body[at:], uint32(claim))
					} else {
						binary.PutUvarint(body[at:], uint64(claim))
					}
					if used := allocated(func() { decode(a.Key, v, body) }) / size; used > worst {
						worst, where = used, kmsg.NameForKey(a.Key)
					}
				}
			}
		}
	}
	t.Logf("at most %.0f bytes for each of a request, in %s", worst, where)
	if worst > controlWeight {
		t.Errorf("decoding %s takes %.0f bytes for each of the request, it is counted for %d", where, worst, controlWeight)
	}
}

func decode(key, version int16, body []byte) {
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	_ = req.ReadFrom(body) // most are malformed
}

// allocated is how many bytes a function allocates.
func allocated(f func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc - before.TotalAlloc)
}
