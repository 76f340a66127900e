package quota

import (
	"fmt"
	"testing"
	"time"
)

// TestPrecedence takes Kafka's order of quota entities: removing the one that
// holds brings the next one in force.
func TestPrecedence(t *testing.T) {
	order := []Entity{
		{Named("ann"), Named("app")}, {Named("ann"), Default()}, {User: Named("ann")},
		{Default(), Named("app")}, {Default(), Default()}, {User: Default()},
		{Client: Named("app")}, {Client: Default()},
	}
	table := Table{}
	for i, e := range order {
		table[e] = Limits{FetchRate: float64(i + 1)}
	}
	for i, e := range order {
		got, _ := table.limit(FetchRate, "ann", "app")
		if got != float64(i+1) {
			t.Errorf("without the first %d: limit of %v, want of %v", i, order[int(got)-1], e)
		}
		delete(table, e)
	}
	if got, _ := table.limit(FetchRate, "ann", "app"); got != 0 {
		t.Errorf("no entity: limit %v", got)
	}
	table[Entity{User: Named("ann")}] = Limits{ProduceRate: 5}
	if got, _ := table.limit(FetchRate, "ann", "app"); got != 0 {
		t.Errorf("another kind's limit %v", got)
	}
}

func TestWhoShares(t *testing.T) {
	for name, c := range map[string]struct {
		e     Entity
		other [2]string
		same  bool
	}{
		"a user's clients":              {Entity{User: Named("ann")}, [2]string{"ann", "other"}, true},
		"default user, each its own":    {Entity{User: Default()}, [2]string{"bob", "app"}, false},
		"a client id of all users":      {Entity{Client: Named("app")}, [2]string{"bob", "app"}, true},
		"default client, each its own":  {Entity{Client: Default()}, [2]string{"ann", "other"}, false},
		"default client, users share":   {Entity{Client: Default()}, [2]string{"bob", "app"}, true},
		"user and client, each its own": {Entity{Default(), Default()}, [2]string{"bob", "app"}, false},
	} {
		table := Table{c.e: Limits{ProduceRate: 1}}
		_, a := table.limit(ProduceRate, "ann", "app")
		_, b := table.limit(ProduceRate, c.other[0], c.other[1])
		if (a == b) != c.same {
			t.Errorf("%s: shared %v, want %v", name, a == b, c.same)
		}
	}
}

// TestThrottle: the wait brings the rate down to the limit.
func TestThrottle(t *testing.T) {
	now := time.Unix(1000, 0)
	m := NewMeters(func() time.Time { return now })
	table := Table{{User: Named("ann")}: {ProduceRate: 1000}}
	if got := m.Record(table, ProduceRate, "bob", "", 1e9); got != 0 {
		t.Errorf("somebody else waits %v", got)
	}
	if got := m.Record(table, ProduceRate, "ann", "", 10000); got != 0 {
		t.Errorf("ten seconds' worth: wait %v, want 0", got)
	}
	// 20000 bytes in a window of 10 s: a rate of 2000, as much again above it.
	if got := m.Record(table, ProduceRate, "ann", "", 10000); got != 10*time.Second {
		t.Errorf("twice that: wait %v, want 10s", got)
	}
	now = now.Add(11 * time.Second)
	if got := m.Record(table, ProduceRate, "ann", "", 1); got != 0 {
		t.Errorf("after the window: wait %v, want 0", got)
	}
}

// TestSteadyRate: a client that waits as it is told ends at its limit.
func TestSteadyRate(t *testing.T) {
	start := time.Unix(1000, 0)
	now := start
	m := NewMeters(func() time.Time { return now })
	table := Table{{Client: Default()}: {FetchRate: 1 << 20}}
	total := 0.0
	for now.Sub(start) < 10*time.Minute {
		total += 256 << 10
		now = now.Add(5*time.Millisecond + m.Record(table, FetchRate, "", "app", 256<<10))
	}
	if rate := total / now.Sub(start).Seconds(); rate > 1.1*(1<<20) || rate < 0.8*(1<<20) {
		t.Errorf("a rate of %.0f bytes a second, the limit is %d", rate, 1<<20)
	}
}

func TestRequestPercent(t *testing.T) {
	now := time.Unix(1000, 0)
	m := NewMeters(func() time.Time { return now })
	table := Table{{User: Default()}: {RequestPercent: 50}}
	if got := m.Record(table, RequestPercent, "ann", "", float64(5*time.Second)); got != 0 {
		t.Errorf("half of ten seconds: wait %v", got)
	}
	if got := m.Record(table, RequestPercent, "ann", "", float64(50*time.Second)); got != time.Second {
		t.Errorf("far beyond: wait %v, want the bound of 1s", got)
	}
}

// TestMetersAreBounded: client ids are the clients' to choose.
func TestMetersAreBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	m := NewMeters(func() time.Time { return now })
	table := Table{{Client: Default()}: {FetchRate: 1}}
	for i := range 20 * sweepAt {
		m.Record(table, FetchRate, "", fmt.Sprint(i), 1)
		now = now.Add(100 * time.Millisecond)
	}
	if n := len(m.meters); n > sweepAt+1 {
		t.Errorf("%d meters are kept", n)
	}
	for i := range 2 * maxMeters {
		m.Record(table, FetchRate, "", fmt.Sprint("burst", i), 1)
	}
	if n := len(m.meters); n > maxMeters+1 {
		t.Errorf("%d meters are kept after a burst", n)
	}
}

func TestCheckLimit(t *testing.T) {
	if CheckLimit(RequestPercent, 12.5) != nil || CheckLimit(FetchRate, 1024) != nil {
		t.Error("a good value is refused")
	}
	if CheckLimit(FetchRate, 0) == nil || CheckLimit(FetchRate, -1) == nil || CheckLimit(FetchRate, 1.5) == nil {
		t.Error("a bad value is taken")
	}
}
