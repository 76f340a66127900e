package fn

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

func logicals() []*Function {
	bools := func(name string) func([]Arg) (Bound, error) {
		return func(args []Arg) (Bound, error) {
			if err := count(name, args, 2, -1); err != nil {
				return Bound{}, err
			}
			params := make([]types.Type, len(args))
			for i := range args {
				if err := want(name, args, i, "BOOLEAN", isBool); err != nil {
					return Bound{}, err
				}
				params[i] = tBool
			}
			return Bound{Params: params, Return: tBool.WithNullable(anyNullable(args))}, nil
		}
	}
	return []*Function{
		{Name: "AND", Syntax: []string{"a AND b"}, Category: CatLogical, Form: FormAnd,
			Doc:      "FALSE if one operand is FALSE, whatever the other is, an error included; else NULL if one is NULL; else TRUE.",
			Examples: []Example{{"TRUE AND NULL", "NULL"}, {"FALSE AND NULL", "FALSE"}, {"1/0 = 1 AND FALSE", "FALSE"}, {"1/0 = 1 AND NULL", "error:division_by_zero"}},
			Bind:     bools("AND")},
		{Name: "OR", Syntax: []string{"a OR b"}, Category: CatLogical, Form: FormOr,
			Doc:      "TRUE if one operand is TRUE, whatever the other is, an error included; else NULL if one is NULL; else FALSE.",
			Examples: []Example{{"TRUE OR NULL", "TRUE"}, {"FALSE OR NULL", "NULL"}, {"1/0 = 1 OR TRUE", "TRUE"}},
			Bind:     bools("OR")},
		{Name: "NOT", Syntax: []string{"NOT a"}, Category: CatLogical,
			Doc: "Negation; NOT NULL is NULL.", Examples: []Example{{"NOT TRUE", "FALSE"}, {"NOT CAST(NULL AS BOOLEAN)", "NULL"}},
			Bind: func(args []Arg) (Bound, error) {
				if err := count("NOT", args, 1, 1); err != nil {
					return Bound{}, err
				}
				if err := want("NOT", args, 0, "BOOLEAN", isBool); err != nil {
					return Bound{}, err
				}
				return Bound{Params: []types.Type{tBool}, Return: tBool.WithNullable(anyNullable(args)), Kernel: not}, nil
			}},
		isNull("IS NULL", true, Example{"CAST(NULL AS INT) IS NULL", "TRUE"}),
		isNull("IS NOT NULL", false, Example{"1 IS NOT NULL", "TRUE"}),
		isTruth("IS TRUE", true, false, Example{"CAST(NULL AS BOOLEAN) IS TRUE", "FALSE"}),
		isTruth("IS NOT TRUE", true, true, Example{"CAST(NULL AS BOOLEAN) IS NOT TRUE", "TRUE"}),
		isTruth("IS FALSE", false, false, Example{"FALSE IS FALSE", "TRUE"}),
		isTruth("IS NOT FALSE", false, true, Example{"CAST(NULL AS BOOLEAN) IS NOT FALSE", "TRUE"}),
		isUnknown("IS UNKNOWN", true, Example{"CAST(NULL AS BOOLEAN) IS UNKNOWN", "TRUE"}),
		isUnknown("IS NOT UNKNOWN", false, Example{"TRUE IS NOT UNKNOWN", "TRUE"}),
	}
}

func not(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
	a, am := args[0].Bools, mask(args[0])
	for _, i := range sel {
		if !a.Get(int(i & am)) {
			out.Bools.Set(int(i))
		}
	}
}

func postfix(name, doc string, ex Example) *Function {
	return &Function{Name: name, Syntax: []string{"a " + name}, Category: CatLogical, Postfix: true,
		Doc: doc, Nulls: NullCalled, Shallow: true, Examples: []Example{ex}}
}

func isNull(name string, yes bool, ex Example) *Function {
	f := postfix(name, "Never NULL itself. An error stays an error.", ex)
	f.Bind = func(args []Arg) (Bound, error) {
		if err := count(name, args, 1, 1); err != nil {
			return Bound{}, err
		}
		t := args[0].Type
		if t.Kind == types.Null {
			t = tBool
		}
		return Bound{Params: []types.Type{t}, Return: tBool.NotNull(),
			Kernel: func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
				for _, i := range sel {
					if null(args[0], i) == yes {
						out.Bools.Set(int(i))
					}
				}
			}}, nil
	}
	return f
}

func isTruth(name string, value, invert bool, ex Example) *Function {
	f := postfix(name, "Never NULL itself; NULL is neither TRUE nor FALSE.", ex)
	f.Bind = func(args []Arg) (Bound, error) {
		if err := count(name, args, 1, 1); err != nil {
			return Bound{}, err
		}
		if err := want(name, args, 0, "BOOLEAN", isBool); err != nil {
			return Bound{}, err
		}
		return Bound{Params: []types.Type{tBool}, Return: tBool.NotNull(),
			Kernel: func(_ *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec) {
				for _, i := range sel {
					is := !null(args[0], i) && args[0].Bool(int(i)) == value
					if is != invert {
						out.Bools.Set(int(i))
					}
				}
			}}, nil
	}
	return f
}

func isUnknown(name string, yes bool, ex Example) *Function {
	f := isNull(name, yes, ex)
	inner := f.Bind
	f.Bind = func(args []Arg) (Bound, error) {
		if len(args) == 1 {
			if err := want(name, args, 0, "BOOLEAN", isBool); err != nil {
				return Bound{}, err
			}
		}
		return inner(args)
	}
	return f
}

// conditionals are lazy forms; Bind only types them.
func conditionals() []*Function {
	return []*Function{
		{Name: "CASE", Syntax: []string{"CASE WHEN c THEN v ... [ELSE v] END", "CASE x WHEN a THEN v ... END"}, Category: CatConditional,
			Form: FormCase, Doc: "The value of the first branch whose condition is TRUE, else that of ELSE, else NULL. Only that branch is evaluated.",
			Examples: []Example{{"CASE WHEN 1 = 2 THEN 'a' WHEN TRUE THEN 'b' END", "b"}, {"CASE WHEN FALSE THEN 1/0 ELSE 7 END", "7"}, {"CASE WHEN FALSE THEN 1 END", "NULL"}},
			Bind:     bindCase("CASE", 2, -1)},
		{Name: "IF", Syntax: []string{"IF(condition, a, b)"}, Category: CatConditional, Form: FormIf,
			Doc:      "a if the condition is TRUE, else b. Only that one is evaluated.",
			Examples: []Example{{"IF(5 > 3, 'gt', 'le')", "gt"}, {"IF(NULL, 1, 2)", "2"}, {"IF(TRUE, 1, 1/0)", "1"}},
			Bind:     bindCase("IF", 3, 3)},
		{Name: "COALESCE", Syntax: []string{"COALESCE(a, b, ...)"}, Category: CatConditional, Form: FormCoalesce,
			Doc:      "The first argument that is not NULL. Later ones are not evaluated.",
			Examples: []Example{{"COALESCE(NULL, 'x', 'y')", "x"}, {"COALESCE(1, 1/0)", "1"}, {"COALESCE(CAST(NULL AS INT), NULL)", "NULL"}},
			Bind:     bindCoalesce("COALESCE", 1, -1)},
		{Name: "IFNULL", Syntax: []string{"IFNULL(a, b)"}, Category: CatConditional, Form: FormCoalesce,
			Doc: "b if a is NULL, else a.", Examples: []Example{{"IFNULL(NULL, 5)", "5"}, {"IFNULL(3, 5)", "3"}},
			Bind: bindCoalesce("IFNULL", 2, 2)},
		{Name: "NULLIF", Syntax: []string{"NULLIF(a, b)"}, Category: CatConditional, Form: FormNullIf,
			Doc: "NULL if a = b, else a.", Examples: []Example{{"NULLIF(5, 5)", "NULL"}, {"NULLIF(5, 0)", "5"}},
			Bind: func(args []Arg) (Bound, error) {
				if err := count("NULLIF", args, 2, 2); err != nil {
					return Bound{}, err
				}
				_, params, err := comparable2("NULLIF", args)
				return Bound{Params: params, Return: args[0].Type.WithNullable(true)}, err
			}},
		{Name: "IN", Syntax: []string{"x IN (a, b, ...)", "x NOT IN (a, b, ...)"}, Category: CatComparison, Form: FormIn,
			Doc:      "TRUE if x equals one of the values; else NULL if x or one of the values is NULL; else FALSE.",
			Examples: []Example{{"IN(4, 1, 2, 3)", "FALSE"}, {"IN(4, 1, 2, NULL)", "NULL"}, {"IN(1, 1, NULL)", "TRUE"}, {"NOT IN(4, 1, 2, NULL)", "NULL"}},
			Bind: func(args []Arg) (Bound, error) {
				if err := count("IN", args, 2, -1); err != nil {
					return Bound{}, err
				}
				return bindIn(args)
			}},
	}
}

// bindIn brings all arguments to one type, but for what "=" does not compare.
func bindIn(args []Arg) (Bound, error) {
	b, err := bindSame("IN", args, func(types.Type) types.Type { return tBool.WithNullable(anyNullable(args)) })
	if err != nil {
		return b, err
	}
	for i := 1; i < len(args); i++ {
		if isDateAndTimestamp(args[0].Type, args[i].Type) {
			return b, argErrf(i, "IN cannot compare %s with %s; CAST one of them", args[0].Type.WithNullable(true), args[i].Type.WithNullable(true))
		}
	}
	if b.Params[0].Kind == types.Float && slices.ContainsFunc(args, func(a Arg) bool { return a.Type.IsInteger() }) {
		for i := range b.Params {
			b.Params[i] = tDouble // see comparable2
		}
	}
	return b, nil
}

// bindSame brings all arguments to one type.
func bindSame(name string, args []Arg, ret func(types.Type) types.Type) (Bound, error) {
	t, err := commonOf(name, args, 0)
	if err != nil {
		return Bound{}, err
	}
	params := make([]types.Type, len(args))
	for i := range params {
		params[i] = t
	}
	return Bound{Params: params, Return: ret(t)}, nil
}

func commonOf(name string, args []Arg, from int) (types.Type, error) {
	ts := make([]types.Type, 0, len(args))
	temporal := types.Type{}
	for _, a := range args[from:] {
		if isTemporal(a.Type) {
			temporal = a.Type
		}
	}
	for _, a := range args[from:] {
		if temporal.Kind != types.Invalid && a.Const != nil && a.Type.IsString() {
			continue // takes the type of the dates and times
		}
		ts = append(ts, a.Type)
	}
	t, ok := types.Common(ts...)
	if !ok {
		for i := 1; i < len(args)-from; i++ {
			if _, fits := types.Common(args[from].Type, args[from+i].Type); !fits {
				return t, argErrf(from+i, "argument %d of %s is %s, which has no common type with %s", from+i+1, name,
					args[from+i].Type.WithNullable(true), args[from].Type.WithNullable(true))
			}
		}
		return t, argErrf(-1, "the arguments of %s have no common type", name)
	}
	return t, nil
}

func bindCoalesce(name string, lo, hi int) func([]Arg) (Bound, error) {
	return func(args []Arg) (Bound, error) {
		if err := count(name, args, lo, hi); err != nil {
			return Bound{}, err
		}
		return bindSame(name, args, func(t types.Type) types.Type {
			nullable := true
			for _, a := range args {
				nullable = nullable && (a.Type.Nullable || a.Type.Kind == types.Null)
			}
			return t.WithNullable(nullable)
		})
	}
}

func bindCase(name string, lo, hi int) func([]Arg) (Bound, error) {
	return func(args []Arg) (Bound, error) {
		if err := count(name, args, lo, hi); err != nil {
			return Bound{}, err
		}
		var vals []Arg
		var at []int
		params := make([]types.Type, len(args))
		for i := range args {
			if i%2 == 0 && i+1 < len(args) {
				if err := want(name, args, i, "BOOLEAN", isBool); err != nil {
					return Bound{}, err
				}
				params[i] = tBool
				continue
			}
			vals, at = append(vals, args[i]), append(at, i)
		}
		t, err := commonOf(name, vals, 0)
		if err != nil {
			if ae, ok := err.(*ArgError); ok && ae.Arg >= 0 {
				ae.Arg = at[ae.Arg]
			}
			return Bound{}, err
		}
		if len(args)%2 == 0 {
			t.Nullable = true
		}
		for _, i := range at {
			params[i] = t
		}
		return Bound{Params: params, Return: t}, nil
	}
}
