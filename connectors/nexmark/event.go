package nexmark

// Kind is the kind of an event.
type Kind int32

// The values of column event_type.
const (
	Person  Kind = 0
	Auction Kind = 1
	Bid     Kind = 2
)

// Event is one event. Which fields it has depends on its kind; the texts belong
// to the generator and hold until its next event.
type Event struct {
	Kind Kind
	// Time and Expires are microseconds since the epoch, whole milliseconds.
	Time, Expires int64
	// ID is that of a person or an auction.
	ID int64

	Name, Email, CreditCard, City, State []byte // of a person

	Item, Description          []byte // of an auction
	InitialBid, Reserve        int64
	Seller, Category           int64
	AuctionID, BidderID, Price int64 // of a bid
	Channel, URL               []byte
	Extra                      []byte // of each
}
