package fn

import (
	"github.com/millrace/millrace/runtime/types"
)

// aggregates are the declarations in the order of the docs.
func aggregates(opts LibraryOptions) []*Aggregate {
	sumDoc := "Sum of the values that are not NULL; NULL if there are none. Integers up to INT give BIGINT; a result out of range is an error. FLOAT and DOUBLE are summed exactly and rounded once."
	if opts.NoSumWidening {
		sumDoc = "Sum of the values that are not NULL, in their type; NULL if there are none. A result out of range is an error. FLOAT and DOUBLE are summed exactly and rounded once."
	}
	return append([]*Aggregate{
		{Name: "COUNT", Syntax: []string{"COUNT(*)", "COUNT([DISTINCT] x, ...)"}, Doc: "Number of rows, or of rows (distinct values) in which no argument is NULL. BIGINT, never NULL.",
			Examples: []AggExample{{"COUNT(x)", "INT", []string{"1", "NULL", "1"}, "2"}, {"COUNT(DISTINCT x)", "INT", []string{"1", "NULL", "1", "2"}, "2"}, {"COUNT(*)", "INT", []string{"1", "NULL"}, "2"}},
			Bind:     bindCount},
		{Name: "SUM", Syntax: []string{"SUM([DISTINCT] x)"}, Doc: sumDoc,
			Examples: []AggExample{{"SUM(x)", "INT", []string{"1", "NULL", "2"}, "3"}, {"SUM(x)", "INT", []string{"NULL"}, "NULL"}, {"SUM(x)", "DOUBLE", []string{"1e100", "1", "-1e100"}, "1.0"}, {"SUM(DISTINCT x)", "INT", []string{"2", "2", "3"}, "5"}},
			Bind:     func(args []Arg, o AggOptions) (BoundAggregate, error) { return bindSum(args, o, !opts.NoSumWidening) }},
		{Name: "MIN", Syntax: []string{"MIN(x)"}, Doc: "The smallest value that is not NULL; NULL if there is none. NaN counts as the largest number.",
			Examples: []AggExample{{"MIN(x)", "INT", []string{"3", "NULL", "-1"}, "-1"}, {"MIN(x)", "STRING", []string{"b", "a"}, "a"}}, Bind: bindExtreme("MIN", true)},
		{Name: "MAX", Syntax: []string{"MAX(x)"}, Doc: "The largest value that is not NULL; NULL if there is none. NaN counts as the largest number.",
			Examples: []AggExample{{"MAX(x)", "INT", []string{"3", "NULL", "-1"}, "3"}}, Bind: bindExtreme("MAX", false)},
		{Name: "AVG", Syntax: []string{"AVG([DISTINCT] x)"}, Doc: "Mean of the values that are not NULL; NULL if there are none. Integers keep their type (the fraction is cut), DECIMAL(p, s) gives DECIMAL(38, max(6, s)) rounded half up.",
			Examples: []AggExample{{"AVG(x)", "INT", []string{"1", "2", "NULL"}, "1"}, {"AVG(x)", "DECIMAL(10, 2)", []string{"1.00", "2.00"}, "1.500000"}, {"AVG(x)", "DOUBLE", []string{"1", "2"}, "1.5"}}, Bind: bindAvg},
		{Name: "FIRST_VALUE", Syntax: []string{"FIRST_VALUE(x)"}, Doc: "The value of the first row in which x is not NULL, by row time (or VERSION BY), then position in the source.",
			Examples: []AggExample{{"FIRST_VALUE(x)", "STRING", []string{"NULL", "a", "b"}, "a"}}, Bind: bindFirstLast("FIRST_VALUE", true)},
		{Name: "LAST_VALUE", Syntax: []string{"LAST_VALUE(x)"}, Doc: "The value of the last row in which x is not NULL, by row time (or VERSION BY), then position in the source.",
			Examples: []AggExample{{"LAST_VALUE(x)", "STRING", []string{"a", "b", "NULL"}, "b"}}, Bind: bindFirstLast("LAST_VALUE", false)},
		{Name: "LISTAGG", Syntax: []string{"LISTAGG([DISTINCT] s [, separator])"}, Doc: "The strings that are not NULL joined in row order, with a separator (',' when left out) between them; NULL if there are none.",
			Examples: []AggExample{{"LISTAGG(x)", "STRING", []string{"a", "NULL", "b"}, "a,b"}, {"LISTAGG(x, '-')", "STRING", []string{"a", "b"}, "a-b"}, {"LISTAGG(DISTINCT x)", "STRING", []string{"b", "a", "b"}, "b,a"}}, Bind: bindListAgg},
		{Name: "ARRAY_AGG", Syntax: []string{"ARRAY_AGG([DISTINCT] x)"}, Doc: "All values in row order as an ARRAY, NULLs included; NULL if there are no rows.",
			Examples: []AggExample{{"ARRAY_AGG(x)", "INT", []string{"1", "NULL", "3"}, "[1, NULL, 3]"}}, Bind: bindArrayAgg},
	}, variances()...)
}

func bindCount(args []Arg, o AggOptions) (BoundAggregate, error) {
	b := BoundAggregate{Return: tBigInt.NotNull(), New: func() Accumulator { return &countAcc{} }}
	for _, a := range args {
		t := a.Type
		if t.Kind == types.Null {
			t = tBool
		}
		b.Params = append(b.Params, t)
	}
	if o.Distinct {
		if len(args) == 0 {
			return b, argErrf(-1, "COUNT(DISTINCT) needs an argument")
		}
		return distinct(b, true), nil
	}
	return b, nil
}

// oneNumber checks SUM and AVG.
func oneNumber(name string, args []Arg) (types.Type, error) {
	if err := count(name, args, 1, 1); err != nil {
		return types.Type{}, err
	}
	if err := want(name, args, 0, "a number", isNumeric); err != nil {
		return types.Type{}, err
	}
	if args[0].Type.Kind == types.Null {
		return tInt, nil
	}
	return args[0].Type, nil
}

func bindSum(args []Arg, o AggOptions, widen bool) (BoundAggregate, error) {
	t, err := oneNumber("SUM", args)
	if err != nil {
		return BoundAggregate{}, err
	}
	b := BoundAggregate{Params: []types.Type{t}, Return: t.WithNullable(true)}
	switch {
	case t.IsInteger():
		if widen {
			b.Return = tBigInt
		}
		ret := b.Return
		b.New = func() Accumulator { return &intSum{ret: ret} }
	case t.Kind == types.Decimal:
		b.Return = types.SumDecimal(t)
		ret := b.Return
		b.New = func() Accumulator { return &decimalSum{ret: ret, scale: t.Scale} }
	default:
		b.New = func() Accumulator { return &floatSum{ret: t.WithNullable(true)} }
	}
	if o.Distinct {
		b = distinct(b, false)
	}
	return b, nil
}

func bindAvg(args []Arg, o AggOptions) (BoundAggregate, error) {
	t, err := oneNumber("AVG", args)
	if err != nil {
		return BoundAggregate{}, err
	}
	b := BoundAggregate{Params: []types.Type{t}, Return: t.WithNullable(true)}
	switch {
	case t.IsInteger():
		b.New = func() Accumulator { return &intSum{ret: t.WithNullable(true), avg: true} }
	case t.Kind == types.Decimal:
		b.Return = types.AvgDecimal(t)
		ret := b.Return
		b.New = func() Accumulator { return &decimalSum{ret: ret, scale: t.Scale, avg: true} }
	default:
		b.New = func() Accumulator { return &floatSum{ret: t.WithNullable(true), avg: true} }
	}
	if o.Distinct {
		b = distinct(b, false)
	}
	return b, nil
}

func bindExtreme(name string, least bool) func([]Arg, AggOptions) (BoundAggregate, error) {
	return func(args []Arg, _ AggOptions) (BoundAggregate, error) {
		if err := count(name, args, 1, 1); err != nil {
			return BoundAggregate{}, err
		}
		t := args[0].Type
		if t.Kind == types.Null {
			t = tInt
		}
		b := BoundAggregate{Params: []types.Type{t}, Return: t.WithNullable(true)}
		switch t.Physical() {
		case types.PhysList, types.PhysMap, types.PhysRow:
			return b, argErrf(0, "%s of %s: its values have no order", name, t.Kind)
		case types.PhysBytes:
			b.New = func() Accumulator { return &bytesExtreme{t: b.Return, least: least} }
		case types.PhysDecimal128:
			b.New = func() Accumulator { return &wideExtreme{t: b.Return, least: least} }
		default:
			b.New = func() Accumulator { return &intExtreme{t: b.Return, least: least} }
		}
		return b, nil
	}
}

func bindFirstLast(name string, first bool) func([]Arg, AggOptions) (BoundAggregate, error) {
	return func(args []Arg, o AggOptions) (BoundAggregate, error) {
		if err := count(name, args, 1, 1); err != nil {
			return BoundAggregate{}, err
		}
		t := args[0].Type
		if t.Kind == types.Null {
			return BoundAggregate{}, argErrf(0, "%s of a bare NULL: CAST it", name)
		}
		ret := t.WithNullable(true)
		return BoundAggregate{Params: []types.Type{t}, Return: ret, Ordered: true,
			New: func() Accumulator { return &versioned{t: ret, first: first, keepNulls: o.KeepNulls} }}, nil
	}
}

func bindListAgg(args []Arg, o AggOptions) (BoundAggregate, error) {
	if err := count("LISTAGG", args, 1, 2); err != nil {
		return BoundAggregate{}, err
	}
	if err := want("LISTAGG", args, 0, "a string (CAST it)", isString); err != nil {
		return BoundAggregate{}, err
	}
	sep := ","
	params := []types.Type{stringType(args[0].Type)}
	if len(args) == 2 {
		var ok bool
		if sep, ok = args[1].Text(); !ok {
			return BoundAggregate{}, argErrf(1, "the separator of LISTAGG must be a string literal")
		}
		params = append(params, args[1].Type)
	}
	b := BoundAggregate{Params: params, Return: tString, Ordered: true,
		New: func() Accumulator {
			return &listAcc{elem: params[0], ret: tString, skipNulls: true, distinct: o.Distinct, sep: sep}
		}}
	return b, nil
}

func bindArrayAgg(args []Arg, o AggOptions) (BoundAggregate, error) {
	if err := count("ARRAY_AGG", args, 1, 1); err != nil {
		return BoundAggregate{}, err
	}
	t := args[0].Type
	if t.Kind == types.Null {
		return BoundAggregate{}, argErrf(0, "ARRAY_AGG of a bare NULL: CAST it")
	}
	ret := types.NewArray(t)
	return BoundAggregate{Params: []types.Type{t}, Return: ret, Ordered: true,
		New: func() Accumulator {
			return &listAcc{elem: t, ret: ret, skipNulls: o.IgnoreNulls, distinct: o.Distinct}
		}}, nil
}
