package fn

import (
	"bytes"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

func arrayFunctions() []*Function {
	f := func(name, syntax, doc string, bind func([]Arg) (Bound, error), ex ...Example) *Function {
		return &Function{Name: name, Syntax: []string{syntax}, Category: CatCollection, Doc: doc, Bind: bind, Examples: ex}
	}
	loose := func(fn *Function) *Function { fn.Nulls = NullCalled; return fn }
	return []*Function{
		loose(f("ARRAY_APPEND", "ARRAY_APPEND(a, x)", "The array with x, which may be NULL, behind its elements. NULL for a NULL array.",
			bindExtend("ARRAY_APPEND", false), Example{"ARRAY_APPEND(ARRAY[1, 2], 3)", "[1, 2, 3]"}, Example{"ARRAY_APPEND(ARRAY[1, 2], NULL)", "[1, 2, NULL]"})),
		loose(f("ARRAY_PREPEND", "ARRAY_PREPEND(a, x)", "The array with x, which may be NULL, before its elements. NULL for a NULL array.",
			bindExtend("ARRAY_PREPEND", true), Example{"ARRAY_PREPEND(ARRAY[1, 2], 3)", "[3, 1, 2]"})),
		f("ARRAY_CONCAT", "ARRAY_CONCAT(a, b, ...)", "The elements of all the arrays, one array after another.",
			bindArrays("ARRAY_CONCAT", 1, -1, concatArrays), Example{"ARRAY_CONCAT(ARRAY[1, 2], ARRAY[2, 3])", "[1, 2, 2, 3]"}),
		f("ARRAY_DISTINCT", "ARRAY_DISTINCT(a)", "The elements without repetitions, each where it comes first; NULL counts as a value.",
			bindArrays("ARRAY_DISTINCT", 1, 1, distinctOf), Example{"ARRAY_DISTINCT(ARRAY[2, 1, 2])", "[2, 1]"}),
		f("ARRAY_UNION", "ARRAY_UNION(a, b)", "The elements of a and b without repetitions, each where it comes first.",
			bindArrays("ARRAY_UNION", 2, 2, distinctOf), Example{"ARRAY_UNION(ARRAY[1, 2], ARRAY[3, 2])", "[1, 2, 3]"}),
		f("ARRAY_EXCEPT", "ARRAY_EXCEPT(a, b)", "The elements of a that are not in b, without repetitions, in the order of a.",
			bindArrays("ARRAY_EXCEPT", 2, 2, exceptOf), Example{"ARRAY_EXCEPT(ARRAY[1, 2, 2, 3], ARRAY[1])", "[2, 3]"}),
		f("ARRAY_INTERSECT", "ARRAY_INTERSECT(a, b)", "The elements of a that are in b too, without repetitions, in the order of a.",
			bindArrays("ARRAY_INTERSECT", 2, 2, intersectOf), Example{"ARRAY_INTERSECT(ARRAY[1, 1, 2], ARRAY[1, 4])", "[1]"}),
		f("ARRAY_REVERSE", "ARRAY_REVERSE(a)", "The elements from the last to the first.", bindArrays("ARRAY_REVERSE", 1, 1, reverseOf), Example{"ARRAY_REVERSE(ARRAY[1, 2, 3])", "[3, 2, 1]"}),
		loose(f("ARRAY_REMOVE", "ARRAY_REMOVE(a, x)", "The elements that are not x, in their order; a NULL x removes the NULLs. NULL for a NULL array.",
			bindRemove, Example{"ARRAY_REMOVE(ARRAY[1, 2, 2], 2)", "[1]"})),
		f("ARRAY_POSITION", "ARRAY_POSITION(a, x)", "Position of the first element equal to x, counted from 1; 0 if there is none.",
			bindPosition, Example{"ARRAY_POSITION(ARRAY['a', 'b', 'b'], 'b')", "2"}, Example{"ARRAY_POSITION(ARRAY[1], 2)", "0"}),
		f("ARRAY_SLICE", "ARRAY_SLICE(a, first [, last])", "The elements from position first to last, both counted from 1 and included (0 means 1, negative counts from the end); to the end when last is left out. Empty if there are none.",
			bindSlice, Example{"ARRAY_SLICE(ARRAY[1, 2, 3, 4], 2, 3)", "[2, 3]"}, Example{"ARRAY_SLICE(ARRAY[1, 2, 3, 4], -2)", "[3, 4]"}),
		f("ARRAY_SORT", "ARRAY_SORT(a [, ascending [, nulls_first]])", "The elements in order: ascending with NULLs first, or with FALSE descending with NULLs last; nulls_first places the NULLs whatever the order. NaN counts as the largest number.",
			bindSort, Example{"ARRAY_SORT(ARRAY[3, 1, 2])", "[1, 2, 3]"}, Example{"ARRAY_SORT(ARRAY[3, NULL, 2], FALSE)", "[3, 2, NULL]"}, Example{"ARRAY_SORT(ARRAY[3, NULL, 2], TRUE, FALSE)", "[2, 3, NULL]"}),
		f("ARRAY_MAX", "ARRAY_MAX(a)", "The largest element that is not NULL; NULL if there is none.", bindArrayExtreme("ARRAY_MAX", 1), Example{"ARRAY_MAX(ARRAY[1, NULL, 3])", "3"}),
		f("ARRAY_MIN", "ARRAY_MIN(a)", "The smallest element that is not NULL; NULL if there is none.", bindArrayExtreme("ARRAY_MIN", -1), Example{"ARRAY_MIN(ARRAY[2, NULL, 1])", "1"}),
		f("ARRAY_JOIN", "ARRAY_JOIN(a, sep [, null_text])", "The strings of the array with a separator between them; NULLs are left out, or stand as null_text.",
			bindJoin, Example{"ARRAY_JOIN(ARRAY['a', NULL, 'b'], '+')", "a+b"}, Example{"ARRAY_JOIN(ARRAY['a', NULL, 'b'], '+', '?')", "a+?+b"}),
		f("ELEMENT", "ELEMENT(a)", "The only element of an array; NULL if it is empty, an error if it has more.",
			bindElement, Example{"ELEMENT(ARRAY[7])", "7"}, Example{"ELEMENT(ARRAY[1, 2])", "error:invalid_argument"}),
	}
}

// arrayArg checks that argument i is an array and gives its element type.
func arrayArg(name string, args []Arg, i int) (types.Type, error) {
	t := args[i].Type
	if t.Kind != types.Array {
		return t, argErrf(i, "argument %d of %s must be an ARRAY, not %s", i+1, name, t.WithNullable(true))
	}
	return *t.Elem, nil
}

// arrayAndElem types f(array, element): the element's type and the array's
// widen to one.
func arrayAndElem(name string, args []Arg) (arr, elem types.Type, err error) {
	if err = count(name, args, 2, 2); err != nil {
		return arr, elem, err
	}
	et, err := arrayArg(name, args, 0)
	if err != nil {
		return arr, elem, err
	}
	elem, ok := types.Common(et, args[1].Type)
	if !ok || elem.Kind == types.Null {
		return arr, elem, argErrf(1, "the elements are %s, not %s", et.WithNullable(true), args[1].Type.WithNullable(true))
	}
	return types.NewArray(elem.WithNullable(et.Nullable)).WithNullable(args[0].Type.Nullable), elem, nil
}

// copyElems appends elements from..to-1 of an array to the row being built.
func copyElems(out, arr *batch.Vec, from, to int) {
	for e := from; e < to; e++ {
		out.Children[0].Append(arr.Children[0], e)
	}
}

// closeList ends the row that BeginList opened.
func closeList(out *batch.Vec) {
	out.Children[0].PadOffsets()
	out.EndList()
}

func bindExtend(name string, front bool) func([]Arg) (Bound, error) {
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			if null(args[0], i) {
				out.NullRow(int(i))
				continue
			}
			from, to := args[0].Range(int(i))
			out.BeginList(int(i))
			if front {
				out.Children[0].Append(args[1], int(i))
			}
			copyElems(out, args[0], from, to)
			if !front {
				out.Children[0].Append(args[1], int(i))
			}
			closeList(out)
		}
	}
	return func(args []Arg) (Bound, error) {
		arr, elem, err := arrayAndElem(name, args)
		if err != nil {
			return Bound{}, err
		}
		return Bound{Params: []types.Type{arr, elem}, Return: types.NewArray(elem).WithNullable(arr.Nullable), Kernel: k}, nil
	}
}

// bindArrays types a function of arrays of a common type that gives another
// one.
func bindArrays(name string, lo, hi int, row func(s *listScratch, args []*batch.Vec, i int, out *batch.Vec)) func([]Arg) (Bound, error) {
	k := func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		s := listScratchOf(ctx)
		for _, i := range sel {
			out.BeginList(int(i))
			row(s, args, int(i), out)
			closeList(out)
		}
	}
	return func(args []Arg) (Bound, error) {
		if err := count(name, args, lo, hi); err != nil {
			return Bound{}, err
		}
		var b Bound
		var elem types.Type
		for i := range args {
			t, err := arrayArg(name, args, i)
			if err != nil {
				return Bound{}, err
			}
			if i == 0 {
				elem = t
				continue
			}
			both, ok := types.Common(elem, t)
			if !ok {
				return Bound{}, argErrf(i, "the elements are %s, not %s", elem.WithNullable(true), t.WithNullable(true))
			}
			elem = both
		}
		for _, a := range args {
			b.Params = append(b.Params, types.NewArray(elem).WithNullable(a.Type.Nullable))
		}
		b.Return, b.Kernel = types.NewArray(elem).WithNullable(anyNullable(args)), k
		return b, nil
	}
}

func concatArrays(_ *listScratch, args []*batch.Vec, i int, out *batch.Vec) {
	for _, a := range args {
		from, to := a.Range(i)
		copyElems(out, a, from, to)
	}
}

func distinctOf(s *listScratch, args []*batch.Vec, i int, out *batch.Vec) {
	s.a.reset()
	for _, a := range args {
		appendNew(&s.a, a, i, out)
	}
}

// appendNew appends the elements of row i that are not in the set yet.
func appendNew(set *valueSet, a *batch.Vec, i int, out *batch.Vec) {
	from, to := a.Range(i)
	for e := from; e < to; e++ {
		if set.add(a.Children[0], e) {
			out.Children[0].Append(a.Children[0], e)
		}
	}
}

// fill puts the elements of row i in.
func (s *valueSet) fill(a *batch.Vec, i int) {
	s.reset()
	from, to := a.Range(i)
	for e := from; e < to; e++ {
		s.add(a.Children[0], e)
	}
}

func exceptOf(s *listScratch, args []*batch.Vec, i int, out *batch.Vec) {
	s.a.fill(args[1], i)
	appendNew(&s.a, args[0], i, out)
}

func intersectOf(s *listScratch, args []*batch.Vec, i int, out *batch.Vec) {
	s.a.reset()
	s.b.fill(args[1], i)
	elems := args[0].Children[0]
	from, to := args[0].Range(i)
	for e := from; e < to; e++ {
		if s.b.has(elems, e) && s.a.add(elems, e) {
			out.Children[0].Append(elems, e)
		}
	}
}

func reverseOf(_ *listScratch, args []*batch.Vec, i int, out *batch.Vec) {
	from, to := args[0].Range(i)
	for e := to - 1; e >= from; e-- {
		out.Children[0].Append(args[0].Children[0], e)
	}
}

func bindRemove(args []Arg) (Bound, error) {
	arr, elem, err := arrayAndElem("ARRAY_REMOVE", args)
	if err != nil {
		return Bound{}, err
	}
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			if null(args[0], i) {
				out.NullRow(int(i))
				continue
			}
			from, to := args[0].Range(int(i))
			out.BeginList(int(i))
			for e := from; e < to; e++ {
				if !batch.ValueEqual(args[0].Children[0], e, args[1], int(i)) {
					out.Children[0].Append(args[0].Children[0], e)
				}
			}
			closeList(out)
		}
	}
	return Bound{Params: []types.Type{arr, elem}, Return: arr, Kernel: k}, nil
}

func bindPosition(args []Arg) (Bound, error) {
	arr, elem, err := arrayAndElem("ARRAY_POSITION", args)
	if err != nil {
		return Bound{}, err
	}
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			from, to := args[0].Range(int(i))
			out.I32[i] = 0
			for e := from; e < to; e++ {
				if batch.ValueEqual(args[0].Children[0], e, args[1], int(i)) {
					out.I32[i] = int32(e-from) + 1
					break
				}
			}
		}
	}
	return Bound{Params: []types.Type{arr, elem}, Return: tInt.WithNullable(anyNullable(args)), Kernel: k}, nil
}

func bindSlice(args []Arg) (Bound, error) {
	const name = "ARRAY_SLICE"
	if err := count(name, args, 2, 3); err != nil {
		return Bound{}, err
	}
	if _, err := arrayArg(name, args, 0); err != nil {
		return Bound{}, err
	}
	params := []types.Type{args[0].Type}
	for i := 1; i < len(args); i++ {
		if err := want(name, args, i, "an integer", isInteger); err != nil {
			return Bound{}, err
		}
		params = append(params, tBigInt)
	}
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			from, to := args[0].Range(int(i))
			n := int64(to - from)
			first, last := args[1].Int64(int(i)), n
			if len(args) > 2 {
				last = args[2].Int64(int(i))
			}
			if first < 0 {
				first += n + 1
			}
			if last < 0 {
				last += n + 1
			} else if last == 0 {
				last = 1
			}
			first, last = max(first, 1), min(last, n)
			out.BeginList(int(i))
			if first <= last {
				copyElems(out, args[0], from+int(first)-1, from+int(last))
			}
			closeList(out)
		}
	}
	return Bound{Params: params, Return: args[0].Type.WithNullable(anyNullable(args)), Kernel: k}, nil
}

// ordered checks that the elements of argument 0 have an order.
func ordered(name string, args []Arg) (types.Type, error) {
	t, err := arrayArg(name, args, 0)
	if err == nil && (t.IsNested() || t.Kind == types.Boolean || t.Kind == types.Null) {
		err = argErrf(0, "%s of an array of %s: its values have no order", name, t.Kind)
	}
	return t, err
}

func bindSort(args []Arg) (Bound, error) {
	const name = "ARRAY_SORT"
	if err := count(name, args, 1, 3); err != nil {
		return Bound{}, err
	}
	if _, err := ordered(name, args); err != nil {
		return Bound{}, err
	}
	params := []types.Type{args[0].Type}
	for i := 1; i < len(args); i++ {
		if err := want(name, args, i, "BOOLEAN", isBool); err != nil {
			return Bound{}, err
		}
		params = append(params, tBool)
	}
	k := func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		s := listScratchOf(ctx)
		for _, i := range sel {
			up := len(args) < 2 || args[1].Bool(int(i))
			nullsFirst := up
			if len(args) > 2 {
				nullsFirst = args[2].Bool(int(i))
			}
			out.BeginList(int(i))
			sortRow(s, args[0], int(i), up, nullsFirst, out.Children[0])
			closeList(out)
		}
	}
	return Bound{Params: params, Return: args[0].Type.WithNullable(anyNullable(args)), Kernel: k}, nil
}

func sortRow(s *listScratch, arr *batch.Vec, i int, up, nullsFirst bool, to *batch.Vec) {
	elems := arr.Children[0]
	from, end := arr.Range(i)
	s.keys, s.spans = s.keys[:0], s.spans[:0]
	nulls := 0
	for e := from; e < end; e++ {
		if elems.IsNull(e) {
			nulls++
			continue
		}
		at := len(s.keys)
		s.keys = batch.AppendOrderValue(s.keys, elems, e)
		s.spans = append(s.spans, keySpan{e, at, len(s.keys)})
	}
	slices.SortStableFunc(s.spans, func(x, y keySpan) int {
		c := bytes.Compare(s.keys[x.from:x.to], s.keys[y.from:y.to])
		if !up {
			c = -c
		}
		return c
	})
	if nullsFirst {
		appendNulls(to, nulls)
	}
	for _, x := range s.spans {
		to.Append(elems, x.elem)
	}
	if !nullsFirst {
		appendNulls(to, nulls)
	}
}

func appendNulls(v *batch.Vec, n int) {
	for ; n > 0; n-- {
		v.AppendNull()
	}
}

func bindArrayExtreme(name string, sign int) func([]Arg) (Bound, error) {
	k := func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		s := listScratchOf(ctx)
		elems := args[0].Children[0]
		for _, i := range sel {
			from, to := args[0].Range(int(i))
			best, size := -1, 0
			s.keys = s.keys[:0]
			for e := from; e < to; e++ {
				if elems.IsNull(e) {
					continue
				}
				// The best key so far stands first in keys, the next behind it.
				s.keys = batch.AppendOrderValue(s.keys[:size], elems, e)
				if key := s.keys[size:]; best < 0 || bytes.Compare(key, s.keys[:size])*sign > 0 {
					best, size = e, copy(s.keys, key)
				}
			}
			if best < 0 {
				out.NullRow(int(i))
				continue
			}
			out.Put(int(i), elems, best)
		}
	}
	return func(args []Arg) (Bound, error) {
		if err := count(name, args, 1, 1); err != nil {
			return Bound{}, err
		}
		t, err := ordered(name, args)
		if err != nil {
			return Bound{}, err
		}
		return Bound{Params: []types.Type{args[0].Type}, Return: t.WithNullable(true), Kernel: k}, nil
	}
}

func bindJoin(args []Arg) (Bound, error) {
	const name = "ARRAY_JOIN"
	if err := count(name, args, 2, 3); err != nil {
		return Bound{}, err
	}
	t, err := arrayArg(name, args, 0)
	if err != nil {
		return Bound{}, err
	}
	if !t.IsString() {
		return Bound{}, argErrf(0, "argument 1 of %s must be an ARRAY of strings, not %s", name, args[0].Type.WithNullable(true))
	}
	params := []types.Type{args[0].Type}
	for i := 1; i < len(args); i++ {
		if err := want(name, args, i, "a string", isString); err != nil {
			return Bound{}, err
		}
		params = append(params, stringType(args[i].Type))
	}
	k := func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		elems := args[0].Children[0]
		for _, i := range sel {
			from, to := args[0].Range(int(i))
			sep := text(args[1], i)
			out.BeginBytes(int(i))
			first := true
			for e := from; e < to; e++ {
				isNull := elems.IsNull(e)
				if isNull && len(args) < 3 {
					continue
				}
				if !first {
					out.Data = append(out.Data, sep...)
				}
				first = false
				if isNull {
					out.Data = append(out.Data, text(args[2], i)...)
				} else {
					out.Data = append(out.Data, elems.Bytes(e)...)
				}
			}
			out.EndBytes()
		}
	}
	return Bound{Params: params, Return: tString.WithNullable(anyNullable(args)), Kernel: k}, nil
}

func bindElement(args []Arg) (Bound, error) {
	if err := count("ELEMENT", args, 1, 1); err != nil {
		return Bound{}, err
	}
	t, err := arrayArg("ELEMENT", args, 0)
	if err != nil {
		return Bound{}, err
	}
	k := func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
		for _, i := range sel {
			from, to := args[0].Range(int(i))
			switch to - from {
			case 0:
				out.NullRow(int(i))
			case 1:
				out.Put(int(i), args[0].Children[0], from)
			default:
				ctx.Fail(out, i, batch.CodeArgument, "ELEMENT of an array of %d elements", to-from)
			}
		}
	}
	return Bound{Params: []types.Type{args[0].Type}, Return: t.WithNullable(true), Kernel: k}, nil
}
