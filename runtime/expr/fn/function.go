package fn

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// Kernel computes a function over the rows of sel; see the package comment
// for what it may rely on.
type Kernel func(ctx *Context, args []*batch.Vec, sel batch.Sel, out *batch.Vec)

// NullMode says what NULL arguments do.
type NullMode uint8

const (
	// NullStrict: the result is NULL when any argument is; the kernel never
	// sees such a row.
	NullStrict NullMode = iota
	// NullCalled: the kernel sees NULL arguments and decides.
	NullCalled
)

// Determinism says when two calls with equal arguments give equal results.
type Determinism uint8

const (
	// Deterministic: always; the call may be folded and shared.
	Deterministic Determinism = iota
	// PerBatch: within one evaluation (clock functions). Shared, not folded.
	PerBatch
	// PerCall: never; evaluated per reference and per row.
	PerCall
)

// String names the mode as docs print it.
func (d Determinism) String() string {
	return [...]string{"deterministic", "clock (one reading per batch)", "non-deterministic"}[d]
}

// Form says who evaluates the function.
type Form uint8

// The forms. All but FormKernel evaluate their arguments lazily and are built
// by runtime/expr.NewCall.
const (
	FormKernel   Form = iota
	FormAnd           // AND(a, b...)
	FormOr            // OR(a, b...)
	FormIf            // IF(cond, then, else)
	FormCase          // CASE(cond, then, cond, then..., else)
	FormCoalesce      // COALESCE(a, b...), IFNULL(a, b)
	FormNullIf        // NULLIF(a, b)
	FormIn            // IN(x, a, b...)
	FormBetween       // BETWEEN(x, a, b)
)

// Arg is what Bind sees of an argument.
type Arg struct {
	// Type of the argument; Kind Null for a bare NULL.
	Type types.Type
	// Const is the value of a literal argument (Enc Const), nil otherwise.
	Const *batch.Vec
}

// Text is the value of a non-NULL string literal argument.
func (a Arg) Text() (string, bool) {
	if a.Const == nil || !a.Type.IsString() || a.Const.IsNull(0) {
		return "", false
	}
	return string(a.Const.Bytes(0)), true
}

// Int is the value of a non-NULL integer literal argument.
func (a Arg) Int() (int64, bool) {
	if a.Const == nil || !a.Type.IsInteger() || a.Const.IsNull(0) {
		return 0, false
	}
	return a.Const.Int64(0), true
}

// Bound is a function bound to argument types.
type Bound struct {
	// Params are the types, one an argument, to which the caller casts the
	// arguments implicitly (nullability is ignored).
	Params []types.Type
	// Return is the result type, nullability included.
	Return types.Type
	// Kernel is nil exactly for forms other than FormKernel.
	Kernel Kernel
	// Determinism weakens that of the function for this call.
	Determinism Determinism
}

// Example is a call that docs print and a test runs.
type Example struct {
	// SQL is an expression, e.g. "UPPER('abc')".
	SQL string
	// Want is the result cast to STRING, "NULL" for NULL, "error:<code>" for
	// an error value.
	Want string
}

// Category groups functions in the docs.
type Category string

// The categories, in the order of the docs.
const (
	CatComparison  Category = "Comparison"
	CatLogical     Category = "Logical"
	CatConditional Category = "Conditional"
	CatArithmetic  Category = "Arithmetic"
	CatString      Category = "String"
	CatHash        Category = "Hash and encoding"
	CatTemporal    Category = "Temporal"
	CatJSON        Category = "JSON"
	CatCollection  Category = "Collection"
	CatAggregate   Category = "Aggregate"
	CatUser        Category = "User" // of a program's own; not in the docs
)

// Function is the one declaration of a scalar function.
type Function struct {
	// Name is the canonical name, upper case, or an operator such as "+".
	Name string
	// Aliases are further names with the same meaning.
	Aliases []string
	// Syntax are the spellings as SQL writes them, e.g. "LEFT(s, n)".
	Syntax   []string
	Category Category
	// Doc is one paragraph for users: meaning, units, NULL and error cases.
	Doc         string
	Examples    []Example
	Nulls       NullMode
	Determinism Determinism
	// Infix: the text of a call is "a OP b", not "OP(a, b)".
	Infix bool
	// Postfix: the text of a call is "a OP", as in "a IS NULL".
	Postfix bool
	// Shallow: errors inside nested arguments (an element of an array) do
	// not make the call an error, because it does not look at them.
	Shallow bool
	// UsesZone: the result depends on the session time zone, so that the call
	// is not folded at plan time.
	UsesZone bool
	Form     Form
	// User is set for a program's own function, nil for a built-in one.
	User *User
	// Table: a table function. Its value is an ARRAY of ROWs, the rows it gives,
	// and it stands in FROM alone.
	Table bool
	// Bind checks argument count, types and literals and picks the kernel.
	// Its errors are for users: lower case, they name the argument.
	Bind func(args []Arg) (Bound, error)
}

// ArgError is a problem with one argument of a call, so that a caller can
// point at it.
type ArgError struct {
	// Arg is the index of the argument, -1 for the call as a whole.
	Arg int
	// Offset is the byte position inside a string literal, -1 if none.
	Offset int
	Msg    string
}

// Error implements error.
func (e *ArgError) Error() string { return e.Msg }

func argErrf(arg int, format string, a ...any) error {
	return &ArgError{Arg: arg, Offset: -1, Msg: fmt.Sprintf(format, a...)}
}

// Refusal is a name of another dialect that is refused with its equivalent.
type Refusal struct {
	Name string // e.g. "NVL"
	Use  string // e.g. "COALESCE(a, b)"
}

// Library is an immutable set of functions and aggregates.
type Library struct {
	funcs    map[string]*Function
	aggs     map[string]*Aggregate
	refusals map[string]Refusal
	list     []*Function
	aggList  []*Aggregate
}

// LibraryOptions configure NewLibrary; the zero value works.
type LibraryOptions struct {
	// NoSumWidening keeps SUM of integers at its argument's type
	// (millrace.sum-widening = false).
	NoSumWidening bool
	// Extra are user functions; a name that exists is an error.
	Extra Extra
}

// NewLibrary builds the library of all built-in functions and opts.Extra.
func NewLibrary(opts LibraryOptions) (*Library, error) {
	l := &Library{funcs: map[string]*Function{}, aggs: map[string]*Aggregate{}, refusals: map[string]Refusal{}}
	if err := opts.Extra.checkUser(); err != nil {
		return nil, err
	}
	for _, f := range slices.Concat(builtins(), opts.Extra.Functions) {
		if err := l.add(f); err != nil {
			return nil, err
		}
	}
	for _, a := range slices.Concat(aggregates(opts), opts.Extra.Aggregates) {
		if err := l.addAggregate(a); err != nil {
			return nil, err
		}
	}
	for _, r := range refusals() {
		l.refusals[r.Name] = r
	}
	return l, nil
}

func (l *Library) add(f *Function) error {
	for _, n := range append([]string{f.Name}, f.Aliases...) {
		if n != strings.ToUpper(n) {
			return fmt.Errorf("function name %q is not upper case", n)
		}
		if old, dup := l.funcs[n]; dup {
			return declaredTwice(n, old.User, f.User)
		}
		l.funcs[n] = f
	}
	l.list = append(l.list, f)
	return nil
}

func (l *Library) addAggregate(a *Aggregate) error {
	for _, n := range append([]string{a.Name}, a.Aliases...) {
		if old, dup := l.aggs[n]; dup {
			return declaredTwice(n, old.User, a.User)
		}
		// A user function of one kind must not hide one of the other.
		if old, dup := l.funcs[n]; dup && (a.User != nil || old.User != nil) {
			return declaredTwice(n, old.User, a.User)
		}
		l.aggs[n] = a
	}
	l.aggList = append(l.aggList, a)
	return nil
}

func declaredTwice(name string, old, again *User) error {
	switch {
	case old != nil && again != nil:
		return fmt.Errorf("user function %s is registered twice", name)
	case old != nil || again != nil:
		return fmt.Errorf("user function %s: there is a built-in function of this name; choose another", name)
	}
	return fmt.Errorf("function %s is declared twice", name)
}

// Lookup finds a scalar function or operator by name, in any case.
func (l *Library) Lookup(name string) (*Function, bool) {
	f, ok := l.funcs[strings.ToUpper(name)]
	return f, ok
}

// Aggregate finds an aggregate function by name, in any case.
func (l *Library) Aggregate(name string) (*Aggregate, bool) {
	a, ok := l.aggs[strings.ToUpper(name)]
	return a, ok
}

// Refused finds a name of another dialect, in any case.
func (l *Library) Refused(name string) (Refusal, bool) {
	r, ok := l.refusals[strings.ToUpper(name)]
	return r, ok
}

// RefusedNames are the names of other dialects, sorted; for "did you mean".
func (l *Library) RefusedNames() []string { return slices.Sorted(maps.Keys(l.refusals)) }

// Functions are the scalar functions in the order of declaration.
func (l *Library) Functions() []*Function { return l.list }

// Aggregates are the aggregate functions in the order of declaration.
func (l *Library) Aggregates() []*Aggregate { return l.aggList }

// Names are all callable names, aliases included, sorted; for "did you mean".
func (l *Library) Names() []string {
	names := make([]string, 0, len(l.funcs)+len(l.aggs))
	for n := range l.funcs {
		names = append(names, n)
	}
	for n := range l.aggs {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}
