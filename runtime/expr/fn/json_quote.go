package fn

import (
	"unicode/utf16"
	"unicode/utf8"
)

// jsonQuotes are JSON_QUOTE and JSON_UNQUOTE.
func jsonQuotes() []*Function {
	f := func(name, doc string, k func(dst, s []byte) []byte, ex ...Example) *Function {
		return &Function{Name: name, Syntax: []string{name + "(s)"}, Category: CatJSON, Doc: doc, Bind: fixed(name, notNullString, 0, each(k), pString), Examples: ex}
	}
	return []*Function{
		f("JSON_QUOTE", `s as a JSON string in double quotes, with \ before ", \ and /, as \b \f \n \r \t, and with characters outside ASCII as \uXXXX.`, jsonQuote,
			Example{`JSON_QUOTE('a"b')`, `"a\"b"`}, Example{"JSON_QUOTE('é')", `"\u00e9"`}),
		f("JSON_UNQUOTE", "The text of a JSON string in double quotes; s itself if it is none.", jsonUnquote,
			Example{`JSON_UNQUOTE('"a\"b"')`, `a"b`}, Example{"JSON_UNQUOTE('[1]')", "[1]"}),
	}
}

func jsonQuote(dst, s []byte) []byte {
	dst = append(dst, '"')
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		s = s[n:]
		switch {
		case r == '"' || r == '\\' || r == '/':
			dst = append(dst, '\\', byte(r))
		case r < utf8.RuneSelf && shortEscape(byte(r)) != 0:
			dst = append(dst, '\\', shortEscape(byte(r)))
		case r < utf8.RuneSelf:
			dst = append(dst, byte(r))
		case r < 0x10000:
			dst = appendUnit(dst, r)
		default:
			hi, lo := utf16.EncodeRune(r)
			dst = appendUnit(appendUnit(dst, hi), lo)
		}
	}
	return append(dst, '"')
}

// appendUnit appends a UTF-16 unit as \uXXXX.
func appendUnit(dst []byte, u rune) []byte {
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', digits[u>>12&15], digits[u>>8&15], digits[u>>4&15], digits[u&15])
}

func jsonUnquote(dst, s []byte) []byte {
	if len(s) < 2 || s[0] != '"' {
		return append(dst, s...)
	}
	for _, c := range s {
		if c < ' ' {
			return append(dst, s...) // not allowed within a string by RFC 8259
		}
	}
	p := jsonParser{s: s}
	if _, ok := p.str(); !ok || p.i != len(s) {
		return append(dst, s...)
	}
	return appendUnescaped(dst, s[1:len(s)-1])
}
