package function

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// UnknownError says that there is no function of a name.
type UnknownError struct {
	Name string
	// Near is a similar name, "" if there is none.
	Near string
	// Use is the equivalent of a name from another dialect, "" if it is none.
	Use string
	// Later: Flink has it, and it does not work here yet.
	Later bool
}

// Error implements error.
func (e *UnknownError) Error() string {
	if e.Later {
		return fmt.Sprintf("function %s is not supported yet", e.Name)
	}
	return fmt.Sprintf("function %q not found", e.Name)
}

// later are functions of Flink that are known and absent.
var later = map[string]string{
	"TUMBLE_PROCTIME": windowHelp, "HOP_PROCTIME": windowHelp, "SESSION_PROCTIME": windowHelp,
	"CURRENT_WATERMARK": "", "JSON_OBJECTAGG": "", "JSON_ARRAYAGG": "",
	"COLLECT": "", "PRINTF": "CONCAT(a, b, ...)", "ENCODE": "", "PERCENTILE": "",
}

const windowHelp = "the bounds of a window of processing time are TUMBLE_START, TUMBLE_END and the like"

// LaterHelp is what to write instead of a function that is not supported yet,
// "" if there is nothing.
func LaterHelp(name string) string { return later[strings.ToUpper(name)] }

// Lookup finds a scalar function by name, in any case; the error is an
// *UnknownError.
func Lookup(lib *fn.Library, name string) (*fn.Function, error) {
	if f, ok := lib.Lookup(name); ok {
		return f, nil
	}
	e := &UnknownError{Name: name}
	if _, ok := later[strings.ToUpper(name)]; ok {
		e.Name, e.Later = strings.ToUpper(name), true
		return nil, e
	}
	if r, ok := lib.Refused(name); ok {
		e.Use = r.Use
		return nil, e
	}
	near, ok := diag.Nearest(strings.ToUpper(name), callable(lib))
	// A name of another dialect, misspelled, is nearer than one of ours.
	if other, found := diag.Nearest(strings.ToUpper(name), lib.RefusedNames()); found &&
		(!ok || diag.Distance(strings.ToUpper(name), other) < diag.Distance(strings.ToUpper(name), near)) {
		r, _ := lib.Refused(other)
		e.Use = r.Use
		return nil, e
	}
	if ok {
		e.Near = near
	}
	return nil, e
}

// callable are the names that look like functions, operators left out.
func callable(lib *fn.Library) []string {
	var out []string
	for _, n := range lib.Names() {
		if c := n[0]; c >= 'A' && c <= 'Z' && !strings.Contains(n, " ") {
			out = append(out, n)
		}
	}
	return out
}

// Call finds a function and applies it. The error is an *UnknownError, or
// says what is wrong with the arguments (an *fn.ArgError by errors.As).
func Call(lib *fn.Library, name string, args ...expr.Expr) (expr.Expr, error) {
	f, err := Lookup(lib, name)
	if err != nil {
		return nil, err
	}
	return expr.NewCall(f, args...)
}

var binaryNames = [...]string{
	syntax.OpOr: "OR", syntax.OpAnd: "AND", syntax.OpEq: "=", syntax.OpNe: "<>", syntax.OpLt: "<", syntax.OpLe: "<=", syntax.OpGt: ">",
	syntax.OpGe: ">=", syntax.OpAdd: "+", syntax.OpSub: "-", syntax.OpConcat: "||", syntax.OpMul: "*", syntax.OpDiv: "/", syntax.OpMod: "%",
}

// Binary is the name of an infix operator.
func Binary(op syntax.BinaryOp) string { return binaryNames[op] }

var isNames = [...]string{
	syntax.IsNull: "NULL", syntax.IsTrue: "TRUE", syntax.IsFalse: "FALSE", syntax.IsUnknown: "UNKNOWN",
}

// JSONKind is the argument of "IS JSON" for x IS JSON VALUE, OBJECT, ARRAY or
// SCALAR; false for other tests.
func JSONKind(kind syntax.IsKind) (string, bool) {
	switch kind {
	case syntax.IsJSONValue:
		return "VALUE", true
	case syntax.IsJSONObject:
		return "OBJECT", true
	case syntax.IsJSONArray:
		return "ARRAY", true
	case syntax.IsJSONScalar:
		return "SCALAR", true
	}
	return "", false
}

// Is is the name of x IS [NOT] kind, for tests other than JSON.
func Is(kind syntax.IsKind, not bool) string {
	if not {
		return "IS NOT " + isNames[kind]
	}
	return "IS " + isNames[kind]
}

var unitNames = [...]string{
	syntax.UnitYear: "YEAR", syntax.UnitMonth: "MONTH", syntax.UnitDay: "DAY", syntax.UnitHour: "HOUR", syntax.UnitMinute: "MINUTE",
	syntax.UnitSecond: "SECOND", syntax.UnitQuarter: "QUARTER", syntax.UnitWeek: "WEEK", syntax.UnitMillisecond: "MILLISECOND",
	syntax.UnitMicrosecond: "MICROSECOND", syntax.UnitNanosecond: "NANOSECOND", syntax.UnitDecade: "DECADE", syntax.UnitCentury: "CENTURY",
	syntax.UnitMillennium: "MILLENNIUM", syntax.UnitEpoch: "EPOCH", syntax.UnitDow: "DOW", syntax.UnitIsoDow: "ISODOW",
	syntax.UnitDoy: "DOY", syntax.UnitIsoYear: "ISOYEAR",
}

// Unit is the name of a unit of time, as functions take it.
func Unit(u syntax.Unit) string { return unitNames[u] }
