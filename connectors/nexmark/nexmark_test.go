package nexmark

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

func allColumns() []connector.Column {
	f := func(t types.Type, names ...string) (out []types.Field) {
		for _, n := range names {
			out = append(out, types.Field{Name: n, Type: t})
		}
		return out
	}
	num, str, ts := types.NewBigInt(), types.NewString(), types.NewTimestamp(3)
	row := func(parts ...[]types.Field) types.Type {
		var all []types.Field
		for _, p := range parts {
			all = append(all, p...)
		}
		return types.NewRow(all...)
	}
	col := func(name string, t types.Type) connector.Column {
		return connector.Column{Field: types.Field{Name: name, Type: t}}
	}
	return []connector.Column{
		col("event_type", types.NewInt()),
		col("person", row(f(num, "id"), f(str, "name", "emailAddress", "creditCard", "city", "state"), f(ts, "dateTime"), f(str, "extra"))),
		col("auction", row(f(num, "id"), f(str, "itemName", "description"), f(num, "initialBid", "reserve"), f(ts, "dateTime", "expires"), f(num, "seller", "category"), f(str, "extra"))),
		col("bid", row(f(num, "auction", "bidder", "price"), f(str, "channel", "url"), f(ts, "dateTime"), f(str, "extra"))),
	}
}

func open(cols []connector.Column, with map[string]string) (connector.Source, error) {
	c := New()
	options := map[string]string{"connector": "nexmark"}
	for k, v := range with {
		options[k] = v
	}
	v, errs := c.Spec().Resolve(options)
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return c.OpenSource(context.Background(), &connector.Table{Name: "events", Columns: cols, Options: v})
}

// read gives the rows of a column range of the source as text.
func read(t *testing.T, s connector.Source, columns []int, from int64, size int) []string {
	t.Helper()
	ctx := context.Background()
	parts, err := s.Partitions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(ctx, []connector.Split{{From: connector.Position{Partition: parts[0], Offset: from}, End: connector.Unbounded}}, columns, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []string
	for next := from; ; {
		var b batch.Batch
		err := r.Next(ctx, &b, size, 1<<20)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if b.Runs[0].BaseOffset != next || b.Runs[0].EndOffset != next+int64(b.Len) {
			t.Fatalf("run %+v of %d rows, want it at %d", b.Runs[0], b.Len, next)
		}
		next += int64(b.Len)
		for i := range b.Len {
			var cells []string
			for c := range b.Cols {
				cells = append(cells, string(batch.AppendText(nil, &b.Cols[c], i, types.UTC())))
			}
			out = append(out, strings.Join(cells, "|"))
		}
	}
}

// TestReplay: an event depends on the seed and its number alone, and not on the
// columns that are read.
func TestReplay(t *testing.T) {
	s, err := open(allColumns(), map[string]string{"events.num": "1000", "seed": "7", "out-of-order-group.size": "20"})
	if err != nil {
		t.Fatal(err)
	}
	all := read(t, s, nil, 0, 300)
	if len(all) != 1000 {
		t.Fatalf("%d events", len(all))
	}
	for i, row := range read(t, s, nil, 321, 17) {
		if row != all[321+i] {
			t.Fatalf("event %d is\n%s, was\n%s", 321+i, row, all[321+i])
		}
	}
	for i, row := range read(t, s, []int{3}, 0, 1000) {
		if !strings.HasSuffix(all[i], "|"+row) {
			t.Fatalf("event %d: bid alone is %s, of all columns %s", i, row, all[i])
		}
	}
	other, err := open(allColumns(), map[string]string{"events.num": "1000", "seed": "8", "out-of-order-group.size": "20"})
	if err != nil {
		t.Fatal(err)
	}
	if read(t, other, nil, 0, 1000)[5] == all[5] {
		t.Error("another seed makes the same events")
	}
}

// TestDistributions: what doc.go says of them.
func TestDistributions(t *testing.T) {
	const n = 500_000
	g := NewGenerator(Config{Seed: 1, Rate: 1000})
	var kinds [3]int
	var hotAuctions, hotSellers, hotBidders, hotChannels, cheap, withID, rare int
	size := [3]int{}
	var e Event
	for i := range int64(n) {
		g.Event(i, &e)
		kinds[e.Kind]++
		if e.Time != i*1000 {
			t.Fatalf("event %d at %d us", i, e.Time)
		}
		switch e.Kind {
		case Person:
			if e.ID != 1000+i/50 || i%50 != 0 {
				t.Fatalf("event %d is person %d", i, e.ID)
			}
			size[Person] += 8 + len(e.Name) + len(e.Email) + len(e.CreditCard) + len(e.City) + len(e.State) + len(e.Extra)
			if len(e.CreditCard) != 19 || !strings.Contains(string(e.Email), "@") || !strings.Contains(string(e.Name), " ") {
				t.Fatalf("person %q %q %q", e.Name, e.Email, e.CreditCard)
			}
		case Auction:
			if e.ID != 1000+i/50*3+i%50-1 || e.Category < 10 || e.Category > 14 || e.Reserve < e.InitialBid {
				t.Fatalf("event %d is auction %+v", i, e)
			}
			if open := e.Expires - e.Time; open <= 0 || open > 2*1_667_000+1000 {
				t.Fatalf("auction %d is open for %d us", e.ID, open)
			}
			if e.Seller == 1000+i/50/100*100 {
				hotSellers++
			}
			size[Auction] += 48 + len(e.Item) + len(e.Description) + len(e.Extra)
		case Bid:
			last := i/50*3 + 2
			if a := e.AuctionID - 1000; a < 0 || a > last+10 || a < last-100 {
				t.Fatalf("event %d bids on auction %d", i, e.AuctionID)
			}
			if e.AuctionID == 1000+last/100*100 {
				hotAuctions++
			}
			if e.BidderID == 1000+i/50/100*100+1 {
				hotBidders++
			}
			if strings.HasPrefix(string(e.Channel), "channel-") {
				rare++
				if strings.Contains(string(e.URL), "&channel_id=") {
					withID++
				}
			} else {
				hotChannels++
			}
			if e.Price < 10_000 {
				cheap++
			}
			if e.Price < 100 || e.Price > 100_000_000 {
				t.Fatalf("price %d", e.Price)
			}
			size[Bid] += 32 + len(e.Extra)
		}
	}
	if kinds != [3]int{n / 50, n / 50 * 3, n / 50 * 46} {
		t.Errorf("kinds %v", kinds)
	}
	bids, auctions := float64(kinds[Bid]), float64(kinds[Auction])
	for name, c := range map[string][2]float64{
		"bids on hot auctions":   {float64(hotAuctions) / bids, 0.5 + 0.5/111},
		"auctions of hot people": {float64(hotSellers) / auctions, 0.75 + 0.25/1010},
		"bids by hot people":     {float64(hotBidders) / bids, 0.75 + 0.25/1010},
		"hot channels":           {float64(hotChannels) / bids, 0.5},
		"channel ids in URLs":    {float64(withID) / float64(rare), 0.9},
		"a third of the decades": {float64(cheap) / bids, 1.0 / 3},
		"bytes of a person":      {float64(size[Person]) / float64(kinds[Person]) / 200, 1},
		"bytes of an auction":    {float64(size[Auction]) / auctions / 500, 1},
		"bytes of a bid":         {float64(size[Bid]) / bids / 100, 1},
	} {
		if math.Abs(c[0]-c[1]) > 0.01 {
			t.Errorf("%s: %.4f, want %.4f", name, c[0], c[1])
		}
	}
}

// TestOutOfOrder: within groups alone, and no event twice.
func TestOutOfOrder(t *testing.T) {
	g := NewGenerator(Config{Rate: 1_000_000, Group: 100})
	seen := map[int64]bool{}
	behind := 0
	var e Event
	for i := range int64(10_000) {
		n := g.adjusted(i)
		if n/100 != i/100 || seen[n] {
			t.Fatalf("event %d has number %d", i, n)
		}
		seen[n] = true
		if g.Event(i, &e); n < i {
			behind++
		}
	}
	if behind < 4000 {
		t.Errorf("%d events come early", behind)
	}
}

// TestColumns: other columns and settings are refused by their names.
func TestColumns(t *testing.T) {
	bad := func(name string, t types.Type) []connector.Column {
		return []connector.Column{{Field: types.Field{Name: name, Type: t}}}
	}
	for _, c := range []struct {
		cols []connector.Column
		want string
	}{
		{bad("kind", types.NewInt()), "kind"},
		{bad("event_type", types.NewString()), "event_type"},
		{bad("bid", types.NewRow(types.Field{Name: "prize", Type: types.NewBigInt()})), "prize"},
		{bad("bid", types.NewRow(types.Field{Name: "price", Type: types.NewInt()})), "price"},
		{bad("bid", types.NewRow(types.Field{Name: "dateTime", Type: types.NewTimestamp(9)})), "dateTime"},
		{bad("person", types.NewRow(types.Field{Name: "price", Type: types.NewBigInt()})), "price"},
	} {
		if _, err := open(c.cols, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.want, err)
		}
	}
	for key, value := range map[string]string{"events.num": "-1", "first-event.rate": "0", "start-time": "now", "out-of-order-group.size": "953", "tps": "5"} {
		if _, err := open(allColumns(), map[string]string{key: value}); err == nil {
			t.Errorf("%s = %s was accepted", key, value)
		}
	}
	if s, err := open(bad("bid", types.NewRow(types.Field{Name: "price", Type: types.NewBigInt()})), map[string]string{"events.num": "5"}); err != nil {
		t.Error(err)
	} else if got := read(t, s, nil, 0, 5); got[0] != "NULL" || !strings.HasPrefix(got[4], "(") {
		t.Errorf("rows %q", got)
	}
}

func BenchmarkNext(b *testing.B) {
	s, err := open(allColumns(), nil)
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	parts, _ := s.Partitions(ctx)
	r, err := s.Open(ctx, []connector.Split{{From: connector.Position{Partition: parts[0]}, End: connector.Unbounded}}, nil, func() {})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	b.ReportAllocs()
	var x batch.Batch
	for n := 0; n < b.N; n += x.Len {
		if err := r.Next(ctx, &x, 8192, 8<<20); err != nil {
			b.Fatal(err)
		}
	}
}
