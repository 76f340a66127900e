package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	goredis "github.com/redis/go-redis/v9"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/fullcache"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// scanCount is how many keys the server looks at for one answer of SCAN, keyOverhead
// what remembering a key takes beside its name.
const (
	scanCount   = 1000
	keyOverhead = 48
)

// loadAll reads the whole table: every key that the template could have made.
func (l *lookup) loadAll(ctx context.Context) (*fullcache.Table, error) {
	r, err := newReader(l)
	if err != nil {
		return nil, err
	}
	build := fullcache.NewBuilder(l.table.Name, l.schema, l.keyAt, l.columnAt, l.table.Options.Bytes(fullcache.KeyMaxBytes))
	p := newKeyParser(l)
	err = l.scan(ctx, func(names []string) error {
		reqs, keys := p.parse(names)
		return l.ask(ctx, r, reqs, keys, build)
	})
	if err != nil {
		return nil, err
	}
	return build.Table(), nil
}

// scan calls f with the names that match the template's text, each once. What is
// written meanwhile may be among them or not.
func (l *lookup) scan(ctx context.Context, f func(names []string) error) error {
	if len(l.key.columns) == 0 {
		return f([]string{string(l.key.texts[0])})
	}
	pattern := globOf(l.key.texts[0]) + "*" + globOf(l.key.texts[len(l.key.columns)])
	s := &scanned{seen: map[string]struct{}{}, most: l.table.Options.Bytes(fullcache.KeyMaxBytes)}
	// A slot that moves takes keys from a node that is still to be scanned to one that
	// was: then all are scanned again, and what has moved is found where it is.
	for again := false; ; again = true {
		nodes, err := l.nodes(ctx)
		if err != nil {
			return err
		}
		placed := l.placed(ctx, nodes)
		for _, node := range nodes {
			if err := l.scanNode(ctx, node, pattern, s, f); err != nil {
				return err
			}
		}
		if again || len(nodes) == 1 || placed != "" && placed == l.placed(ctx, nodes) {
			return nil
		}
	}
}

// placed says which slots the nodes of a cluster have, "" when some are moving or that is
// not known.
func (l *lookup) placed(ctx context.Context, nodes []goredis.Cmdable) string {
	if len(nodes) == 1 {
		return "" // who asks does not need it
	}
	ctx, cancel := context.WithTimeout(ctx, l.request)
	defer cancel()
	var b strings.Builder
	for _, node := range nodes {
		text, err := node.ClusterNodes(ctx).Result()
		if err != nil {
			return ""
		}
		for line := range strings.Lines(text) {
			// id, address, flags, primary, two times, epoch, state; then the slots, and in
			// brackets what moves.
			fields := strings.Fields(line)
			if len(fields) < 8 || !strings.Contains(fields[2], "myself") {
				continue
			}
			slots := strings.Join(fields[8:], " ")
			if strings.Contains(slots, "[") {
				return ""
			}
			b.WriteString(fields[0] + " " + slots + "\n")
		}
	}
	return b.String()
}

// nodes are the servers that hold the keys: the primaries of a cluster.
func (l *lookup) nodes(ctx context.Context) ([]goredis.Cmdable, error) {
	c, ok := l.client.(*goredis.ClusterClient)
	if !ok {
		return []goredis.Cmdable{l.client}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.request)
	defer cancel()
	var mu sync.Mutex
	var out []goredis.Cmdable
	err := c.ForEachMaster(ctx, func(_ context.Context, node *goredis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		out = append(out, node)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for the nodes of the cluster: %w", explainedRead(err))
	}
	return out, nil
}

// scanned is which names a scan has found.
type scanned struct {
	seen        map[string]struct{}
	bytes, most int64
}

// scanNode is scan of one server.
func (l *lookup) scanNode(ctx context.Context, node goredis.Cmdable, pattern string, s *scanned, f func(names []string) error) error {
	for cursor := uint64(0); ; {
		names, next, err := l.scanOnce(ctx, node, cursor, pattern)
		if err != nil {
			return err
		}
		fresh := names[:0]
		for _, name := range names {
			// A key may come twice, when the server moves its table meanwhile, or a slot
			// goes to another one. Fences are the sink's own.
			if _, known := s.seen[name]; known || strings.HasPrefix(name, fencePrefix) {
				continue
			}
			s.seen[name] = struct{}{}
			fresh = append(fresh, name)
			s.bytes += int64(len(name)) + keyOverhead
		}
		if s.bytes > s.most {
			return &fullcache.TooBigError{Table: l.table.Name, Rows: len(s.seen), Bytes: s.bytes, Max: s.most}
		}
		if err := f(fresh); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

func (l *lookup) scanOnce(ctx context.Context, node goredis.Cmdable, cursor uint64, pattern string) ([]string, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, l.request)
	defer cancel()
	names, next, err := node.Scan(ctx, cursor, pattern, scanCount).Result()
	if err != nil && !errors.Is(err, goredis.Nil) {
		return nil, 0, fmt.Errorf("command scan: %w", explainedRead(err))
	}
	return names, next, nil
}

// globOf is a pattern that stands for text alone.
func globOf(text []byte) string {
	var b strings.Builder
	for _, c := range text {
		if strings.IndexByte(`*?[]\`, c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// keyParser finds the values of which names are made.
type keyParser struct {
	*lookup
	app   *format.Appender
	names *batch.Schema // of the columns in names
	batch batch.Batch
	// view has the parsed columns where the table has them.
	view batch.Batch
	buf  []byte
}

func newKeyParser(l *lookup) *keyParser {
	p := &keyParser{lookup: l, app: format.NewAppender(), names: &batch.Schema{}}
	for _, c := range l.asked {
		p.names.Fields = append(p.names.Fields, l.table.Columns[c].Field)
	}
	p.view.Cols = make([]batch.Vec, len(l.table.Columns))
	return p
}

// parse gives the keys that a row of the table can have, and a request for each. A name
// that no row would be written under (its parts are no values of the columns, or are
// written in another way: `user:007`) is none of the table's: a lookup of a single key
// would not ask for it either.
func (p *keyParser) parse(all []string) ([]request, *connector.LookupKeys) {
	p.app.Begin(&p.batch, p.names)
	p.app.BeginRun(0, 0)
	reqs := make([]request, 0, len(all))
	for _, name := range all {
		if p.split(name) {
			p.app.Commit(int64(len(reqs)), 1)
			reqs = append(reqs, request{key: name, of: int32(len(reqs))})
		}
	}
	p.app.EndRun(int64(len(reqs)), 0)
	p.app.Finish()
	for i, c := range p.asked {
		p.view.Cols[c] = p.batch.Cols[i]
	}
	p.view.Len = p.batch.Len
	out := reqs[:0]
	for _, q := range reqs {
		if column, _, buf := p.key.ambiguous(&p.view, int(q.of), p.buf); column >= 0 {
			p.buf = buf
			continue
		}
		if p.buf = p.key.append(p.buf[:0], &p.view, int(q.of)); string(p.buf) == q.key {
			out = append(out, q)
		}
	}
	return out, &connector.LookupKeys{Cols: p.batch.Cols}
}

// split appends the values of a name; false: they are none, and nothing is appended.
func (p *keyParser) split(name string) bool {
	rest, ok := bytes.CutPrefix([]byte(name), p.key.texts[0])
	last := len(p.key.columns) - 1
	for i := 0; ok && i <= last; i++ {
		value := rest
		if i == last {
			value, ok = bytes.CutSuffix(rest, p.key.texts[i+1])
		} else {
			value, rest, ok = bytes.Cut(rest, p.key.texts[i+1])
		}
		v := p.app.Column(i)
		if ok = ok && (!v.Type.IsString() || utf8.Valid(value)); ok {
			ok, _ = format.AppendText(v, value)
		}
	}
	if !ok {
		p.app.Rollback()
	}
	return ok
}
