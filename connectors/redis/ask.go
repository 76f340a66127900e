package redis

import (
	"context"
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/millrace/millrace/connectors/fullcache"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// pipeKeys and pipeBytes bound the commands of one pipeline, maxMembers the members
// that come with one, and those of a key; maxMembersWhole those of a key of a table that
// is kept whole. Invariant 8.
const (
	pipeKeys        = 512
	pipeBytes       = 256 << 10
	maxMembers      = 100_000
	maxMembersWhole = 2_000_000
)

// request is a key of the server, and with it the member that is looked for.
type request struct {
	key, member string
	// of is the first of the keys asked for that it answers.
	of int32
}

// requests are those that answer all keys, each once: keys with further columns may
// have one key of the server in common. A key that the sink refuses, because it could
// be another row's, has none.
func (l *lookup) requests(keys *connector.LookupKeys) []request {
	var view batch.Batch
	view.Cols, view.Len = make([]batch.Vec, len(l.table.Columns)), keys.Len()
	for i, c := range l.asked {
		if l.given[c] == i {
			view.Cols[c] = keys.Cols[i]
		}
	}
	type name struct{ key, member string }
	seen := make(map[name]bool, keys.Len())
	out := make([]request, 0, keys.Len())
	var buf []byte
	for k := range keys.Len() {
		var column int
		if column, _, buf = l.key.ambiguous(&view, k, buf); column >= 0 {
			continue
		}
		buf = l.key.append(buf[:0], &view, k)
		r := request{key: string(buf), of: int32(k)}
		if l.byMember {
			buf = appendText(buf[:0], &view.Cols[l.member], k)
			r.member = string(buf)
		}
		if n := (name{r.key, r.member}); !seen[n] {
			seen[n] = true
			out = append(out, r)
		}
	}
	return out
}

// ask sends requests, many at a time, and takes the rows of the answers.
func (l *lookup) ask(ctx context.Context, r *reader, reqs []request, keys *connector.LookupKeys, build *fullcache.Builder) error {
	for len(reqs) > 0 {
		n, bytes := 0, 0
		for n < len(reqs) && n < pipeKeys && bytes < pipeBytes {
			bytes += len(reqs[n].key) + len(reqs[n].member) + l.fieldBytes
			n++
		}
		some := reqs[:n]
		reqs = reqs[n:]
		if l.member < 0 || l.byMember {
			if err := l.take(ctx, r, some, keys, build); err != nil {
				return err
			}
			continue
		}
		counts, err := l.members(ctx, some)
		if err != nil {
			return err
		}
		for len(some) > 0 {
			n, sum := 1, counts[0]
			for n < len(some) && sum+counts[n] <= maxMembers {
				sum += counts[n]
				n++
			}
			if err := l.take(ctx, r, some[:n], keys, build); err != nil {
				return err
			}
			some, counts = some[n:], counts[n:]
		}
	}
	return nil
}

// take takes the rows of the answers to some requests.
func (l *lookup) take(ctx context.Context, r *reader, some []request, keys *connector.LookupKeys, build *fullcache.Builder) error {
	cmds, err := l.pipe(ctx, some, l.command)
	if err != nil {
		return err
	}
	b, err := r.rows(some, cmds, keys)
	if err != nil {
		return err
	}
	return build.Add(b, nil)
}

// command adds the command of a request to a pipeline.
func (l *lookup) command(ctx context.Context, p goredis.Pipeliner, q *request) goredis.Cmder {
	switch {
	case l.typ == typeHash:
		return p.HMGet(ctx, q.key, l.fields...)
	case l.typ == typeString:
		return p.Get(ctx, q.key)
	case l.typ == typeSet && l.byMember:
		return p.SIsMember(ctx, q.key, q.member)
	case l.typ == typeSet:
		return p.SMembers(ctx, q.key)
	case l.byMember:
		return p.ZScore(ctx, q.key, q.member)
	}
	return p.ZRangeWithScores(ctx, q.key, 0, -1)
}

// members counts the members of keys, so that no answer is bigger than memory allows.
func (l *lookup) members(ctx context.Context, some []request) ([]int64, error) {
	cmds, err := l.pipe(ctx, some, func(ctx context.Context, p goredis.Pipeliner, q *request) goredis.Cmder {
		if l.typ == typeSet {
			return p.SCard(ctx, q.key)
		}
		return p.ZCard(ctx, q.key)
	})
	if err != nil {
		return nil, err
	}
	counts := make([]int64, len(cmds))
	for i, c := range cmds {
		counts[i] = c.(*goredis.IntCmd).Val()
		if l.whole && counts[i] > maxMembersWhole {
			return nil, fmt.Errorf("key %q has %d members, and a table that is kept whole up to %d in a key", some[i].key, counts[i], maxMembersWhole)
		}
		if !l.whole && counts[i] > maxMembers {
			return nil, fmt.Errorf("key %q has %d members, and a lookup takes up to %d of a key: an equality with column %q asks for one of them",
				some[i].key, counts[i], maxMembers, l.names[l.member])
		}
	}
	return counts, nil
}

// pipe sends a command for each request in one pipeline. Each has its answer then,
// which may be that nothing is there.
func (l *lookup) pipe(ctx context.Context, some []request, add func(context.Context, goredis.Pipeliner, *request) goredis.Cmder) ([]goredis.Cmder, error) {
	ctx, cancel := context.WithTimeout(ctx, l.request)
	defer cancel()
	p := l.client.Pipeline()
	cmds := make([]goredis.Cmder, len(some))
	for i := range some {
		cmds[i] = add(ctx, p, &some[i])
	}
	_, whole := p.Exec(ctx)
	for i, c := range cmds {
		if err := c.Err(); err != nil && !errors.Is(err, goredis.Nil) {
			return nil, l.failed(err, c.Name(), &some[i])
		}
	}
	// A command that was not sent may have no error of its own.
	if whole != nil && !errors.Is(whole, goredis.Nil) {
		return nil, explainedRead(whole)
	}
	return cmds, nil
}

// failed is the error of a command.
func (l *lookup) failed(err error, command string, q *request) error {
	if classOf(err) == classKey {
		return fmt.Errorf("key %q holds another type than %s: check '%s' and '%s', or remove it: %w", q.key, l.typ, keyKey, keyType, err)
	}
	return fmt.Errorf("command %s: %w", command, explainedRead(err))
}
