package fn

import (
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// A pattern that goes by its landmark finds what the regular expression alone finds,
// in texts made of the pattern's own pieces.
func TestLandmarkChangesNoMatch(t *testing.T) {
	for _, p := range []string{
		`(&|^)channel_id=([^&]*)`, `^ab`, `a?b{0,3}cd`, `(a|bc|^)d(e)`, `é(ü|.)xyz$`, `\bab`, `(?m)^ab$`, `(?i)ab(c)`, `x*ab`, `(ab|cd)`,
		`(?:^|,)ab=(\d+)`, `.ab`, `(?s).{2}ab`, `\Aab\z`, `(^a|b)ab`, `[^a]ab`, `a+(bc)`, `()ab`, `(?:ab){2}c`, `ab|`, `(.)(.)ab\B`, "\uFFFDab",
	} {
		re := regexp.MustCompile(p)
		with, err := newPattern(p)
		if err != nil {
			t.Fatal(err)
		}
		pieces := []string{"ab", "a", "b", "cd", "abc", "&", "channel_id=", "é", "ü", "xyz", "😀", "\n", ",", "ab=12", "e", "d", " ", "\xff", "\uFFFD", "channel_id"}
		seed := rand.Uint64()
		rnd := rand.New(rand.NewPCG(seed, 1))
		for range 3000 {
			var s strings.Builder
			for range rnd.IntN(9) {
				s.WriteString(pieces[rnd.IntN(len(pieces))])
			}
			text := []byte(s.String())
			if got, want := with.find(text), re.FindSubmatchIndex(text); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: %q in %q: found at %v, want %v", seed, p, text, got, want)
			}
			if got, want := with.matches(text), re.Match(text); got != want {
				t.Fatalf("seed %d: %q in %q: matches %v, want %v", seed, p, text, got, want)
			}
		}
	}
}

func TestLandmarkOfPattern(t *testing.T) {
	for p, want := range map[string]struct {
		text   string
		before int
		cuts   bool
	}{
		`(&|^)channel_id=([^&]*)`: {"channel_id=", 4, true},
		`a.*long(b)`:              {"long", unbounded, false},
		`\blong`:                  {"long", 0, false},
		`ab(cd|e)fgh`:             {"fgh", 16, true},
		`(?i)long`:                {},
		`a|b`:                     {},
	} {
		re, err := newPattern(p)
		if err != nil {
			t.Fatal(err)
		}
		m := re.landmark
		if m == nil {
			m = &landmark{}
		}
		if string(m.text) != want.text || m.before != want.before || (m.inside != nil) != want.cuts {
			t.Errorf("%s: text %q, %d bytes before it, cuts %v; want %+v", p, m.text, m.before, m.inside != nil, want)
		}
	}
}

// The regular expression of Nexmark's q21, over addresses with and without a match.
func BenchmarkRegexpExtract(b *testing.B) {
	re, err := newPattern(`(&|^)channel_id=([^&]*)`)
	if err != nil {
		b.Fatal(err)
	}
	bare := []byte("https://www.nexmark.com/abcdefghij/klmnopqrst/uvwxyzabcd/item.htm?query=1")
	texts := [][]byte{bare, append(bare[:len(bare):len(bare)], "&channel_id=1234567"...)}
	for _, way := range []struct {
		name string
		find func([]byte) []int
	}{{"landmark", re.find}, {"regexp", re.FindSubmatchIndex}} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				way.find(texts[i&1])
			}
		})
	}
}
