package clickhouse

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/go-faster/city"

	"github.com/millrace/millrace/runtime/batch"
)

// shardKey evaluates a sharding expression exactly as the server does. What it was
// given is tried on the server itself before it is used.
type shardKey struct {
	text  string
	fn    shardFunc
	parts []shardPart
	// buf is memory for one call; turn counts calls for random shards.
	buf  buffer
	turn uint64
}

type shardFunc uint8

const (
	shardValue shardFunc = iota // the column itself
	shardCity
	shardInt64
	shardXX
	shardRandom
)

// shardPart is a column of the expression.
type shardPart struct {
	name   string
	col    *column
	source int
	typ    string
	// texts: it is a String; numbers are taken as unsigned ones of their width.
	texts bool
}

var shardFuncs = map[string]shardFunc{"cityHash64": shardCity, "intHash64": shardInt64, "xxHash64": shardXX}

// newShardKey reads the expression; columns are found in b, the binding of a shard.
func newShardKey(text string, b *binding) (*shardKey, error) {
	k := &shardKey{text: text}
	if text == "rand()" {
		k.fn = shardRandom
		return k, nil
	}
	refused := fmt.Errorf("not_yet: sharding key %s; integer columns, cityHash64, intHash64 and xxHash64 of columns, and rand() are known", text)
	e, err := parseType(text)
	if err != nil {
		return nil, refused
	}
	args := []*chType{e}
	if strings.HasSuffix(text, ")") {
		fn, ok := shardFuncs[e.name]
		if !ok || len(e.args) == 0 || len(e.numbers)+len(e.texts) > 0 {
			return nil, refused
		}
		k.fn, args = fn, e.args
	}
	for _, a := range args {
		if len(a.args) > 0 || strings.HasSuffix(a.text, ")") {
			return nil, refused
		}
		p, err := newShardPart(a.name, b)
		if err != nil {
			return nil, err
		}
		k.parts = append(k.parts, p)
	}
	texts := func(p shardPart) bool { return p.texts }
	one := len(k.parts) == 1
	switch {
	case k.fn == shardCity, k.fn == shardXX && one && texts(k.parts[0]):
	case (k.fn == shardValue || k.fn == shardInt64) && one && !texts(k.parts[0]):
	default:
		return nil, refused
	}
	return k, nil
}

func newShardPart(name string, b *binding) (shardPart, error) {
	for i, n := range b.names {
		if n != name || b.columns[i] == b.artifact {
			continue
		}
		c := b.columns[i]
		p := shardPart{name: name, col: c, source: b.source[i], typ: b.def.column(name).typ}
		if c.nullable {
			return p, fmt.Errorf("column %s of the sharding key is Nullable; ClickHouse takes no such key", name)
		}
		if c.lowCardinality {
			return p, fmt.Errorf("not_yet: LowCardinality column %s in a sharding key", name)
		}
		switch _, _, width, ok := integerBounds(c.ch.name); {
		case ok && width <= 8, c.ch.name == "Date", c.ch.name == "DateTime":
		case c.ch.name == "String":
			p.texts = true
		default:
			return p, fmt.Errorf("not_yet: column %s of type %s in a sharding key", name, c.ch.text)
		}
		return p, nil
	}
	return shardPart{}, fmt.Errorf("column %s of the sharding key is not written by this table, so that a row's shard is not known", name)
}

// values appends the expression of rows to out.
func (k *shardKey) values(b *batch.Batch, rows []int32, s *scratch, out []uint64) []uint64 {
	at := len(out)
	if k.fn == shardRandom {
		// Any shard is right; rows that come together stay together.
		k.turn++
		for range rows {
			out = append(out, k.turn)
		}
		return out
	}
	for i := range k.parts {
		p := &k.parts[i]
		k.buf.reset()
		p.col.append(&k.buf, &b.Cols[p.source], rows, s)
		data := k.buf.data
		for r := range rows {
			var text []byte
			x := uint64(0)
			if p.texts {
				n, used := binary.Uvarint(data)
				text, data = data[used:used+int(n)], data[used+int(n):]
			} else {
				for w := p.col.width - 1; w >= 0; w-- {
					x = x<<8 | uint64(data[w])
				}
				data = data[p.col.width:]
			}
			h := k.hash(text, x)
			if i == 0 {
				out = append(out, h)
			} else {
				out[at+r] = combine(out[at+r], h)
			}
		}
	}
	return out
}

func (k *shardKey) hash(text []byte, x uint64) uint64 {
	switch {
	case k.fn == shardValue:
		return x
	case text == nil:
		return intHash64(x)
	case k.fn == shardXX:
		return xxhash.Sum64(text)
	}
	return city.CH64(text)
}

// intHash64 is ClickHouse's: a finalizer of MurmurHash over a changed value.
func intHash64(x uint64) uint64 {
	x ^= 0x4CF2D2BAAE6DA887
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// combine is CityHash's 128 to 64 bits, by which hashes of several arguments are one.
func combine(a, b uint64) uint64 {
	const mul = 0x9ddfea08eb382d69
	x := (a ^ b) * mul
	x ^= x >> 47
	y := (b ^ x) * mul
	y ^= y >> 47
	return y * mul
}

// samples are literals that an expression is tried with, and what they are.
var samples = []struct {
	text string
	x    int64
}{{"", 0}, {"a", -1}, {"0123456789abcdefghijklmnopqrstuvwxyz", 42}, {strings.Repeat("long text ", 20), 1<<40 + 7}, {"日本", -(1 << 33)}}

// prove compares the expression of samples with what the server makes of them.
func (k *shardKey) prove(ctx context.Context, s *server) error {
	if k.fn == shardRandom || k.fn == shardValue {
		return nil
	}
	for i := range samples {
		var exprs []string
		want := uint64(0)
		for j := range k.parts {
			p := &k.parts[j]
			sm := samples[(i+j)%len(samples)]
			var text []byte
			x := uint64(0)
			literal := quoteText(sm.text)
			if p.texts {
				text = append([]byte{}, sm.text...)
			} else {
				mask := ^uint64(0) >> (64 - 8*p.col.width)
				x = uint64(sm.x) & mask
				literal = "reinterpretAs" + unsignedName(p.col.width) + "(" + quoteRaw(x, p.col.width) + ")"
				literal = "CAST(" + literal + ", " + quoteText(bareTime(p.typ)) + ")"
			}
			exprs = append(exprs, literal+" AS "+quoteName(p.name))
			h := k.hash(text, x)
			if j == 0 {
				want = h
			} else {
				want = combine(want, h)
			}
		}
		var got uint64
		err := s.retried(ctx, func(ctx context.Context) error {
			return s.conn.QueryRow(ctx, "SELECT toUInt64("+k.text+") FROM (SELECT "+strings.Join(exprs, ", ")+")").Scan(&got)
		})
		if err != nil {
			return fmt.Errorf("trying the sharding key %s: %w", k.text, err)
		}
		if got != want {
			return fmt.Errorf("not_yet: sharding key %s, for which this server (version %s) computes %d where this program computes %d", k.text, s.version, got, want)
		}
	}
	return nil
}

func unsignedName(width int) string { return "UInt" + strconv.Itoa(8*width) }

// bareTime is a type of the same bits to which a number is cast: DateTime by its name
// alone, for the zone changes no bit.
func bareTime(typ string) string { return withoutZones(typ) }

// quoteRaw is a number's bytes as a text literal, as reinterpretAsUIntN reads them.
func quoteRaw(x uint64, width int) string {
	x = bits.ReverseBytes64(x) >> (64 - 8*width)
	return fmt.Sprintf("unhex('%0*x')", 2*width, x)
}
