package fn

import (
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/runtime/batch"
)

func similarTo() *Function {
	f := str("SIMILAR TO", "s SIMILAR TO pattern [ESCAPE c]", "TRUE if the whole of s matches a pattern of SQL: % stands for any characters, _ and . for one other than a line break, | ( ) * + ? {n,m} [a-z] [^a-z] [[:ALPHA:]] for what they do in regular expressions. The ESCAPE character before one of them takes it literally.",
		bindSimilar, Example{"'abc' SIMILAR TO 'a(b|x)c'", "TRUE"}, Example{"'abc' SIMILAR TO '[a-b]+'", "FALSE"}, Example{"'a%c' SIMILAR TO 'a!%c' ESCAPE '!'", "TRUE"})
	f.Infix, f.Category = true, CatComparison
	return f
}

// similarSpecials are the characters that an ESCAPE character may precede, but
// for itself.
const similarSpecials = "[]()|^-+*_%?{}"

// similarClasses are the named classes inside of brackets, in upper or in lower
// case.
var similarClasses = map[string]string{
	"ALPHA": "a-zA-Z", "UPPER": "A-Z", "LOWER": "a-z", "DIGIT": "0-9", "SPACE": " ", "WHITESPACE": ` \t\n\x0b\f\r`, "ALNUM": "a-zA-Z0-9",
}

// similarRegexp is a pattern of SIMILAR TO as a regular expression, escape -1
// for none. What the characters mean is as in Flink, which hands most of them
// to a regular expression too, so that a point is any character.
func similarRegexp(p string, escape rune) (string, error) {
	const any = `[^\n\r\x{85}\x{2028}\x{2029}]`
	var b strings.Builder
	b.WriteString(`\A(?:`)
	open := 0 // parentheses
	for len(p) > 0 {
		r, n := utf8.DecodeRuneInString(p)
		rest := p[n:]
		switch {
		case r == escape:
			lit, m, err := similarEscaped(rest, escape)
			if err != nil {
				return "", err
			}
			b.WriteString(lit)
			rest = rest[m:]
		case r == '_' || r == '.':
			b.WriteString(any)
		case r == '%':
			b.WriteString(`(?s:.*)`)
		case r == '[':
			var err error
			if rest, err = similarBrackets(&b, rest, escape); err != nil {
				return "", err
			}
		case r == ']':
			return "", errors.New("] without [")
		case r == '\\' || r == '$':
			b.WriteString(regexp.QuoteMeta(string(r)))
		case r == '{' && !similarRepeat(rest):
			return "", errors.New("{ must begin a repetition, {n}, {n,} or {n,m}")
		case r == '(' && strings.HasPrefix(rest, "?"):
			return "", errors.New("nothing before ? to repeat")
		case r == ')' && open == 0:
			// It would close the group around the pattern.
			return "", errors.New(") without (")
		case r == '(':
			open++
			b.WriteByte('(')
		case r == ')':
			open--
			b.WriteByte(')')
		default:
			b.WriteString(p[:n])
		}
		p = rest
	}
	if open > 0 {
		return "", errors.New("( without )")
	}
	b.WriteString(`)\z`)
	return b.String(), nil
}

// similarEscaped reads what follows the ESCAPE character, as a literal and by its
// length.
func similarEscaped(p string, escape rune) (string, int, error) {
	r, n := utf8.DecodeRuneInString(p)
	if n == 0 || r != escape && !strings.ContainsRune(similarSpecials, r) {
		return "", 0, errors.New("the escape character must be followed by itself or one of " + similarSpecials)
	}
	return regexp.QuoteMeta(p[:n]), n, nil
}

// similarBrackets writes an enumeration, whose [ is read, and gives what follows
// it.
func similarBrackets(b *strings.Builder, p string, escape rune) (string, error) {
	b.WriteByte('[')
	for len(p) > 0 {
		r, n := utf8.DecodeRuneInString(p)
		rest := p[n:]
		switch {
		case r == ']':
			b.WriteByte(']')
			return rest, nil
		case r == escape:
			lit, m, err := similarEscaped(rest, escape)
			if err != nil {
				return "", err
			}
			if lit == "-" {
				lit = `\-`
			}
			b.WriteString(lit)
			rest = rest[m:]
		case r == '[' && strings.HasPrefix(rest, ":"):
			name, behind, ok := strings.Cut(rest[1:], ":]")
			class := similarClasses[strings.ToUpper(name)]
			if !ok || class == "" || name != strings.ToUpper(name) && name != strings.ToLower(name) {
				return "", errors.New("no such class of characters: [" + rest)
			}
			b.WriteString(class)
			rest = behind
		case r == '-' || r == '^':
			b.WriteRune(r)
		case strings.ContainsRune(similarSpecials, r):
			return "", errors.New(string(r) + " inside of [ ] needs the ESCAPE character")
		case r == '&' && strings.HasPrefix(rest, "&"):
			return "", errors.New("&& inside of [ ] is not supported")
		default:
			b.WriteString(regexp.QuoteMeta(p[:n]))
		}
		p = rest
	}
	return "", errors.New("[ without ]")
}

// similarRepeat reports whether n}, n,} or n,m} follows.
func similarRepeat(p string) bool {
	body, _, ok := strings.Cut(p, "}")
	lo, hi, _ := strings.Cut(body, ",")
	return ok && lo != "" && strings.Trim(lo+hi, "0123456789") == ""
}

func compileSimilar(p string, escape rune) (*regexp.Regexp, error) {
	src, err := similarRegexp(p, escape)
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(src)
	if err != nil {
		return nil, errors.New("it is no pattern of SIMILAR TO: " + strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return re, nil
}

// similarKey is what a call site remembers a pattern by.
type similarKey struct {
	pattern string
	escape  rune
}

func bindSimilar(args []Arg) (Bound, error) {
	b, err := bindFixed("SIMILAR TO", args, tBool.NotNull(), 1, similarKernel, []param{pString, pString, pString})
	if err != nil {
		return b, err
	}
	escape, constant := rune(-1), true
	if len(args) > 2 {
		var s string
		if s, constant = args[2].Text(); constant {
			if utf8.RuneCountInString(s) != 1 {
				return b, argErrf(2, "ESCAPE %s is not one character", quote(s))
			}
			escape, _ = utf8.DecodeRuneInString(s)
		}
	}
	p, literal := args[1].Text()
	if !literal || !constant {
		return b, nil
	}
	re, err := compileSimilar(p, escape)
	if err != nil {
		return b, argErrf(1, "pattern %s: %s", quote(p), err)
	}
	b.Kernel = matching(re.Match)
	return b, nil
}

// similarKernel is SIMILAR TO with a pattern that is known row by row.
func similarKernel(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	cache, ok := (*ctx.scratch).(map[similarKey]*regexp.Regexp)
	if !ok {
		cache = map[similarKey]*regexp.Regexp{}
		*ctx.scratch = cache
	}
	for _, i := range sel {
		key := similarKey{escape: -1}
		if len(args) > 2 {
			var ok bool
			if key.escape, ok = escapeOf(ctx, args[2], i, out); !ok {
				continue
			}
		}
		p := text(args[1], i)
		key.pattern = string(p)
		re := cache[key]
		if re == nil {
			var err error
			if re, err = compileSimilar(key.pattern, key.escape); err != nil {
				ctx.Fail(out, i, batch.CodeArgument, "SIMILAR TO %s: %s", quote(p), err)
				continue
			}
			if len(cache) >= patternCacheSize {
				clear(cache)
			}
			cache[key] = re
		}
		if re.Match(text(args[0], i)) {
			out.Bools.Set(int(i))
		}
	}
}
