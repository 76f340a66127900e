package fn

import (
	"regexp"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

func collectionFunctions() []*Function {
	f := func(name, syntax, doc string, bind func([]Arg) (Bound, error), ex ...Example) *Function {
		return &Function{Name: name, Syntax: []string{syntax}, Category: CatCollection, Doc: doc, Bind: bind, Examples: ex}
	}
	item := f("ITEM", "a[i]", "Element i of an ARRAY, counted from 1, or the value of a MAP for key i; NULL if there is none.", bindItem,
		Example{"ARRAY[10, 20][2]", "20"}, Example{"ARRAY[10, 20][3]", "NULL"}, Example{"MAP['a', 1, 'b', 2]['b']", "2"}, Example{"MAP['a', 1]['x']", "NULL"})
	item.Shallow = true
	card := f("CARDINALITY", "CARDINALITY(a)", "Number of elements of an ARRAY or entries of a MAP.", bindCardinality, Example{"CARDINALITY(ARRAY[1, NULL])", "2"}, Example{"CARDINALITY(MAP['a', 1])", "1"})
	card.Shallow = true
	contains := f("ARRAY_CONTAINS", "ARRAY_CONTAINS(a, x)", "TRUE if x is an element of the ARRAY; a NULL x finds a NULL element. NULL for a NULL array.", bindContains,
		Example{"ARRAY_CONTAINS(ARRAY[1, 2], 2)", "TRUE"}, Example{"ARRAY_CONTAINS(ARRAY[1, NULL], NULL)", "TRUE"}, Example{"ARRAY_CONTAINS(ARRAY['a'], 'b')", "FALSE"})
	contains.Nulls = NullCalled
	keys := f("MAP_KEYS", "MAP_KEYS(m)", "The keys of a MAP as an ARRAY.", bindMapPart("MAP_KEYS", 0), Example{"MAP_KEYS(MAP['a', 1, 'b', 2])", "[a, b]"})
	values := f("MAP_VALUES", "MAP_VALUES(m)", "The values of a MAP as an ARRAY, in the order of MAP_KEYS.", bindMapPart("MAP_VALUES", 1), Example{"MAP_VALUES(MAP['a', 1, 'b', 2])", "[1, 2]"})
	keys.Shallow, values.Shallow = true, true
	return []*Function{
		item, card, contains, keys, values,
		f("STR_TO_MAP", "STR_TO_MAP(s [, entrySep, keySep])", "MAP of a text such as k1=v1,k2=v2. The separators are RE2 patterns, ',' and '=' when left out. An entry without keySep has a NULL value; of equal keys the last counts.",
			bindStrToMap, Example{"STR_TO_MAP('k1=v1,k2=v2')", "{k1=v1, k2=v2}"}, Example{"STR_TO_MAP('a:1;b', ';', ':')['a']", "1"}),
	}
}

func bindItem(args []Arg) (Bound, error) {
	if err := count("[]", args, 2, 2); err != nil {
		return Bound{}, err
	}
	t := args[0].Type
	switch t.Kind {
	case types.Array:
		if err := want("[]", args, 1, "an integer", isInteger); err != nil {
			return Bound{}, err
		}
		if n, ok := args[1].Int(); ok && n < 1 {
			return Bound{}, argErrf(1, "elements of an ARRAY are counted from 1")
		}
		return Bound{Params: []types.Type{t, tBigInt}, Return: t.Elem.WithNullable(true), Kernel: arrayItem}, nil
	case types.Map:
		key := *t.Key
		switch {
		case key.IsString() && args[1].Type.IsString():
			key = args[1].Type // texts of any length are compared
		case !ImplicitlyCasts(args[1].Type, key):
			return Bound{}, argErrf(1, "the keys of the MAP are %s, not %s", key.WithNullable(true), args[1].Type.WithNullable(true))
		}
		return Bound{Params: []types.Type{t, key}, Return: t.Elem.WithNullable(true), Kernel: mapItem}, nil
	}
	return Bound{}, argErrf(0, "%s has no elements", t.WithNullable(true))
}

func arrayItem(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	for _, i := range sel {
		from, to := args[0].Range(int(i))
		n := args[1].Int64(int(i))
		if n < 1 || n > int64(to-from) {
			out.NullRow(int(i))
			continue
		}
		out.Put(int(i), args[0].Children[0], from+int(n)-1)
	}
}

func mapItem(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	keys := args[0].Children[0]
	var a, b []byte
rows:
	for _, i := range sel {
		from, to := args[0].Range(int(i))
		a = batch.AppendValue(a[:0], args[1], int(i))
		for k := from; k < to; k++ {
			b = batch.AppendValue(b[:0], keys, k)
			if string(a) == string(b) {
				out.Put(int(i), args[0].Children[1], k)
				continue rows
			}
		}
		out.NullRow(int(i))
	}
}

func bindCardinality(args []Arg) (Bound, error) {
	if err := count("CARDINALITY", args, 1, 1); err != nil {
		return Bound{}, err
	}
	t := args[0].Type
	if t.Kind != types.Array && t.Kind != types.Map {
		return Bound{}, argErrf(0, "the argument of CARDINALITY must be an ARRAY or MAP, not %s", t.WithNullable(true))
	}
	return Bound{Params: []types.Type{t}, Return: tInt.WithNullable(t.Nullable), Kernel: func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			from, to := args[0].Range(int(i))
			out.I32[i] = int32(to - from)
		}
	}}, nil
}

func bindContains(args []Arg) (Bound, error) {
	if err := count("ARRAY_CONTAINS", args, 2, 2); err != nil {
		return Bound{}, err
	}
	t := args[0].Type
	if t.Kind != types.Array {
		return Bound{}, argErrf(0, "argument 1 of ARRAY_CONTAINS must be an ARRAY, not %s", t.WithNullable(true))
	}
	elem, ok := types.Common(*t.Elem, args[1].Type)
	if !ok || elem.Kind == types.Null {
		return Bound{}, argErrf(1, "the elements are %s, not %s", t.Elem.WithNullable(true), args[1].Type.WithNullable(true))
	}
	arr := types.NewArray(elem.WithNullable(t.Elem.Nullable)).WithNullable(t.Nullable)
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			if null(args[0], i) {
				out.NullRow(int(i))
				continue
			}
			from, to := args[0].Range(int(i))
			for e := from; e < to; e++ {
				if batch.ValueEqual(args[0].Children[0], e, args[1], int(i)) {
					out.Bools.Set(int(i))
					break
				}
			}
		}
	}
	return Bound{Params: []types.Type{arr, elem}, Return: tBool.WithNullable(t.Nullable), Kernel: k}, nil
}

func bindMapPart(name string, part int) func([]Arg) (Bound, error) {
	return func(args []Arg) (Bound, error) {
		if err := count(name, args, 1, 1); err != nil {
			return Bound{}, err
		}
		t := args[0].Type
		if t.Kind != types.Map {
			return Bound{}, argErrf(0, "the argument of %s must be a MAP, not %s", name, t.WithNullable(true))
		}
		elem := *t.Key
		if part == 1 {
			elem = *t.Elem
		}
		k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
			for _, i := range sel {
				from, to := args[0].Range(int(i))
				out.BeginList(int(i))
				for e := from; e < to; e++ {
					out.Children[0].Append(args[0].Children[part], e)
				}
				out.Children[0].PadOffsets()
				out.EndList()
			}
		}
		return Bound{Params: []types.Type{t}, Return: types.NewArray(elem).WithNullable(t.Nullable), Kernel: k}, nil
	}
}

func bindStrToMap(args []Arg) (Bound, error) {
	const name = "STR_TO_MAP"
	ret := types.NewMap(tString, tString)
	b, err := bindFixed(name, args, ret.NotNull(), 2, nil, []param{pString, pString, pString})
	if err != nil {
		return b, err
	}
	seps := [2]*regexp.Regexp{regexp.MustCompile(","), regexp.MustCompile("=")}
	literal := true
	for k := range seps {
		if len(args) <= k+1 {
			continue
		}
		s, ok := args[k+1].Text()
		if !ok {
			literal = false
			continue
		}
		if seps[k], err = compileRegexp(s); err != nil {
			return b, argErrf(k+1, "%s", err)
		}
	}
	b.Kernel = func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			use := seps
			if !literal {
				var bad error
				for k := 1; k < len(args) && bad == nil; k++ {
					use[k-1], bad = compileRegexp(string(text(args[k], i)))
				}
				if bad != nil {
					ctx.Fail(out, i, batch.CodeArgument, "%s", bad)
					continue
				}
			}
			putStrMap(out, i, text(args[0], i), use)
		}
	}
	return b, nil
}

func putStrMap(out *batch.Vec, i int32, s []byte, seps [2]*regexp.Regexp) {
	type entry struct {
		key, value []byte
		has        bool
	}
	var entries []entry
	index := map[string]int{}
	for len(s) > 0 {
		part := s
		if loc := seps[0].FindIndex(s); loc != nil && loc[1] > 0 {
			part, s = s[:loc[0]], s[loc[1]:]
		} else {
			s = nil
		}
		e := entry{key: part}
		if loc := seps[1].FindIndex(part); loc != nil {
			e = entry{key: part[:loc[0]], value: part[loc[1]:], has: true}
		}
		if at, dup := index[string(e.key)]; dup {
			entries[at] = e
			continue
		}
		index[string(e.key)] = len(entries)
		entries = append(entries, e)
	}
	out.BeginList(int(i))
	keys, values := out.Children[0], out.Children[1]
	for _, e := range entries {
		keys.Grow(1)
		keys.PutBytes(keys.Len-1, e.key)
		values.Grow(1)
		if e.has {
			values.PutBytes(values.Len-1, e.value)
		} else {
			values.NullRow(values.Len - 1)
		}
	}
	out.EndList()
}

// refusals are names of other dialects.
func refusals() []Refusal {
	return []Refusal{
		{"NVL", "COALESCE(a, b)"}, {"ISNULL", "a IS NULL, or COALESCE(a, b)"}, {"IIF", "IF(condition, a, b)"}, {"DECODE", "CASE WHEN ... END"},
		{"DATEDIFF", "TIMESTAMPDIFF(DAY, a, b)"}, {"DATE_ADD", "t + INTERVAL '1' DAY"}, {"DATE_SUB", "t - INTERVAL '1' DAY"}, {"DATEADD", "TIMESTAMPADD(DAY, n, t)"},
		{"ADD_MONTHS", "TIMESTAMPADD(MONTH, n, t)"}, {"DATE_TRUNC", "FLOOR(t TO unit)"}, {"TRUNC", "TRUNCATE(x, n), or FLOOR(t TO unit)"}, {"TO_CHAR", "DATE_FORMAT(t, pattern)"},
		{"STR_TO_DATE", "TO_TIMESTAMP(s, pattern)"}, {"GETDATE", "CURRENT_TIMESTAMP"}, {"SYSDATE", "CURRENT_TIMESTAMP"}, {"LENGTH", "CHAR_LENGTH(s)"}, {"LEN", "CHAR_LENGTH(s)"},
		{"UCASE", "UPPER(s)"}, {"LCASE", "LOWER(s)"}, {"CHARINDEX", "POSITION(part IN s)"}, {"STRPOS", "POSITION(part IN s)"}, {"SPLIT_PART", "SPLIT_INDEX(s, sep, n), counted from 0"},
		{"SUBSTRING_INDEX", "SPLIT_INDEX(s, sep, n)"}, {"REGEXP_LIKE", "REGEXP(s, pattern)"}, {"RLIKE", "REGEXP(s, pattern)"}, {"GET_JSON_OBJECT", "JSON_VALUE(s, path)"},
		{"JSON_EXTRACT", "JSON_VALUE(s, path)"}, {"JSON_EXTRACT_SCALAR", "JSON_VALUE(s, path)"}, {"SIZE", "CARDINALITY(a)"}, {"ARRAY_LENGTH", "CARDINALITY(a)"}, {"POW", "POWER(x, y)"},
		{"RANDOM", "RAND()"}, {"GROUP_CONCAT", "LISTAGG(s, sep)"}, {"STRING_AGG", "LISTAGG(s, sep)"}, {"COLLECT_LIST", "ARRAY_AGG(x)"}, {"ANY_VALUE", "FIRST_VALUE(x)"},
	}
}
