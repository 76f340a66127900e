package fn

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

func ascii(s []byte) bool {
	for _, c := range s {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func upper(dst, s []byte) []byte {
	if ascii(s) {
		for _, c := range s {
			if c >= 'a' && c <= 'z' {
				c -= 'a' - 'A'
			}
			dst = append(dst, c)
		}
		return dst
	}
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		if r == 'ß' {
			// The one common letter whose upper case is two, as in Java.
			dst = append(dst, 'S', 'S')
		} else {
			dst = utf8.AppendRune(dst, unicode.ToUpper(r))
		}
		s = s[n:]
	}
	return dst
}

func lower(dst, s []byte) []byte {
	if ascii(s) {
		for _, c := range s {
			if c >= 'A' && c <= 'Z' {
				c += 'a' - 'A'
			}
			dst = append(dst, c)
		}
		return dst
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRune(s[i:])
		switch r {
		case 'Σ':
			r = sigma(s[:i], s[i+n:])
		case 'İ':
			dst, r = append(dst, 'i'), 0x307 // its dot stays
		default:
			r = unicode.ToLower(r)
		}
		dst = utf8.AppendRune(dst, r)
		i += n
	}
	return dst
}

// sigma is the lower case of Σ between two texts: final behind a cased letter
// with none that follows. What belongs to a word without a case of its own, as
// an apostrophe does, is passed over.
func sigma(before, after []byte) rune {
	cased := func(s []byte, decode func([]byte) (rune, int), rest func([]byte, int) []byte) bool {
		for len(s) > 0 {
			r, n := decode(s)
			s = rest(s, n)
			switch {
			case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk), strings.ContainsRune("'.:··՟״‘’․‧︓﹒﹕＇．：", r):
			default:
				return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt, unicode.Other_Lowercase, unicode.Other_Uppercase)
			}
		}
		return false
	}
	if cased(before, utf8.DecodeLastRune, func(s []byte, n int) []byte { return s[:len(s)-n] }) &&
		!cased(after, utf8.DecodeRune, func(s []byte, n int) []byte { return s[n:] }) {
		return 'ς'
	}
	return 'σ'
}

func initcap(dst, s []byte) []byte {
	inWord := false
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		s = s[n:]
		word := unicode.IsLetter(r) || unicode.IsDigit(r)
		switch {
		case word && !inWord:
			r = unicode.ToUpper(r)
		case word:
			r = unicode.ToLower(r)
		}
		inWord = word
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}
