package fn

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"unicode/utf8"

	"github.com/millrace/millrace/runtime/batch"
)

// The SHA functions append the digest of s as hexadecimal digits.
func sha1Hex(dst, s []byte) []byte {
	h := sha1.Sum(s)
	return hex.AppendEncode(dst, h[:])
}

func sha224Hex(dst, s []byte) []byte {
	h := sha256.Sum224(s)
	return hex.AppendEncode(dst, h[:])
}

func sha256Hex(dst, s []byte) []byte {
	h := sha256.Sum256(s)
	return hex.AppendEncode(dst, h[:])
}

func sha384Hex(dst, s []byte) []byte {
	h := sha512.Sum384(s)
	return hex.AppendEncode(dst, h[:])
}

func sha512Hex(dst, s []byte) []byte {
	h := sha512.Sum512(s)
	return hex.AppendEncode(dst, h[:])
}

// sha2Of is the hash of the SHA-2 family with so many bits, nil if there is
// none.
func sha2Of(bits int64) func(dst, s []byte) []byte {
	switch bits {
	case 224:
		return sha224Hex
	case 256:
		return sha256Hex
	case 384:
		return sha384Hex
	case 512:
		return sha512Hex
	}
	return nil
}

// hashFunctions are the SHA family and the codes of URLs and hexadecimal text.
func hashFunctions() []*Function {
	f := func(name, syntax, doc string, bind func([]Arg) (Bound, error), ex ...Example) *Function {
		return &Function{Name: name, Syntax: []string{syntax}, Category: CatHash, Doc: doc, Bind: bind, Examples: ex}
	}
	sha := func(name, long string, digits int, h func(dst, s []byte) []byte, want string) *Function {
		return f(name, name+"(s)", long+" hash as "+itoa(digits)+" hexadecimal digits.", fixed(name, notNullString, 0, each(h), pText), Example{name + "('abc')", want})
	}
	return []*Function{
		sha("SHA1", "SHA-1", 40, sha1Hex, "a9993e364706816aba3e25717850c26c9cd0d89d"),
		sha("SHA224", "SHA-224", 56, sha224Hex, "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"),
		sha("SHA384", "SHA-384", 96, sha384Hex, "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"),
		sha("SHA512", "SHA-512", 128, sha512Hex, "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"),
		f("SHA2", "SHA2(s, bits)", "Hash of the SHA-2 family with 224, 256, 384 or 512 bits as hexadecimal digits; another number of bits is an error.", bindSHA2,
			Example{"SHA2('abc', 224)", "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"}),
		f("URL_ENCODE", "URL_ENCODE(s)", "s in the form application/x-www-form-urlencoded of its UTF-8 bytes: a blank is +, other characters than letters, digits and .-*_ are %XX.",
			fixed("URL_ENCODE", notNullString, 0, each(urlEncode), pString), Example{"URL_ENCODE('a b/ü')", "a+b%2F%C3%BC"}),
		f("URL_DECODE", "URL_DECODE(s)", "The text that the form application/x-www-form-urlencoded stands for; NULL if s is not of that form or does not stand for UTF-8 text.",
			fixed("URL_DECODE", tString, 0, urlDecode, pString), Example{"URL_DECODE('a+b%2F%C3%BC')", "a b/ü"}, Example{"URL_DECODE('100%')", "NULL"}),
		f("UNHEX", "UNHEX(s)", "The BYTES of hexadecimal digits; of an odd number of digits the first stands for a zero byte. NULL if s has other characters.",
			fixed("UNHEX", tBytes, 0, unhex, pString), Example{"HEX(UNHEX('466C696E6B'))", "466C696E6B"}, Example{"UNHEX('xy')", "NULL"}),
	}
}

func bindSHA2(args []Arg) (Bound, error) {
	b, err := bindFixed("SHA2", args, notNullString, 0, nil, []param{pText, pInt})
	if err != nil {
		return b, err
	}
	if n, ok := args[1].Int(); ok {
		h := sha2Of(n)
		if h == nil {
			return b, argErrf(1, "SHA2 has 224, 256, 384 or 512 bits, not %d", n)
		}
		b.Kernel = each(h)
		return b, nil
	}
	b.Kernel = func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			n := args[1].Int64(int(i))
			h := sha2Of(n)
			if h == nil {
				ctx.Fail(out, i, batch.CodeArgument, "SHA2 has 224, 256, 384 or 512 bits, not %d", n)
				continue
			}
			out.BeginBytes(int(i))
			out.Data = h(out.Data, text(args[0], i))
			out.EndBytes()
		}
	}
	return b, nil
}

func urlEncode(dst, s []byte) []byte {
	const digits = "0123456789ABCDEF"
	for _, c := range s {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '*' || c == '_':
			dst = append(dst, c)
		case c == ' ':
			dst = append(dst, '+')
		default:
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		}
	}
	return dst
}

func urlDecode(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		s := text(args[0], i)
		out.BeginBytes(int(i))
		start, ok := len(out.Data), true
		for k := 0; k < len(s) && ok; k++ {
			c := s[k]
			switch c {
			case '+':
				c = ' '
			case '%':
				hi, lo := byte(16), byte(16)
				if k+2 < len(s) {
					hi, lo = nibble(s[k+1]), nibble(s[k+2])
				}
				if ok = hi < 16 && lo < 16; ok {
					c = hi<<4 | lo
					k += 2
				}
			}
			out.Data = append(out.Data, c)
		}
		if !ok || !utf8.Valid(out.Data[start:]) {
			out.Data = out.Data[:start]
			out.NullRow(int(i))
			continue
		}
		out.EndBytes()
	}
}

func unhex(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		s := text(args[0], i)
		out.BeginBytes(int(i))
		start, ok := len(out.Data), true
		if len(s)%2 == 1 {
			ok = nibble(s[0]) < 16
			out.Data = append(out.Data, 0)
			s = s[1:]
		}
		for ; ok && len(s) > 0; s = s[2:] {
			hi, lo := nibble(s[0]), nibble(s[1])
			ok = hi < 16 && lo < 16
			out.Data = append(out.Data, hi<<4|lo)
		}
		if !ok {
			out.Data = out.Data[:start]
			out.NullRow(int(i))
			continue
		}
		out.EndBytes()
	}
}

// nibble is the value of a hexadecimal digit, 16 for anything else.
func nibble(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 16
}
