package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/millrace/millrace/connectors/fullcache"
	"github.com/millrace/millrace/connectors/partialcache"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

var (
	_ connector.LookupConnector = (*Connector)(nil)
	_ connector.LookupChecker   = (*Connector)(nil)
)

// OpenLookup implements connector.LookupConnector: rows are found where the sink of
// the same table writes them. A server that does not answer is no error: lanes wait
// for it.
func (c *Connector) OpenLookup(ctx context.Context, t *connector.Table, keys, columns []int) (connector.Lookup, error) {
	l, err := newLookup(t, keys, columns)
	if err != nil {
		return nil, err
	}
	client, addr, err := connect(t.Options)
	if err != nil {
		return nil, err
	}
	if _, err := probe(ctx, client, l.request, addr); err != nil {
		client.Close()
		return nil, err
	}
	l.client = client
	if l.whole {
		l.Lookup = fullcache.New(fullcache.Options{Load: l.loadAll}.From(t))
	} else {
		l.Lookup = partialcache.New(partialcache.Options{Load: l.load, Rows: t.Schema(columns)}.From(t.Options))
	}
	return l, nil
}

// CheckLookup implements connector.LookupChecker.
func (c *Connector) CheckLookup(t *connector.Table, keys []int) error {
	_, err := newLookup(t, keys, nil)
	return err
}

// lookup is a table that is looked up. Besides its cache it does not change.
type lookup struct {
	// Lookup is the cache over the server: of keys, or of the whole table.
	connector.Lookup
	*layout
	whole   bool
	client  goredis.UniversalClient
	request time.Duration
	table   *connector.Table
	// asked are the columns of the join's keys, and given, by column of the table, its
	// place among them, -1: it comes from the server.
	asked, given []int
	// byMember: the member is one of the keys, so that it alone is asked for.
	byMember bool
	// fields are those of a hash that are asked for: all of the table, since a row is
	// there when one of them is.
	fields     []string
	fieldBytes int
	// read are the columns of the rows that are read; at, by column of the table, its
	// place among them or -1; keyAt and columnAt are the join's keys and the wanted
	// columns there.
	read, at, keyAt, columnAt []int
	schema                    *batch.Schema
	// readers are those that no load uses now.
	readers sync.Pool
}

func newLookup(t *connector.Table, keys, columns []int) (*lookup, error) {
	y, err := newLayout(t)
	if err != nil {
		return nil, err
	}
	l := &lookup{layout: y, table: t, request: t.Options.Duration(keyRequest), asked: keys, whole: partialcache.Full(t.Options)}
	if l.whole {
		l.asked = y.key.columns // which the names of the server's keys give
	}
	for _, c := range y.key.columns {
		if !slices.Contains(l.asked, c) {
			return nil, &connector.MissingKeyError{Column: c, Message: fmt.Sprintf("a lookup of table %q needs an equality with column %q, of which its keys in Redis are made", t.Name, y.names[c])}
		}
	}
	if y.member >= 0 && !l.whole {
		l.byMember = slices.Contains(keys, y.member)
		if !l.byMember && len(y.key.columns) == 0 {
			return nil, &connector.MissingKeyError{Column: y.member, Message: fmt.Sprintf("all rows of table %q are in one key: a lookup needs an equality with their member, column %q", t.Name, y.names[y.member])}
		}
	}
	for _, c := range y.values {
		if y.typ == typeHash {
			l.fields, l.fieldBytes = append(l.fields, y.names[c]), l.fieldBytes+len(y.names[c])
		}
	}
	l.read, l.keyAt, l.columnAt = fullcache.Columns(keys, columns)
	l.schema = t.Schema(l.read)
	for c := range t.Columns {
		l.at = append(l.at, slices.Index(l.read, c))
		given := -1
		if slices.Contains(y.key.columns, c) || c == y.member {
			given = slices.Index(l.asked, c)
		}
		l.given = append(l.given, given)
	}
	r, err := newReader(l)
	l.readers.Put(r)
	return l, err
}

// answerBytes bounds the rows of a batch's keys.
const answerBytes = 256 << 20

// load looks keys up at the server.
func (l *lookup) load(ctx context.Context, keys *connector.LookupKeys) (*fullcache.Table, error) {
	r, ok := l.readers.Get().(*reader)
	if !ok {
		var err error
		if r, err = newReader(l); err != nil {
			return nil, err
		}
	}
	build := fullcache.NewBuilder(l.table.Name, l.schema, l.keyAt, l.columnAt, answerBytes)
	if err := l.ask(ctx, r, l.requests(keys), keys, build); err != nil {
		var big *fullcache.TooBigError
		if errors.As(err, &big) {
			err = fmt.Errorf("the rows of %d keys of table %s need more than %d bytes of memory", keys.Len(), l.table.Name, big.Max)
		}
		return nil, err // what the reader has begun is of no use
	}
	l.readers.Put(r)
	return build.Table(), nil
}

// Close implements connector.Lookup.
func (l *lookup) Close() error { return errors.Join(l.Lookup.Close(), l.client.Close()) }
