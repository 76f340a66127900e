package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/millrace/millrace/connectors/fullcache"
	"github.com/millrace/millrace/connectors/partialcache"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

var _ connector.LookupConnector = (*Connector)(nil)

// OpenLookup implements connector.LookupConnector: keys are asked for many at a time, or
// the whole table is kept. Any table that can be read by SQL is good, views and Distributed ones included.
func (c *Connector) OpenLookup(ctx context.Context, t *connector.Table, keys, columns []int) (connector.Lookup, error) {
	opts, err := optionsOf(t.Options)
	if err != nil {
		return nil, err
	}
	srv, err := connect(ctx, opts)
	if err != nil {
		return nil, err
	}
	l := &lookup{server: srv, table: t, filter: t.Options.String(keyFilter), whole: partialcache.Full(t.Options)}
	if err := l.bind(ctx, keys, columns); err != nil {
		srv.conn.Close()
		return nil, err
	}
	if l.whole {
		l.Lookup = fullcache.New(fullcache.Options{Load: l.loadAll}.From(t))
	} else {
		l.Lookup = partialcache.New(partialcache.Options{Load: l.load, Rows: t.Schema(columns)}.From(t.Options))
	}
	return l, nil
}

// lookup is a table that is looked up.
type lookup struct {
	// Lookup is the cache over the server: of keys, or of the whole table.
	connector.Lookup
	whole  bool
	server *server
	table  *connector.Table
	def    *definition
	filter string
	// read are the columns that are read; keys and columns places among them.
	read, keys, columns []int
	// names and checks are of the key columns: a value that a column cannot hold is
	// not asked for.
	names  []string
	checks []*column
	// free are columns that no load uses now.
	free sync.Pool
}

func (l *lookup) bind(ctx context.Context, keys, columns []int) error {
	d, err := l.server.describe(ctx)
	if errors.Is(err, errNoTable) {
		return &connector.OptionError{Key: keyTable, OnValue: true, Message: "table " + l.server.name() + " does not exist"}
	}
	if err != nil {
		return err
	}
	l.def = d
	l.read, l.keys, l.columns = fullcache.Columns(keys, columns)
	if !l.whole { // else keys are compared here
		if err := l.bindKeys(keys); err != nil {
			return err
		}
	}
	cols, err := l.server.selected(l.table, d, l.read)
	l.free.Put(&cols)
	return err
}

// bindKeys makes sure that the server can be asked for keys.
func (l *lookup) bindKeys(keys []int) error {
	for _, k := range keys {
		col := l.table.Columns[k]
		if !literalType(col.Type) {
			return fmt.Errorf("column %s: not_yet: looking up by a key of type %s", col.Name, col.Type)
		}
		check, err := l.check(&col)
		if err != nil {
			return fmt.Errorf("column %s: %w", col.Name, err)
		}
		l.names, l.checks = append(l.names, quoteName(col.Name)), append(l.checks, check)
	}
	return nil
}

// check is the conversion of a key column to the server's.
func (l *lookup) check(col *connector.Column) (*column, error) {
	have := l.def.column(col.Name)
	if have == nil {
		return nil, fmt.Errorf("table %s has no such column%s", l.server.name(), nearest(col.Name, l.def))
	}
	typ, err := parseType(have.typ)
	if err != nil {
		return nil, err
	}
	return newColumn(col.Type, typ, l.server.timeZone)
}

// possible are the keys that the table can have.
func (l *lookup) possible(keys *connector.LookupKeys) batch.Sel {
	var s scratch
	rows := all(nil, nil, keys.Len())
	bad := map[int32]bool{}
	for i, c := range l.checks {
		if c.check != nil {
			c.refuse(&keys.Cols[i], rows, &s, func(k int, _ string) { bad[rows[k]] = true })
		}
	}
	return slices.DeleteFunc(rows, func(k int32) bool { return bad[k] })
}

// literalType reports a type whose values are written into a query.
func literalType(t types.Type) bool {
	return t.IsInteger() || t.IsString() || t.IsBinary() || t.Kind == types.Boolean || t.Kind == types.Date || t.Kind == types.Decimal
}

// keysAtOnce bounds the keys of one query, queryBytes its text: servers take 256 KB.
const (
	keysAtOnce = 4096
	queryBytes = 160 << 10
)

// load looks keys up at the server.
func (l *lookup) load(ctx context.Context, keys *connector.LookupKeys) (*fullcache.Table, error) {
	cols, err := l.columnsOf()
	if err != nil {
		return nil, err
	}
	defer l.free.Put(&cols)
	build := fullcache.NewBuilder(l.table.Name, l.table.Schema(l.read), l.keys, l.columns, 0)
	head := "SELECT " + inColumns(cols) + " FROM " + l.server.name() + " WHERE "
	if l.filter != "" {
		head += "(" + l.filter + ") AND "
	}
	for rest := l.possible(keys); len(rest) > 0; {
		text, n := l.condition(head, keys, rest)
		if err := l.ask(ctx, text, cols, build); err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	return build.Table(), nil
}

// loadAll reads the whole table with one query, which sees one state of it.
func (l *lookup) loadAll(ctx context.Context) (*fullcache.Table, error) {
	cols, err := l.columnsOf()
	if err != nil {
		return nil, err
	}
	defer l.free.Put(&cols)
	build := fullcache.NewBuilder(l.table.Name, l.table.Schema(l.read), l.keys, l.columns, l.table.Options.Bytes(fullcache.KeyMaxBytes))
	text := "SELECT " + inColumns(cols) + " FROM " + l.server.name()
	if l.filter != "" {
		text += " WHERE (" + l.filter + ")"
	}
	if err := l.ask(ctx, text, cols, build); err != nil {
		return nil, err
	}
	return build.Table(), nil
}

// columnsOf are the columns of a query, which belong to one load at a time.
func (l *lookup) columnsOf() ([]*readColumn, error) {
	if cols, ok := l.free.Get().(*[]*readColumn); ok {
		return *cols, nil
	}
	return l.server.selected(l.table, l.def, l.read)
}

// condition is the query of the first of some keys, and their number.
func (l *lookup) condition(head string, keys *connector.LookupKeys, some batch.Sel) (string, int) {
	b := []byte(head)
	several := len(l.names) > 1
	if several {
		b = append(b, '(')
	}
	b = append(b, strings.Join(l.names, ", ")...)
	if several {
		b = append(b, ')')
	}
	b = append(b, " IN ("...)
	n := 0
	for ; n < len(some) && n < keysAtOnce && (n == 0 || len(b) < queryBytes); n++ {
		if n > 0 {
			b = append(b, ", "...)
		}
		if several {
			b = append(b, '(')
		}
		for i := range keys.Cols {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendLiteral(b, &keys.Cols[i], int(some[n]))
		}
		if several {
			b = append(b, ')')
		}
	}
	return string(append(b, ')')), n
}

// appendLiteral writes a key, which is neither NULL nor an error.
func appendLiteral(dst []byte, v *batch.Vec, i int) []byte {
	t := v.Type
	switch {
	case t.Kind == types.Boolean:
		if v.Bool(i) {
			return append(dst, '1')
		}
		return append(dst, '0')
	case t.IsInteger():
		return strconv.AppendInt(dst, v.Int64(i), 10)
	case t.Kind == types.Date:
		dst = append(dst, '\'')
		dst = types.AppendDate(dst, v.Int64(i))
		return append(dst, '\'')
	case t.Kind == types.Decimal:
		dst = append(dst, '\'')
		dst = types.AppendDecimal(dst, v.Decimal(i), t.Scale)
		return append(dst, '\'')
	}
	return append(dst, quoteText(string(v.Bytes(i)))...)
}

// ask takes the rows of one query.
func (l *lookup) ask(ctx context.Context, text string, cols []*readColumn, build *fullcache.Builder) error {
	answer, err := l.server.query(ctx, text)
	if err != nil {
		return err
	}
	defer answer.close()
	var b batch.Batch
	b.Reset(l.table.Schema(l.read))
	for {
		n, err := answer.next(cols, b.Cols)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		b.Len = n
		for i := range b.Cols {
			if err := l.usable(&b.Cols[i], cols[i].name, &l.table.Columns[l.read[i]], n); err != nil {
				return err
			}
		}
		if err := build.Add(&b, nil); err != nil {
			return err
		}
	}
}

// usable is an error for a value that is none of the declared column: there is no dead
// letter for rows of a table that is looked up.
func (l *lookup) usable(v *batch.Vec, name string, col *connector.Column, n int) error {
	if !v.HasDeepErrs() && (col.Type.Nullable || !v.HasNulls()) {
		return nil
	}
	for row := range n {
		if e := v.DeepErr(row); e != nil {
			return fmt.Errorf("column %s of table %s: %s", name, l.server.name(), e.Message)
		}
		if !col.Type.Nullable && v.IsNull(row) {
			return fmt.Errorf("column %s of table %s: NULL in a NOT NULL column", name, l.server.name())
		}
	}
	return nil
}

// Close implements connector.Lookup.
func (l *lookup) Close() error { return errors.Join(l.Lookup.Close(), l.server.conn.Close()) }
