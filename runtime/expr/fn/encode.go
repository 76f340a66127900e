package fn

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/millrace/millrace/runtime/batch"
)

func encodeFunctions() []*Function {
	f := func(name, syntax, doc string, bind func([]Arg) (Bound, error), ex ...Example) *Function {
		return &Function{Name: name, Syntax: []string{syntax}, Category: CatHash, Doc: doc, Bind: bind, Examples: ex}
	}
	id := f("UUID", "UUID()", "A random UUID (version 4), another one for each row and each call.", fixed("UUID", notNullString, 0, newUUID), Example{"CHAR_LENGTH(UUID())", "36"})
	id.Determinism = PerCall
	return []*Function{
		f("MD5", "MD5(s)", "MD5 hash as 32 hexadecimal digits.", fixed("MD5", notNullString, 0, each(func(dst, s []byte) []byte {
			h := md5.Sum(s)
			return hex.AppendEncode(dst, h[:])
		}), pText), Example{"MD5('abc')", "900150983cd24fb0d6963f7d28e17f72"}),
		f("SHA256", "SHA256(s)", "SHA-256 hash as 64 hexadecimal digits.", fixed("SHA256", notNullString, 0, each(sha256Hex), pText), Example{"SHA256('abc')", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}),
		f("TO_BASE64", "TO_BASE64(s)", "Base64 of the bytes of s.", fixed("TO_BASE64", notNullString, 0, each(base64.StdEncoding.AppendEncode), pText), Example{"TO_BASE64('hello world')", "aGVsbG8gd29ybGQ="}),
		f("FROM_BASE64", "FROM_BASE64(s)", "The text that Base64 encodes. What is not Base64, or not UTF-8 text, is an error.", fixed("FROM_BASE64", notNullString, 0, fromBase64, pString),
			Example{"FROM_BASE64('aGVsbG8gd29ybGQ=')", "hello world"}, Example{"FROM_BASE64('***')", "error:invalid_argument"}),
		id,
		f("PARSE_URL", "PARSE_URL(url, part [, key])", "A part of a URL: HOST, PATH, QUERY, REF, PROTOCOL, FILE, AUTHORITY, USERINFO; with QUERY and a key the value of that parameter. NULL if it is not there.",
			fixed("PARSE_URL", tString, 1, parseURL, pString, pString, pString),
			Example{"PARSE_URL('http://facebook.com/path1/p.php?k1=v1&k2=v2#Ref1', 'HOST')", "facebook.com"},
			Example{"PARSE_URL('http://facebook.com/path1/p.php?k1=v1&k2=v2#Ref1', 'QUERY', 'k1')", "v1"}),
	}
}

func newUUID(ctx *Context, _ []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		var u uuid.UUID
		binary.LittleEndian.PutUint64(u[:8], ctx.Rand.Uint64())
		binary.LittleEndian.PutUint64(u[8:], ctx.Rand.Uint64())
		u[6] = u[6]&0x0f | 0x40
		u[8] = u[8]&0x3f | 0x80
		out.PutString(int(i), u.String())
	}
}

func fromBase64(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		s := text(args[0], i)
		out.BeginBytes(int(i))
		n := len(out.Data)
		d, err := base64.StdEncoding.AppendDecode(out.Data, s)
		if err != nil || !utf8.Valid(d[n:]) {
			ctx.Fail(out, i, batch.CodeArgument, "%s is not Base64 of UTF-8 text", quote(s))
			continue
		}
		out.Data = d
		out.EndBytes()
	}
}

func parseURL(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		v, ok := urlPart(string(text(args[0], i)), string(text(args[1], i)))
		if ok && len(args) > 2 {
			if v, ok = queryValue(v, string(text(args[2], i))); string(text(args[1], i)) != "QUERY" {
				ok = false
			}
		}
		if !ok {
			out.NullRow(int(i))
			continue
		}
		out.PutString(int(i), v)
	}
}

// urlPart takes a URL apart as java.net.URL does: nothing is unescaped.
func urlPart(u, part string) (string, bool) {
	scheme, rest, ok := strings.Cut(u, ":")
	if !ok || scheme == "" || strings.ContainsAny(scheme, "/?#") {
		return "", false
	}
	rest, ref, hasRef := strings.Cut(rest, "#")
	authority := ""
	if strings.HasPrefix(rest, "//") {
		rest = rest[2:]
		k := strings.IndexAny(rest, "/?")
		if k < 0 {
			k = len(rest)
		}
		authority, rest = rest[:k], rest[k:]
	}
	path, query, hasQuery := strings.Cut(rest, "?")
	user, host := "", authority
	hasUser := false
	if k := strings.LastIndexByte(authority, '@'); k >= 0 {
		user, host, hasUser = authority[:k], authority[k+1:], true
	}
	switch part {
	case "PROTOCOL":
		return scheme, true
	case "AUTHORITY":
		return authority, authority != ""
	case "USERINFO":
		return user, hasUser
	case "HOST":
		if k := strings.LastIndexByte(host, ':'); k >= 0 && !strings.HasSuffix(host, "]") {
			host = host[:k]
		}
		return host, host != ""
	case "PATH":
		return path, true
	case "FILE":
		return rest, true
	case "QUERY":
		return query, hasQuery
	case "REF":
		return ref, hasRef
	}
	return "", false
}

func queryValue(q, key string) (string, bool) {
	for q != "" {
		var p string
		p, q, _ = strings.Cut(q, "&")
		if k, v, ok := strings.Cut(p, "="); ok && k == key {
			return v, true
		}
	}
	return "", false
}
