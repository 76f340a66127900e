package pace

import "testing"

// TestHeadRoomFollowsState: figures by hand, (16 MiB + state/4) / (16 MiB + state).
func TestHeadRoomFollowsState(t *testing.T) {
	for _, c := range []struct {
		mib  int64
		want int
	}{{-1, 100}, {0, 100}, {16, 62}, {32, 50}, {128, 33}, {256, 29}, {1024, 26}, {1 << 20, 25}} {
		if got := percentOf(c.mib << 20); got != c.want {
			t.Errorf("%d MiB: %d, want %d", c.mib, got, c.want)
		}
	}
}

// TestFollows: nothing is changed before the program asks for it, or against GOGC; then
// only changes that matter are made, and letting go brings the head room back.
func TestFollows(t *testing.T) {
	var set []int
	record := func(p int) int { set = append(set, p); return 0 }
	start := func() {
		set = nil
		pacer.follows, pacer.held, pacer.percent, pacer.set = false, 0, 100, record
	}
	start()
	t.Cleanup(func() { pacer.follows, pacer.held = false, 0 })
	Hold(1 << 30)
	t.Setenv("GOGC", "100")
	Follow()
	if pacer.follows || len(set) > 0 {
		t.Fatalf("follows %t, set %v", pacer.follows, set)
	}
	start()
	pacer.follows = true
	Hold(32 << 20)
	Hold(1 << 20) // 49 in place of 50
	Hold(95 << 20)
	Hold(-128 << 20)
	want := []int{50, 33, 100}
	if len(set) != len(want) || set[0] != want[0] || set[1] != want[1] || set[2] != want[2] {
		t.Fatalf("set %v, want %v", set, want)
	}
}
