package fn

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/runtime/batch"
)

// The clauses of JSON functions are passed as string literals after the path:
//
//	JSON_VALUE(s, path [, onEmpty, emptyDefault, onError, errorDefault])
//	    on...: 'NULL', 'ERROR', 'DEFAULT' (the default counts with DEFAULT only)
//	JSON_QUERY(s, path [, wrapper, onEmpty, onError])
//	    wrapper: 'WITHOUT', 'CONDITIONAL', 'UNCONDITIONAL'
//	    on...: 'NULL', 'EMPTY ARRAY', 'EMPTY OBJECT', 'ERROR'
//	JSON_EXISTS(s, path [, onError])  onError: 'TRUE', 'FALSE', 'UNKNOWN', 'ERROR'
//	IS JSON(s [, kind])               kind: 'VALUE', 'SCALAR', 'ARRAY', 'OBJECT'
func jsonFunctions() []*Function {
	f := func(name string, syntax []string, doc string, bind func([]Arg) (Bound, error), ex ...Example) *Function {
		return &Function{Name: name, Syntax: syntax, Category: CatJSON, Doc: doc, Bind: bind, Examples: ex}
	}
	jv := f("JSON_VALUE", []string{"JSON_VALUE(s, path [RETURNING type] [NULL | ERROR | DEFAULT v ON EMPTY] [NULL | ERROR | DEFAULT v ON ERROR])"},
		"The scalar at a path of a JSON text, as STRING (a number as it is written) unless RETURNING says otherwise. Empty (no value, or JSON null) and error (no JSON text, no scalar, a missing member of a strict path) give NULL unless clauses say otherwise. Paths are strict unless they begin with lax.",
		bindJSONValue, Example{`JSON_VALUE('{"a": true}', '$.a')`, "true"}, Example{`JSON_VALUE('{"a": {"b": [1.10, 2]}}', '$.a.b[0]')`, "1.10"},
		Example{`JSON_VALUE('{"a": 1}', '$.x')`, "NULL"}, Example{`JSON_VALUE('{"a": 1}', 'lax $.x', 'DEFAULT', 'none', 'NULL', '')`, "none"}, Example{`JSON_VALUE('broken', '$.a')`, "NULL"})
	jv.Nulls = NullCalled
	is := f("IS JSON", []string{"s IS JSON [VALUE | SCALAR | ARRAY | OBJECT]"}, "TRUE if s is a JSON text (of that kind); FALSE for NULL.", bindIsJSON,
		Example{`'{"a": 1}' IS JSON`, "TRUE"}, Example{`'[1' IS JSON`, "FALSE"}, Example{`'[1]' IS JSON ARRAY`, "TRUE"}, Example{`'1' IS JSON OBJECT`, "FALSE"})
	is.Postfix, is.Nulls = true, NullCalled
	return []*Function{
		jv,
		f("JSON_QUERY", []string{"JSON_QUERY(s, path [WITHOUT | WITH [CONDITIONAL | UNCONDITIONAL] ARRAY WRAPPER] [... ON EMPTY] [... ON ERROR])"},
			"The object or array at a path of a JSON text, as compact JSON text. A path with * selects the array of all it finds. A scalar is an error without a wrapper. Empty and error give NULL unless clauses say otherwise.",
			bindJSONQuery, Example{`JSON_QUERY('{"a": {"b": [1, 2]}}', '$.a')`, `{"b":[1,2]}`}, Example{`JSON_QUERY('{"a": 1}', '$.a')`, "NULL"},
			Example{`JSON_QUERY('{"a": 1}', '$.a', 'CONDITIONAL', 'NULL', 'NULL')`, "[1]"}),
		f("JSON_EXISTS", []string{"JSON_EXISTS(s, path [TRUE | FALSE | UNKNOWN | ERROR ON ERROR])"}, "TRUE if the path selects something of a JSON text, other than null. No JSON text gives FALSE unless ON ERROR says otherwise.",
			bindJSONExists, Example{`JSON_EXISTS('{"a": null}', '$.a')`, "FALSE"}, Example{`JSON_EXISTS('{"a": 1}', '$.b')`, "FALSE"}),
		f("JSON_STRING", []string{"JSON_STRING(v)"}, "Any value as JSON text. Times are strings in ISO form, bytes are Base64; NULL gives NULL.", bindJSONString,
			Example{"JSON_STRING(1)", "1"}, Example{"JSON_STRING('a\"b')", `"a\"b"`}, Example{"JSON_STRING(ARRAY[1, NULL])", "[1,null]"}, Example{"JSON_STRING(MAP['k', TRUE])", `{"k":true}`}),
		is,
	}
}

// jsonAccess is what the functions with a path have in common.
type jsonAccess struct {
	path  *jsonPath // nil: from argument 1, row by row
	found []int32
	// many says that the last row's path has a *, so that it selects an array of
	// what it found, be it none or one.
	many bool
}

func bindPath(name string, args []Arg) (*jsonPath, error) {
	s, ok := args[1].Text()
	if !ok {
		return nil, nil
	}
	p, err := compileJSONPath(s)
	if err != nil {
		return nil, argErrf(1, "path %s: %s", quote(s), err)
	}
	return p, nil
}

// row selects; state is the outcome before any clause is applied.
type jsonState uint8

const (
	jsonOK jsonState = iota
	jsonEmpty
	jsonError
	jsonFailed // an error value is set already
)

func (a *jsonAccess) row(ctx *Context, docs *jsonCache, args []*batch.Vec, i int32, out *batch.Vec) ([]int32, jsonState) {
	p := a.path
	if p == nil {
		var err error
		if p, err = compileJSONPath(string(text(args[1], i))); err != nil {
			ctx.Fail(out, i, batch.CodeArgument, "path %s: %s", quote(text(args[1], i)), err)
			return nil, jsonFailed
		}
	}
	a.many = p.wildcard()
	root, ok := docs.root(i)
	if !ok {
		return nil, jsonError
	}
	found, missing := p.find(a.found[:0], docs, text(args[0], i), root)
	a.found = found
	switch {
	case missing && !a.many:
		return nil, jsonError
	case len(found) == 0 && (missing || !a.many):
		return nil, jsonEmpty
	}
	return found, jsonOK
}

// clause reads a literal behaviour argument.
func clause(name string, args []Arg, i int, def string, allowed ...string) (string, error) {
	if i >= len(args) {
		return def, nil
	}
	s, ok := args[i].Text()
	if s = strings.ToUpper(s); !ok || !slices.Contains(allowed, s) {
		return "", argErrf(i, "%s: the clause must be one of %s", name, strings.Join(allowed, ", "))
	}
	return s, nil
}

func bindJSONValue(args []Arg) (Bound, error) {
	const name = "JSON_VALUE"
	if err := count(name, args, 2, 6); err != nil {
		return Bound{}, err
	}
	b, err := bindFixed(name, args, tString, 4, nil, []param{pString, pString, pString, pString, pString, pString})
	if err != nil {
		return b, err
	}
	path, err := bindPath(name, args)
	if err != nil {
		return b, err
	}
	onEmpty, err := clause(name, args, 2, "NULL", "NULL", "ERROR", "DEFAULT")
	if err != nil {
		return b, err
	}
	onError, err := clause(name, args, 4, "NULL", "NULL", "ERROR", "DEFAULT")
	if err != nil {
		return b, err
	}
	b.Kernel = func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		acc := jsonAccess{path: path}
		docs := ctx.jsonDocs(args[0])
		for _, i := range sel {
			if null(args[0], i) || null(args[1], i) {
				out.NullRow(int(i))
				continue
			}
			found, st := acc.row(ctx, docs, args, i, out)
			if st == jsonOK {
				switch {
				case acc.many || docs.nodes[found[0]].kind >= jsonArray:
					st = jsonError
				case docs.nodes[found[0]].kind == jsonNull:
					st = jsonEmpty
				default:
					putScalar(out, i, &docs.nodes[found[0]], text(args[0], i))
				}
			}
			switch st {
			case jsonEmpty:
				jsonFallback(ctx, out, i, onEmpty, args, 3, "no value at the path")
			case jsonError:
				jsonFallback(ctx, out, i, onError, args, 5, "no JSON, no scalar, or a missing member")
			}
		}
	}
	return b, nil
}

func putScalar(out *batch.Vec, i int32, n *jsonNode, s []byte) {
	out.BeginBytes(int(i))
	switch {
	case n.kind == jsonString && n.escaped:
		out.Data = appendUnescaped(out.Data, s[n.start+1:n.end-1])
	case n.kind == jsonString:
		out.Data = append(out.Data, s[n.start+1:n.end-1]...)
	default:
		out.Data = append(out.Data, s[n.start:n.end]...)
	}
	out.EndBytes()
}

func jsonFallback(ctx *Context, out *batch.Vec, i int32, how string, args []*batch.Vec, def int, why string) {
	switch {
	case how == "ERROR":
		ctx.Fail(out, i, batch.CodeArgument, "%s: %s in %s", "JSON", why, quote(text(args[0], i)))
	case how == "DEFAULT" && def < len(args) && !null(args[def], i):
		out.PutBytes(int(i), text(args[def], i))
	default:
		out.NullRow(int(i))
	}
}

func bindJSONQuery(args []Arg) (Bound, error) {
	const name = "JSON_QUERY"
	b, err := bindFixed(name, args, tString, 3, nil, []param{pString, pString, pString, pString, pString})
	if err != nil {
		return b, err
	}
	path, err := bindPath(name, args)
	if err != nil {
		return b, err
	}
	wrapper, err := clause(name, args, 2, "WITHOUT", "WITHOUT", "CONDITIONAL", "UNCONDITIONAL")
	if err != nil {
		return b, err
	}
	behaviours := []string{"NULL", "EMPTY ARRAY", "EMPTY OBJECT", "ERROR"}
	onEmpty, err := clause(name, args, 3, "NULL", behaviours...)
	if err != nil {
		return b, err
	}
	onError, err := clause(name, args, 4, "NULL", behaviours...)
	if err != nil {
		return b, err
	}
	b.Kernel = func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		acc := jsonAccess{path: path}
		docs := ctx.jsonDocs(args[0])
		for _, i := range sel {
			found, st := acc.row(ctx, docs, args, i, out)
			if st == jsonOK && !putQuery(out, i, docs, found, acc.many, wrapper, text(args[0], i)) {
				st = jsonError
				if docs.nodes[found[0]].kind == jsonNull {
					st = jsonEmpty
				}
			}
			how := onError
			if st == jsonEmpty {
				how = onEmpty
			}
			if st == jsonOK || st == jsonFailed {
				continue
			}
			switch how {
			case "EMPTY ARRAY":
				out.PutString(int(i), "[]")
			case "EMPTY OBJECT":
				out.PutString(int(i), "{}")
			case "ERROR":
				ctx.Fail(out, i, batch.CodeArgument, "no object or array at the path in %s", quote(text(args[0], i)))
			default:
				out.NullRow(int(i))
			}
		}
	}
	return b, nil
}

// putQuery writes the selected values; false for null, and if a scalar lacks its
// wrapper.
func putQuery(out *batch.Vec, i int32, docs *jsonCache, found []int32, many bool, wrapper string, s []byte) bool {
	if !many && docs.nodes[found[0]].kind == jsonNull {
		return false
	}
	scalar := !many && docs.nodes[found[0]].kind < jsonArray
	if scalar && wrapper == "WITHOUT" {
		return false
	}
	wrap := wrapper == "UNCONDITIONAL" || scalar
	out.BeginBytes(int(i))
	if wrap {
		out.Data = append(out.Data, '[')
	}
	if many {
		out.Data = append(out.Data, '[')
	}
	for k, f := range found {
		if k > 0 {
			out.Data = append(out.Data, ',')
		}
		n := &docs.nodes[f]
		out.Data = appendCompact(out.Data, s[n.start:n.end])
	}
	if many {
		out.Data = append(out.Data, ']')
	}
	if wrap {
		out.Data = append(out.Data, ']')
	}
	out.EndBytes()
	return true
}

func bindJSONExists(args []Arg) (Bound, error) {
	const name = "JSON_EXISTS"
	b, err := bindFixed(name, args, tBool, 1, nil, []param{pString, pString, pString})
	if err != nil {
		return b, err
	}
	path, err := bindPath(name, args)
	if err != nil {
		return b, err
	}
	onError, err := clause(name, args, 2, "FALSE", "TRUE", "FALSE", "UNKNOWN", "ERROR")
	if err != nil {
		return b, err
	}
	b.Kernel = func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		acc := jsonAccess{path: path}
		docs := ctx.jsonDocs(args[0])
		for _, i := range sel {
			found, st := acc.row(ctx, docs, args, i, out)
			if st == jsonOK && !acc.many && docs.nodes[found[0]].kind == jsonNull {
				continue
			}
			switch {
			case st == jsonOK || st == jsonError && onError == "TRUE":
				out.Bools.Set(int(i))
			case st == jsonError && onError == "UNKNOWN":
				out.NullRow(int(i))
			case st == jsonError && onError == "ERROR":
				ctx.Fail(out, i, batch.CodeArgument, "no JSON, or a missing member, in %s", quote(text(args[0], i)))
			}
		}
	}
	return b, nil
}

func bindIsJSON(args []Arg) (Bound, error) {
	const name = "IS JSON"
	b, err := bindFixed(name, args, tBool.NotNull(), 1, nil, []param{pString, pString})
	if err != nil {
		return b, err
	}
	b.Return = tBool.NotNull()
	kind, err := clause(name, args, 1, "VALUE", "VALUE", "SCALAR", "ARRAY", "OBJECT")
	if err != nil {
		return b, err
	}
	b.Kernel = func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		docs := ctx.jsonDocs(args[0])
		for _, i := range sel {
			if null(args[0], i) {
				continue
			}
			root, ok := docs.root(i)
			if !ok {
				continue
			}
			k := docs.nodes[root].kind
			if kind == "VALUE" || kind == "SCALAR" && k < jsonArray || kind == "ARRAY" && k == jsonArray || kind == "OBJECT" && k == jsonObject {
				out.Bools.Set(int(i))
			}
		}
	}
	return b, nil
}
