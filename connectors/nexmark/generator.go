package nexmark

import (
	"math"
	"math/bits"
	"strconv"
)

// Proportions: of each epoch of 50 events.
const (
	persons  = 1
	auctions = 3
	epoch    = 50
)

const (
	firstID       = 1000 // of persons and auctions
	firstCategory = 10
	categories    = 5

	hotBatch      = 100 // persons and auctions of which one is hot
	activePersons = 1000
	openAuctions  = 100
	lead          = 10 // ids that come before their person or auction does

	channels     = 10_000
	minText      = 3
	extraPool    = 1 << 20
	personBytes  = 200
	auctionBytes = 500
	bidBytes     = 100
)

// Config is what events depend on.
type Config struct {
	Seed uint64
	// Start is the time of the first event in microseconds since the epoch.
	Start int64
	// Rate is how many events there are in a second of event time.
	Rate int64
	// Group is how many events are out of order with each other; 0 and 1: none.
	Group int64
}

// Generator makes events.
type Generator struct {
	c    Config
	pool []byte // the texts that fill events up
	hot  [4]channel
	rare []channel
	text []byte
	r    random
}

type channel struct{ name, url []byte }

// random is splitmix64.
type random struct{ state uint64 }

const golden = 0x9e3779b97f4a7c15

func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

func (r *random) next() uint64 {
	r.state += golden
	return mix(r.state)
}

// below is uniform in [0, n), n < 2^32.
func (r *random) below(n int64) int64 {
	return int64(r.next() >> 32 * uint64(n) >> 32)
}

func (r *random) price() int64 {
	u := float64(r.next()>>11) / (1 << 53)
	return int64(math.Round(math.Pow(10, u*6) * 100))
}

// NewGenerator prepares the channels and texts that events draw from.
func NewGenerator(c Config) *Generator {
	if c.Group < 1 {
		c.Group = 1
	}
	g := &Generator{c: c, r: random{mix(c.Seed ^ 0x6e65786d61726b)}}
	g.pool = make([]byte, extraPool)
	for i := range g.pool {
		g.pool[i] = byte('a' + g.r.below(26))
	}
	for i, name := range []string{"Google", "Facebook", "Baidu", "Apple"} {
		g.hot[i] = channel{[]byte(name), g.url()}
	}
	g.rare = make([]channel, channels)
	for i := range g.rare {
		url := g.url()
		if g.r.below(10) > 0 {
			id := int64(int32(bits.Reverse32(uint32(i))))
			url = strconv.AppendInt(append(url, "&channel_id="...), max(id, -id), 10)
		}
		g.rare[i] = channel{strconv.AppendInt([]byte("channel-"), int64(i), 10), url}
	}
	return g
}

func (g *Generator) url() []byte {
	b := []byte("https://www.nexmark.com/")
	for range 3 {
		g.text = g.text[:0]
		b = append(append(b, g.word(5, '_')...), '/')
	}
	return append(b, "item.htm?query=1"...)
}

// word adds letters to the texts of an event: 3 to most-1 of them, one in 13 the
// special one, without spaces at the ends.
func (g *Generator) word(most int64, special byte) []byte {
	from := len(g.text)
	for range minText + g.r.below(most-minText) {
		x := g.r.next()
		c := special
		if x>>32*13>>32 != 0 {
			c = byte('a' + x&math.MaxUint32*26>>32)
		}
		g.text = append(g.text, c)
	}
	w := g.text[from:]
	for len(w) > 0 && w[0] == ' ' {
		w = w[1:]
	}
	for len(w) > 0 && w[len(w)-1] == ' ' {
		w = w[:len(w)-1]
	}
	return w
}

// extra fills an event of the given size up to about the average.
func (g *Generator) extra(size, average int) []byte {
	if size > average {
		return nil
	}
	room := average - size
	delta := int64(math.Round(float64(room) * 0.2))
	n := room - int(delta)
	if delta > 0 {
		n += int(g.r.below(2 * delta))
	}
	at := int(g.r.below(int64(len(g.pool) - n)))
	return g.pool[at : at+n]
}

// adjusted is the number whose time and ids event n has.
func (g *Generator) adjusted(n int64) int64 {
	if g.c.Group == 1 {
		return n
	}
	return n/g.c.Group*g.c.Group + n*953%g.c.Group
}

// at is the time of an event's number, cut to milliseconds.
func (g *Generator) at(n int64) int64 {
	return g.c.Start + (n/g.c.Rate*1000+n%g.c.Rate*1000/g.c.Rate)*1000
}

// Event makes event n. All of e is overwritten.
func (g *Generator) Event(n int64, e *Event) {
	g.text = g.text[:0]
	*e = Event{}
	n = g.adjusted(n)
	g.r.state = mix(g.c.Seed*golden ^ uint64(n))
	e.Time = g.at(n)
	switch rem := n % epoch; {
	case rem < persons:
		g.person(n, e)
	case rem < persons+auctions:
		g.auction(n, e)
	default:
		g.bid(n, e)
	}
}

// lastPerson and lastAuction count from 0.
func lastPerson(n int64) int64 { return n / epoch }

func lastAuction(n int64) int64 {
	rem := n % epoch
	if rem < persons {
		return n/epoch*auctions - 1
	}
	return n/epoch*auctions + min(rem-persons, auctions-1)
}

// anyPerson is one of the active ones, or of those to come.
func (g *Generator) anyPerson(n int64) int64 {
	all := lastPerson(n) + 1
	active := min(all, activePersons)
	return all - active + g.r.below(active+lead)
}

func (g *Generator) anyAuction(n int64) int64 {
	last := lastAuction(n)
	first := max(last-openAuctions, 0)
	return first + g.r.below(last-first+1+lead)
}

var (
	firstNames = [...]string{"Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"}
	lastNames  = [...]string{"Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"}
	cities     = [...]string{"Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"}
	states     = [...]string{"AZ", "CA", "ID", "OR", "WA", "WY"}
)

// since is what was added to the texts behind a place.
func (g *Generator) since(from int) []byte { return g.text[from:len(g.text):len(g.text)] }

func (g *Generator) say(s string) []byte {
	from := len(g.text)
	g.text = append(g.text, s...)
	return g.since(from)
}

func (g *Generator) person(n int64, e *Event) {
	g.reserve()
	e.Kind, e.ID = Person, firstID+lastPerson(n)
	from := len(g.text)
	g.say(firstNames[g.r.below(int64(len(firstNames)))])
	g.say(" ")
	g.say(lastNames[g.r.below(int64(len(lastNames)))])
	e.Name = g.since(from)

	name, host := g.word(7, ' '), g.word(5, ' ')
	from = len(g.text)
	g.text = append(append(append(append(g.text, name...), '@'), host...), ".com"...)
	e.Email = g.since(from)

	from = len(g.text)
	for i := range 4 {
		if i > 0 {
			g.text = append(g.text, ' ')
		}
		x := g.r.below(10_000)
		g.text = append(g.text, byte('0'+x/1000), byte('0'+x/100%10), byte('0'+x/10%10), byte('0'+x%10))
	}
	e.CreditCard = g.since(from)
	e.City = g.say(cities[g.r.below(int64(len(cities)))])
	e.State = g.say(states[g.r.below(int64(len(states)))])
	e.Extra = g.extra(8+len(e.Name)+len(e.Email)+len(e.CreditCard)+len(e.City)+len(e.State), personBytes)
}

func (g *Generator) auction(n int64, e *Event) {
	g.reserve()
	e.Kind, e.ID = Auction, firstID+lastAuction(n)
	if g.r.below(4) > 0 {
		e.Seller = firstID + lastPerson(n)/hotBatch*hotBatch
	} else {
		e.Seller = firstID + g.anyPerson(n)
	}
	e.Category = firstCategory + g.r.below(categories)
	e.InitialBid = g.r.price()
	// Twice as long, at most, as it takes until the open auctions are others.
	horizon := (g.at(n+openAuctions*epoch/auctions) - e.Time) / 1000
	e.Expires = e.Time + 1000*(1+g.r.below(max(2*horizon, 1)))
	e.Item = g.word(20, ' ')
	e.Description = g.word(100, ' ')
	e.Reserve = e.InitialBid + g.r.price()
	e.Extra = g.extra(48+len(e.Item)+len(e.Description), auctionBytes)
}

func (g *Generator) bid(n int64, e *Event) {
	e.Kind = Bid
	if g.r.below(2) > 0 {
		e.AuctionID = firstID + lastAuction(n)/hotBatch*hotBatch
	} else {
		e.AuctionID = firstID + g.anyAuction(n)
	}
	if g.r.below(4) > 0 {
		e.BidderID = firstID + lastPerson(n)/hotBatch*hotBatch + 1
	} else {
		e.BidderID = firstID + g.anyPerson(n)
	}
	e.Price = g.r.price()
	c := &g.hot[0]
	if g.r.below(2) > 0 {
		c = &g.hot[g.r.below(int64(len(g.hot)))]
	} else {
		c = &g.rare[g.r.below(channels)]
	}
	e.Channel, e.URL = c.name, c.url
	e.Extra = g.extra(32, bidBytes)
}

// reserve makes room for all texts of an event, so that they do not move.
func (g *Generator) reserve() {
	if cap(g.text) < 1024 {
		g.text = make([]byte, 0, 1024)
	}
}
