package syntax

import (
	"reflect"
	"slices"
	"testing"
)

// Every node reachable through fields is reachable through Children: nobody forgets a field there.
func TestChildrenSeesEveryField(t *testing.T) {
	seen := map[reflect.Type]bool{}
	for _, text := range corpus(t) {
		s, _ := parseQuiet(text)
		Walk(s, func(n Node) bool {
			v := reflect.ValueOf(n).Elem()
			seen[v.Type()] = true
			want := fieldNodes(v)
			var got []Node
			Children(n, func(c Node) { got = append(got, c) })
			if len(got) != len(want) {
				t.Errorf("%T has %d children, Children gives %d", n, len(want), len(got))
			}
			for _, w := range want {
				if !slices.Contains(got, w) {
					t.Errorf("%T: Children misses %T", n, w)
				}
			}
			return true
		})
	}
	// All node types of the package occur in the corpus.
	for _, n := range allNodes {
		if !seen[reflect.TypeOf(n).Elem()] {
			t.Errorf("%T does not occur in the golden tests", n)
		}
	}
}

func fieldNodes(v reflect.Value) []Node {
	var out []Node
	for i := range v.NumField() {
		f := v.Field(i)
		items := []reflect.Value{f}
		if f.Kind() == reflect.Slice {
			items = nil
			for j := range f.Len() {
				items = append(items, f.Index(j))
			}
		}
		for _, it := range items {
			if it.Kind() != reflect.Pointer && it.Kind() != reflect.Interface || it.IsNil() {
				continue
			}
			if n, ok := it.Interface().(Node); ok {
				out = append(out, n)
			}
		}
	}
	return out
}

var allNodes = []Node{
	&Script{}, &Ident{}, &Name{}, &Option{}, &BadStmt{},
	&CreateTable{}, &PartitionClause{}, &PartitionColumn{}, &ColumnDef{}, &ComputedColumn{}, &MetadataColumn{},
	&WatermarkDef{}, &PrimaryKeyDef{}, &Like{}, &LikeOption{}, &ColumnsOf{}, &CreateView{}, &CreateWideTable{},
	&WideWindow{}, &WideBranch{}, &ForEach{}, &Drop{}, &AlterTable{}, &AlterView{}, &RenameTable{}, &RenameColumn{},
	&SetOptions{}, &ResetOptions{}, &AddElements{}, &ModifyElements{}, &PlacedElement{}, &DropElements{},
	&Set{}, &Reset{}, &Insert{}, &PartitionValue{}, &StatementSet{}, &QueryStmt{}, &Explain{}, &Show{}, &Describe{},
	&StopJob{}, &Query{}, &CTE{}, &OrderItem{}, &SetOp{}, &Values{}, &ExplicitTable{}, &Select{}, &Star{},
	&SelectExpr{}, &GroupBy{}, &GroupExpr{}, &GroupingSets{}, &Alias{}, &TableRef{}, &DerivedTable{}, &TableFunc{},
	&Unnest{}, &Join{}, &Hint{}, &NamedWindow{}, &WindowSpec{}, &Frame{}, &FrameBound{}, &ColumnRef{},
	&FieldAccess{}, &Index{}, &NumberLit{}, &StringLit{}, &BinaryLit{}, &BoolLit{}, &UnknownLit{}, &NullLit{},
	&DateTimeLit{}, &IntervalLit{}, &IntervalQualifier{}, &Unary{}, &Binary{}, &Is{}, &IsDistinct{}, &Between{},
	&In{}, &Quantified{}, &Exists{}, &LikeExpr{}, &Case{}, &When{}, &Cast{}, &Call{}, &NamedArg{}, &DefaultArg{},
	&TableArg{}, &Descriptor{}, &UnitArg{}, &Extract{}, &RoundTime{}, &Trim{}, &Position{}, &Substring{},
	&Overlay{}, &RowExpr{}, &ArrayExpr{}, &MapExpr{}, &Subquery{}, &JSONBehavior{}, &JSONValue{}, &JSONQuery{},
	&JSONExists{}, &JSONPair{}, &JSONObject{}, &JSONArray{}, &DataType{}, &FieldDef{},
}
