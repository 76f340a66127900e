package nexmark

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// put appends a field of an event to a column.
type put func(*batch.Vec, *Event)

func number(f func(*Event) int64) put {
	return func(v *batch.Vec, e *Event) { format.AppendInt64(v, f(e)) }
}

func text(f func(*Event) []byte) put {
	return func(v *batch.Vec, e *Event) { format.AppendBytes(v, f(e)) }
}

// field is a field of a kind of event.
type field struct {
	name string
	kind types.Kind
	put  put
}

// kindFields are the fields of each kind, by its column's name.
func kindFields() map[string][]field {
	num := func(name string, f func(*Event) int64) field { return field{name, types.BigInt, number(f)} }
	str := func(name string, f func(*Event) []byte) field { return field{name, types.Varchar, text(f)} }
	at := func(name string, f func(*Event) int64) field { return field{name, types.Timestamp, number(f)} }
	dateTime := at("dateTime", func(e *Event) int64 { return e.Time })
	extra := str("extra", func(e *Event) []byte { return e.Extra })
	id := num("id", func(e *Event) int64 { return e.ID })
	return map[string][]field{
		"person": {
			id, dateTime, extra,
			str("name", func(e *Event) []byte { return e.Name }),
			str("emailAddress", func(e *Event) []byte { return e.Email }),
			str("creditCard", func(e *Event) []byte { return e.CreditCard }),
			str("city", func(e *Event) []byte { return e.City }),
			str("state", func(e *Event) []byte { return e.State }),
		},
		"auction": {
			id, dateTime, extra,
			str("itemName", func(e *Event) []byte { return e.Item }),
			str("description", func(e *Event) []byte { return e.Description }),
			num("initialBid", func(e *Event) int64 { return e.InitialBid }),
			num("reserve", func(e *Event) int64 { return e.Reserve }),
			at("expires", func(e *Event) int64 { return e.Expires }),
			num("seller", func(e *Event) int64 { return e.Seller }),
			num("category", func(e *Event) int64 { return e.Category }),
		},
		"bid": {
			dateTime, extra,
			num("auction", func(e *Event) int64 { return e.AuctionID }),
			num("bidder", func(e *Event) int64 { return e.BidderID }),
			num("price", func(e *Event) int64 { return e.Price }),
			str("channel", func(e *Event) []byte { return e.Channel }),
			str("url", func(e *Event) []byte { return e.URL }),
		},
	}
}

var kindNames = [...]string{Person: "person", Auction: "auction", Bid: "bid"}

// column appends its part of an event.
type column struct {
	event bool // event_type
	kind  Kind
	puts  []put // of the children
}

func (c *column) add(v *batch.Vec, e *Event) {
	switch {
	case c.event:
		format.AppendInt32(v, int32(e.Kind))
	case e.Kind != c.kind:
		format.AppendNull(v)
	default:
		format.BeginRow(v)
		for i, p := range c.puts {
			p(v.Children[i], e)
		}
		v.Len++
	}
}

// compileColumns checks the columns of a table: event_type, and a ROW of each
// kind with any of its fields.
func compileColumns(t *connector.Table) ([]column, error) {
	all := kindFields()
	out := make([]column, len(t.Columns))
	for i, c := range t.Columns {
		if c.Name == "event_type" && c.Type.Kind == types.Int {
			out[i] = column{event: true}
			continue
		}
		fields, ok := all[c.Name]
		if !ok || c.Type.Kind != types.Row {
			return nil, fmt.Errorf("column %s %s: there are event_type INT and the rows person, auction, bid", c.Name, c.Type)
		}
		for k, name := range kindNames {
			if name == c.Name {
				out[i].kind = Kind(k)
			}
		}
		for _, f := range c.Type.Fields {
			p, err := findField(fields, f)
			if err != nil {
				return nil, fmt.Errorf("column %s: %w", c.Name, err)
			}
			out[i].puts = append(out[i].puts, p)
		}
	}
	return out, nil
}

func findField(fields []field, f types.Field) (put, error) {
	names := make([]string, len(fields))
	for i, have := range fields {
		names[i] = have.name
		if have.name != f.Name {
			continue
		}
		if want := have.wants(); !fits(f.Type, want) {
			return nil, fmt.Errorf("field %s is %s, not %s", f.Name, want, f.Type)
		}
		return have.put, nil
	}
	return nil, fmt.Errorf("no field %s: there are %s", f.Name, strings.Join(names, ", "))
}

// wants is the type of a field.
func (f field) wants() types.Type {
	switch f.kind {
	case types.Varchar:
		return types.NewString()
	case types.Timestamp:
		return types.NewTimestamp(3)
	}
	return types.NewBigInt()
}

// fits reports a declared type that holds all values: nullability aside, and times
// may have up to microseconds, which are stored alike.
func fits(t, want types.Type) bool {
	if t.Kind == types.Timestamp {
		return want.Kind == types.Timestamp && t.Precision >= 3 && t.Precision <= 6
	}
	t.Nullable = want.Nullable
	return t.String() == want.String()
}
