package syntax

// JSONBehaviorKind is what a JSON function does when the path finds nothing or fails.
type JSONBehaviorKind uint8

// The behaviors. JSON_VALUE allows NULL, ERROR and DEFAULT; JSON_QUERY allows NULL, EMPTY ARRAY, EMPTY
// OBJECT and ERROR; JSON_EXISTS allows TRUE, FALSE, UNKNOWN and ERROR.
const (
	JSONNull JSONBehaviorKind = iota
	JSONError
	JSONDefault
	JSONEmptyArray
	JSONEmptyObject
	JSONTrue
	JSONFalse
	JSONUnknown
)

// JSONBehavior is a behavior as written before ON EMPTY or ON ERROR.
type JSONBehavior struct {
	Loc
	Kind    JSONBehaviorKind
	Default Expr // of JSONDefault
}

// JSONValue is JSON_VALUE(x, path [RETURNING type] [b ON EMPTY] [b ON ERROR]).
type JSONValue struct {
	Loc
	Expr      Expr
	Path      Expr
	Returning *DataType     // nil if absent
	OnEmpty   *JSONBehavior // nil if absent
	OnError   *JSONBehavior // nil if absent
}

// JSONWrapper is the wrapper clause of JSON_QUERY.
type JSONWrapper uint8

// The wrappers.
const (
	JSONWrapperDefault JSONWrapper = iota // not written: without wrapper
	JSONWithoutWrapper
	JSONWithConditionalWrapper
	JSONWithUnconditionalWrapper
)

// JSONQuery is JSON_QUERY(x, path [RETURNING type] [wrapper] [b ON EMPTY] [b ON ERROR]).
type JSONQuery struct {
	Loc
	Expr      Expr
	Path      Expr
	Returning *DataType
	Wrapper   JSONWrapper
	OnEmpty   *JSONBehavior
	OnError   *JSONBehavior
}

// JSONExists is JSON_EXISTS(x, path [b ON ERROR]).
type JSONExists struct {
	Loc
	Expr    Expr
	Path    Expr
	OnError *JSONBehavior
}

// JSONOnNull says whether a JSON constructor keeps NULL values.
type JSONOnNull uint8

// The rules.
const (
	JSONOnNullDefault JSONOnNull = iota // not written
	JSONNullOnNull
	JSONAbsentOnNull
)

// JSONPair is [KEY] k VALUE v.
type JSONPair struct {
	Loc
	Key   Expr
	Value Expr
}

// JSONObject is JSON_OBJECT(pair, ... [NULL | ABSENT ON NULL]), or the aggregate JSON_OBJECTAGG with one
// pair.
type JSONObject struct {
	Loc
	Agg    bool
	Pairs  []*JSONPair
	OnNull JSONOnNull
	Filter Expr // of the aggregate
}

// JSONArray is JSON_ARRAY(x, ... [NULL | ABSENT ON NULL]), or the aggregate JSON_ARRAYAGG with one item.
type JSONArray struct {
	Loc
	Agg    bool
	Items  []Expr
	OnNull JSONOnNull
	Filter Expr // of the aggregate
}

func (*JSONValue) expr()  {}
func (*JSONQuery) expr()  {}
func (*JSONExists) expr() {}
func (*JSONObject) expr() {}
func (*JSONArray) expr()  {}
