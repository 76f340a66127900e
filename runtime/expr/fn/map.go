package fn

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

func mapFunctions() []*Function {
	f := func(name, syntax, doc string, bind func([]Arg) (Bound, error), ex ...Example) *Function {
		return &Function{Name: name, Syntax: []string{syntax}, Category: CatCollection, Doc: doc, Bind: bind, Examples: ex}
	}
	return []*Function{
		f("MAP_ENTRIES", "MAP_ENTRIES(m)", "The entries of a MAP as an ARRAY of ROW(key, value), in the order of MAP_KEYS.", bindMapEntries,
			Example{"MAP_ENTRIES(MAP['a', 1])", "[(a, 1)]"}, Example{"CARDINALITY(MAP_ENTRIES(MAP['a', 1, 'b', 2]))", "2"}),
		f("MAP_FROM_ARRAYS", "MAP_FROM_ARRAYS(keys, values)", "MAP of the keys with the values at the same places. Arrays of different lengths and a NULL key are errors; of equal keys the last counts.", bindMapFromArrays,
			Example{"MAP_FROM_ARRAYS(ARRAY['a', 'b'], ARRAY[1, 2])", "{a=1, b=2}"}, Example{"MAP_FROM_ARRAYS(ARRAY['a'], ARRAY[1, 2])", "error:invalid_argument"}),
		f("MAP_UNION", "MAP_UNION(m, n, ...)", "MAP of the entries of all the maps; of equal keys the last map's entry counts.", bindMapUnion,
			Example{"MAP_UNION(MAP['a', 1, 'b', 2], MAP['b', 3])", "{a=1, b=3}"}),
	}
}

func mapArg(name string, args []Arg, i int) (types.Type, error) {
	t := args[i].Type
	if t.Kind != types.Map {
		return t, argErrf(i, "argument %d of %s must be a MAP, not %s", i+1, name, t.WithNullable(true))
	}
	return t, nil
}

func bindMapEntries(args []Arg) (Bound, error) {
	const name = "MAP_ENTRIES"
	if err := count(name, args, 1, 1); err != nil {
		return Bound{}, err
	}
	t, err := mapArg(name, args, 0)
	if err != nil {
		return Bound{}, err
	}
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		rows := out.Children[0]
		for _, i := range sel {
			from, to := args[0].Range(int(i))
			out.BeginList(int(i))
			for e := from; e < to; e++ {
				rows.Grow(1)
				for c := range rows.Children {
					rows.Children[c].Put(rows.Len-1, args[0].Children[c], e)
				}
			}
			closeList(out)
		}
	}
	row := types.NewRow(types.Field{Name: "key", Type: *t.Key}, types.Field{Name: "value", Type: *t.Elem})
	return Bound{Params: []types.Type{t}, Return: types.NewArray(row).WithNullable(t.Nullable), Kernel: k}, nil
}

// lastOfEach drops from s.from the entries whose key comes again later; key
// gives the keys of argument arg.
func lastOfEach(s *listScratch, key func(arg int) *batch.Vec) {
	s.a.reset()
	keep := len(s.from)
	for k := len(s.from) - 1; k >= 0; k-- {
		if s.a.add(key(s.from[k].arg), s.from[k].elem) {
			keep--
			s.from[keep] = s.from[k]
		}
	}
	s.from = append(s.from[:0], s.from[keep:]...)
}

func bindMapFromArrays(args []Arg) (Bound, error) {
	const name = "MAP_FROM_ARRAYS"
	if err := count(name, args, 2, 2); err != nil {
		return Bound{}, err
	}
	key, err := arrayArg(name, args, 0)
	if err != nil {
		return Bound{}, err
	}
	value, err := arrayArg(name, args, 1)
	if err != nil {
		return Bound{}, err
	}
	k := func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		s := listScratchOf(ctx)
		keys, values := args[0].Children[0], args[1].Children[0]
		keysOf := func(int) *batch.Vec { return keys }
	rows:
		for _, i := range sel {
			from, to := args[0].Range(int(i))
			vfrom, vto := args[1].Range(int(i))
			if to-from != vto-vfrom {
				ctx.Fail(out, i, batch.CodeArgument, "MAP_FROM_ARRAYS of %d keys and %d values", to-from, vto-vfrom)
				continue
			}
			s.from = s.from[:0]
			for e := from; e < to; e++ {
				if keys.IsNull(e) {
					ctx.Fail(out, i, batch.CodeArgument, "a map key is NULL")
					continue rows
				}
				s.from = append(s.from, entryAt{0, e})
			}
			lastOfEach(s, keysOf)
			out.BeginList(int(i))
			for _, e := range s.from {
				out.Children[0].Append(keys, e.elem)
				out.Children[1].Append(values, e.elem-from+vfrom)
			}
			closeMap(out)
		}
	}
	return Bound{Params: []types.Type{args[0].Type, args[1].Type}, Return: types.NewMap(key.NotNull(), value).WithNullable(anyNullable(args)), Kernel: k}, nil
}

// closeMap ends the row that BeginList opened.
func closeMap(out *batch.Vec) {
	out.Children[0].PadOffsets()
	out.Children[1].PadOffsets()
	out.EndList()
}

func bindMapUnion(args []Arg) (Bound, error) {
	const name = "MAP_UNION"
	if err := count(name, args, 1, -1); err != nil {
		return Bound{}, err
	}
	var key, value types.Type
	for i := range args {
		t, err := mapArg(name, args, i)
		if err != nil {
			return Bound{}, err
		}
		if i == 0 {
			key, value = *t.Key, *t.Elem
			continue
		}
		var okKey, okValue bool
		first := types.NewMap(key, value)
		key, okKey = types.Common(key, *t.Key)
		value, okValue = types.Common(value, *t.Elem)
		if !okKey || !okValue {
			return Bound{}, argErrf(i, "%s has no common type with %s", t.WithNullable(true), first)
		}
	}
	var params []types.Type
	for _, a := range args {
		params = append(params, types.NewMap(key, value).WithNullable(a.Type.Nullable))
	}
	k := func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		s := listScratchOf(ctx)
		keysOf := func(arg int) *batch.Vec { return args[arg].Children[0] }
		for _, i := range sel {
			s.from = s.from[:0]
			for a, m := range args {
				from, to := m.Range(int(i))
				for e := from; e < to; e++ {
					s.from = append(s.from, entryAt{a, e})
				}
			}
			lastOfEach(s, keysOf)
			out.BeginList(int(i))
			for _, e := range s.from {
				out.Children[0].Append(args[e.arg].Children[0], e.elem)
				out.Children[1].Append(args[e.arg].Children[1], e.elem)
			}
			closeMap(out)
		}
	}
	return Bound{Params: params, Return: types.NewMap(key, value).WithNullable(anyNullable(args)), Kernel: k}, nil
}
