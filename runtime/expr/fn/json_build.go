package fn

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// The clauses of JSON_OBJECT and JSON_ARRAY are two string literals behind the
// values: NULL or ABSENT for ON NULL, and for each value v, or j when it is the
// result of another constructor, which goes in as it is.
func jsonBuilders() []*Function {
	f := func(name string, syntax []string, doc string, bind func([]Arg) (Bound, error), ex ...Example) *Function {
		return &Function{Name: name, Syntax: syntax, Category: CatJSON, Doc: doc, Nulls: NullCalled, Bind: bind, Examples: ex}
	}
	values := " Values become JSON as in JSON_STRING; the result of JSON_OBJECT or JSON_ARRAY goes in as it is, not as a string."
	return []*Function{
		f("JSON_OBJECT", []string{"JSON_OBJECT([[KEY] k VALUE v, ...] [NULL | ABSENT ON NULL])"},
			"A JSON object. Keys are string literals, each once. A NULL value stands as null, or is left out with ABSENT ON NULL."+values, bindJSONObject,
			Example{"JSON_OBJECT('K1', 'V1', 'K2', 2, 'NULL', 'vv')", `{"K1":"V1","K2":2}`}, Example{"JSON_OBJECT('NULL', '')", "{}"},
			Example{"JSON_OBJECT('K1', CAST(NULL AS STRING), 'NULL', 'v')", `{"K1":null}`}, Example{"JSON_OBJECT('K1', CAST(NULL AS STRING), 'ABSENT', 'v')", "{}"}),
		f("JSON_ARRAY", []string{"JSON_ARRAY([v, ...] [NULL | ABSENT ON NULL])"},
			"A JSON array. A NULL value is left out, or stands as null with NULL ON NULL."+values, bindJSONArray,
			Example{"JSON_ARRAY(1, '2', 'ABSENT', 'vv')", `[1,"2"]`}, Example{"JSON_ARRAY('ABSENT', '')", "[]"},
			Example{"JSON_ARRAY(CAST(NULL AS STRING), 'NULL', 'v')", "[null]"}),
	}
}

// jsonClauses takes the two literals off the arguments.
func jsonClauses(name string, args []Arg, step int) (values []Arg, absent bool, raw []bool, err error) {
	n := len(args) - 2
	if n < 0 || n%step != 0 {
		return nil, false, nil, argErrf(-1, "%s needs its clauses", name)
	}
	onNull, ok1 := args[n].Text()
	forms, ok2 := args[n+1].Text()
	if !ok1 || !ok2 || onNull != "NULL" && onNull != "ABSENT" || len(forms) != n/step {
		return nil, false, nil, argErrf(-1, "%s needs its clauses", name)
	}
	for _, c := range []byte(forms) {
		raw = append(raw, c == 'j')
	}
	return args[:n], onNull == "ABSENT", raw, nil
}

// jsonParams are the types of the arguments, which all stay as they are.
func jsonParams(args []Arg) []types.Type {
	params := make([]types.Type, len(args))
	for i, a := range args {
		if params[i] = a.Type; a.Type.Kind == types.Null {
			params[i] = tString
		}
	}
	return params
}

// appendMember appends a value of a constructor.
func appendMember(dst []byte, v *batch.Vec, i int32, raw bool) []byte {
	if raw && !null(v, i) {
		return append(dst, text(v, i)...)
	}
	return AppendJSON(dst, v, int(i))
}

func bindJSONObject(args []Arg) (Bound, error) {
	pairs, absent, raw, err := jsonClauses("JSON_OBJECT", args, 2)
	if err != nil {
		return Bound{}, err
	}
	var keys [][]byte // each with its quotes and colon
	seen := map[string]bool{}
	for k := 0; k < len(pairs); k += 2 {
		key, ok := pairs[k].Text()
		if !ok {
			return Bound{}, argErrf(k, "a key of JSON_OBJECT must be a string literal")
		}
		if seen[key] {
			return Bound{}, argErrf(k, "key %s stands twice in JSON_OBJECT", quote(key))
		}
		seen[key] = true
		keys = append(keys, append(AppendJSONString(nil, []byte(key)), ':'))
	}
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			out.BeginBytes(int(i))
			out.Data = append(out.Data, '{')
			first := true
			for n, key := range keys {
				v := args[2*n+1]
				if absent && v.IsNull(int(i)) {
					continue
				}
				if !first {
					out.Data = append(out.Data, ',')
				}
				first = false
				out.Data = appendMember(append(out.Data, key...), v, i, raw[n])
			}
			out.Data = append(out.Data, '}')
			out.EndBytes()
		}
	}
	return Bound{Params: jsonParams(args), Return: notNullString, Kernel: k}, nil
}

func bindJSONArray(args []Arg) (Bound, error) {
	_, absent, raw, err := jsonClauses("JSON_ARRAY", args, 1)
	if err != nil {
		return Bound{}, err
	}
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			out.BeginBytes(int(i))
			out.Data = append(out.Data, '[')
			first := true
			for n := range raw {
				if absent && args[n].IsNull(int(i)) {
					continue
				}
				if !first {
					out.Data = append(out.Data, ',')
				}
				first = false
				out.Data = appendMember(out.Data, args[n], i, raw[n])
			}
			out.Data = append(out.Data, ']')
			out.EndBytes()
		}
	}
	return Bound{Params: jsonParams(args), Return: notNullString, Kernel: k}, nil
}
