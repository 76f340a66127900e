package syntax

import "reflect"

// Walk calls f for n and then, if f returned true, for the children of n in source order. nil nodes are
// skipped. It does not go into variables of texts.
func Walk(n Node, f func(Node) bool) {
	if isNil(n) || !f(n) {
		return
	}
	Children(n, func(c Node) { Walk(c, f) })
}

// Any reports whether f holds for n or a node below it.
func Any(n Node, f func(Node) bool) bool {
	found := false
	Walk(n, func(n Node) bool {
		found = found || f(n)
		return !found
	})
	return found
}

// Children calls f for each direct child of n, in source order; nil ones are skipped.
func Children(n Node, f func(Node)) {
	if isNil(n) {
		return
	}
	c := childVisitor{f}
	switch n := n.(type) {
	case Stmt:
		c.stmt(n)
	case Expr:
		c.expr(n)
	default:
		c.other(n)
	}
}

// isNil reports whether n is nil or holds a nil pointer.
func isNil(n Node) bool {
	if n == nil {
		return true
	}
	v := reflect.ValueOf(n)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

type childVisitor struct{ f func(Node) }

func (c childVisitor) one(ns ...Node) {
	for _, n := range ns {
		if !isNil(n) {
			c.f(n)
		}
	}
}

func visitAll[T Node](c childVisitor, ns []T) {
	for _, n := range ns {
		c.one(n)
	}
}

func (c childVisitor) stmt(n Stmt) {
	switch n := n.(type) {
	case *BadStmt:
		c.one(n.Declares)
	case *CreateTable:
		c.one(n.Name)
		visitAll(c, n.Elements)
		visitAll(c, n.Columns)
		c.one(n.Comment, n.Partitions)
		visitAll(c, n.Options)
		c.one(n.Like, n.ColumnsOf, n.As)
	case *CreateView:
		c.one(n.Name)
		visitAll(c, n.Columns)
		c.one(n.Comment, n.Query)
	case *CreateWideTable:
		c.one(n.Name)
		visitAll(c, n.Elements)
		c.one(n.Comment, n.Partitions, n.Window, n.Lateness)
		visitAll(c, n.Options)
		visitAll(c, n.Branches)
	case *ForEach:
		c.one(n.Var, n.Set)
		visitAll(c, n.Body)
	case *Drop:
		c.one(n.Name)
	case *AlterTable:
		c.one(n.Name, n.Action)
	case *AlterView:
		c.one(n.Name, n.RenameTo, n.Query)
	case *Set:
		c.one(n.Key, n.Value)
	case *Reset:
		c.one(n.Key)
	case *Insert:
		c.one(n.Target)
		visitAll(c, n.Hints)
		visitAll(c, n.Partition)
		visitAll(c, n.Columns)
		c.one(n.Query)
	case *StatementSet:
		visitAll(c, n.Inserts)
	case *QueryStmt:
		c.one(n.Query)
	case *Explain:
		c.one(n.Stmt)
	case *Show:
		c.one(n.Of, n.Pattern)
	case *Describe:
		c.one(n.Name, n.ID)
	case *StopJob:
		c.one(n.ID)
	}
}

func (c childVisitor) expr(n Expr) {
	switch n := n.(type) {
	case *ColumnRef:
		visitAll(c, n.Parts)
	case *FieldAccess:
		c.one(n.Base, n.Field)
	case *Index:
		c.one(n.Base, n.Key)
	case *DateTimeLit:
		c.one(n.Value)
	case *IntervalLit:
		c.one(n.Value, n.Qualifier)
	case *Unary:
		c.one(n.Expr)
	case *Binary:
		c.one(n.Left, n.Right)
	case *Is:
		c.one(n.Expr)
	case *IsDistinct:
		c.one(n.Left, n.Right)
	case *Between:
		c.one(n.Expr, n.Low, n.High)
	case *In:
		c.one(n.Expr)
		visitAll(c, n.List)
		c.one(n.Query)
	case *Quantified:
		c.one(n.Left, n.Query)
	case *Exists:
		c.one(n.Query)
	case *LikeExpr:
		c.one(n.Expr, n.Pattern, n.Escape)
	case *Case:
		c.one(n.Operand)
		visitAll(c, n.Whens)
		c.one(n.Else)
	case *Cast:
		c.one(n.Expr, n.Type)
	case *RowExpr:
		visitAll(c, n.Items)
	case *ArrayExpr:
		visitAll(c, n.Items)
	case *MapExpr:
		visitAll(c, n.Items)
	case *Subquery:
		c.one(n.Query)
	default:
		c.callExpr(n)
	}
}

// callExpr visits what is written like a call.
func (c childVisitor) callExpr(n Expr) {
	switch n := n.(type) {
	case *Call:
		c.one(n.Name)
		visitAll(c, n.Args)
		visitAll(c, n.OrderBy)
		visitAll(c, n.WithinGroup)
		c.one(n.Filter, n.Over)
	case *NamedArg:
		c.one(n.Name, n.Value)
	case *TableArg:
		c.one(n.Name, n.Query)
		visitAll(c, n.PartitionBy)
		visitAll(c, n.OrderBy)
	case *Descriptor:
		visitAll(c, n.Columns)
	case *Extract:
		c.one(n.Unit, n.From)
	case *RoundTime:
		c.one(n.Expr, n.Unit)
	case *Trim:
		c.one(n.Chars, n.From)
	case *Position:
		c.one(n.Needle, n.In, n.From)
	case *Substring:
		c.one(n.Expr, n.From, n.For)
	case *Overlay:
		c.one(n.Expr, n.Placing, n.From, n.For)
	case *JSONValue:
		c.one(n.Expr, n.Path, n.Returning, n.OnEmpty, n.OnError)
	case *JSONQuery:
		c.one(n.Expr, n.Path, n.Returning, n.OnEmpty, n.OnError)
	case *JSONExists:
		c.one(n.Expr, n.Path, n.OnError)
	case *JSONObject:
		visitAll(c, n.Pairs)
		c.one(n.Filter)
	case *JSONArray:
		visitAll(c, n.Items)
		c.one(n.Filter)
	}
}

func (c childVisitor) other(n Node) {
	switch n := n.(type) {
	case *Script:
		visitAll(c, n.Stmts)
	case *Name:
		visitAll(c, n.Parts)
	case *Option:
		c.one(n.Key, n.Value)
	case *PartitionClause:
		visitAll(c, n.Columns)
	case *PartitionColumn:
		c.one(n.Name, n.Type)
	case *PartitionValue:
		c.one(n.Column, n.Value)
	case *When:
		c.one(n.Cond, n.Result)
	case *JSONBehavior:
		c.one(n.Default)
	case *JSONPair:
		c.one(n.Key, n.Value)
	case *DataType:
		c.one(n.Key, n.Elem, n.Interval)
		visitAll(c, n.Fields)
	case *FieldDef:
		c.one(n.Name, n.Type, n.Comment)
	case *Hint:
		c.one(n.Name)
		visitAll(c, n.Args)
		visitAll(c, n.Options)
	case *NamedWindow:
		c.one(n.Name, n.Spec)
	case *WindowSpec:
		c.one(n.Ref)
		visitAll(c, n.PartitionBy)
		visitAll(c, n.OrderBy)
		c.one(n.Frame)
	case *Frame:
		c.one(n.Start, n.End)
	case *FrameBound:
		c.one(n.Offset)
	case TableElement:
		c.element(n)
	case AlterAction:
		c.alter(n)
	case *PlacedElement:
		c.one(n.Element, n.After)
	case *Like:
		c.one(n.Source)
		visitAll(c, n.Options)
	case *ColumnsOf:
		c.one(n.Source)
		visitAll(c, n.Except)
	case *WideWindow:
		c.one(n.Size, n.Offset)
	case *WideBranch:
		c.one(n.Label, n.Time, n.VersionBy, n.Generation, n.GenExpr, n.Query)
	default:
		c.query(n)
	}
}

func (c childVisitor) element(n TableElement) {
	switch n := n.(type) {
	case *ColumnDef:
		c.one(n.Name, n.Type, n.PrimaryKey, n.Comment)
	case *ComputedColumn:
		c.one(n.Name, n.Expr, n.Comment)
	case *MetadataColumn:
		c.one(n.Name, n.Type, n.From, n.Comment)
	case *WatermarkDef:
		c.one(n.Column, n.Expr)
	case *PrimaryKeyDef:
		c.one(n.Constraint)
		visitAll(c, n.Columns)
	}
}

func (c childVisitor) alter(n AlterAction) {
	switch n := n.(type) {
	case *RenameTable:
		c.one(n.To)
	case *RenameColumn:
		c.one(n.From, n.To)
	case *SetOptions:
		visitAll(c, n.Options)
	case *ResetOptions:
		visitAll(c, n.Keys)
	case *AddElements:
		visitAll(c, n.Elements)
	case *ModifyElements:
		visitAll(c, n.Elements)
	case *DropElements:
		visitAll(c, n.Columns)
		c.one(n.Constraint)
	}
}

func (c childVisitor) query(n Node) {
	switch n := n.(type) {
	case *Query:
		visitAll(c, n.With)
		c.one(n.Body)
		visitAll(c, n.OrderBy)
		c.one(n.Limit, n.Offset)
	case *CTE:
		c.one(n.Name)
		visitAll(c, n.Columns)
		c.one(n.Query)
	case *OrderItem:
		c.one(n.Expr)
	case *SetOp:
		c.one(n.Left, n.Right)
	case *Values:
		visitAll(c, n.Rows)
	case *ExplicitTable:
		c.one(n.Name)
	case *Select:
		visitAll(c, n.Hints)
		visitAll(c, n.Items)
		c.one(n.From, n.Where, n.GroupBy, n.Having)
		visitAll(c, n.Windows)
	case *Star:
		c.one(n.Of, n.Expr)
	case *SelectExpr:
		c.one(n.Expr, n.Alias)
	case *GroupBy:
		visitAll(c, n.Elements)
	case *GroupExpr:
		c.one(n.Expr)
	case *GroupingSets:
		visitAll(c, n.Sets)
	case *Alias:
		c.one(n.Name)
		visitAll(c, n.Columns)
	case *TableRef:
		c.one(n.Name)
		visitAll(c, n.Hints)
		c.one(n.AsOf, n.Alias)
	case *DerivedTable:
		c.one(n.Query, n.Alias)
	case *TableFunc:
		c.one(n.Call, n.Alias)
	case *Unnest:
		visitAll(c, n.Args)
		c.one(n.Alias)
	case *Join:
		c.one(n.Left, n.Right, n.On)
		visitAll(c, n.Using)
	}
}
