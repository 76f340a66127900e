package syntax

import (
	"maps"
	"slices"

	"github.com/millrace/millrace/sql/diag"
)

var plainTypes = map[string]TypeKind{
	"BOOLEAN": TypeBoolean, "TINYINT": TypeTinyInt, "SMALLINT": TypeSmallInt, "INT": TypeInt, "INTEGER": TypeInt,
	"BIGINT": TypeBigInt, "FLOAT": TypeFloat, "DOUBLE": TypeDouble, "DECIMAL": TypeDecimal, "DEC": TypeDecimal,
	"NUMERIC": TypeDecimal, "CHAR": TypeChar, "VARCHAR": TypeVarChar, "STRING": TypeString, "BINARY": TypeBinary,
	"VARBINARY": TypeVarBinary, "BYTES": TypeBytes, "DATE": TypeDate, "TIME": TypeTime, "TIMESTAMP": TypeTimestamp,
	"TIMESTAMP_LTZ": TypeTimestampLTZ, "INTERVAL": TypeInterval, "ARRAY": TypeArray, "MULTISET": TypeMultiset,
	"MAP": TypeMap, "ROW": TypeRow, "NULL": TypeNull,
}

// foreignTypes are types of other systems and what to write for them.
var foreignTypes = map[string]string{
	"TEXT": "STRING", "NVARCHAR": "STRING", "VARCHAR2": "STRING", "CLOB": "STRING", "JSON": "STRING", "UUID": "STRING",
	"BOOL": "BOOLEAN", "BIT": "BOOLEAN", "LONG": "BIGINT", "INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INT",
	"INT64": "BIGINT", "UINT8": "SMALLINT", "UINT16": "INT", "UINT32": "BIGINT", "UINT64": "DECIMAL(20, 0)",
	"FLOAT32": "FLOAT", "FLOAT64": "DOUBLE", "REAL": "FLOAT", "NUMBER": "DECIMAL(38, s)", "MONEY": "DECIMAL(p, s)",
	"DATETIME": "TIMESTAMP(3)", "DATETIME64": "TIMESTAMP(3)", "TIMESTAMPTZ": "TIMESTAMP_LTZ(3)",
	"BLOB": "BYTES", "BYTEA": "BYTES", "STRUCT": "ROW<...>", "LIST": "ARRAY<...>",
}

// notYetTypes are types of Flink that are not built.
var notYetTypes = map[string]bool{"RAW": true, "VARIANT": true, "STRUCTURED": true, "BITMAP": true}

// dataType parses a type with its nullability and the postfix ARRAY and MULTISET.
func (p *parser) dataType() *DataType {
	p.enter()
	defer func() { p.nesting-- }()
	start := p.pos
	t := p.baseType()
	for {
		p.nullability(t)
		t.Loc = p.from(start)
		kind := TypeArray
		switch {
		case p.is("ARRAY"):
		case p.is("MULTISET"):
			kind = TypeMultiset
		default:
			return t
		}
		p.advance()
		t = &DataType{Kind: kind, Elem: t, Precision: NoPrecision, Scale: NoPrecision}
		p.grow(p.height)
	}
}

func (p *parser) nullability(t *DataType) {
	switch {
	case p.accept("NOT"):
		p.expect("NULL")
		t.NotNull = true
	case p.is("NULL") && !p.at(1).isWord("ON"): // NULL ON EMPTY belongs to JSON_VALUE
		p.advance()
		t.Null = true
	}
}

func (p *parser) baseType() *DataType {
	start := p.pos
	tok := p.cur()
	t := &DataType{Precision: NoPrecision, Scale: NoPrecision}
	if tok.Kind != Word {
		p.unexpected("a type")
	}
	kind, ok := plainTypes[tok.Upper]
	if !ok {
		p.unknownType(start, tok)
		return t
	}
	p.advance()
	t.Kind = kind
	switch kind {
	case TypeDouble:
		p.accept("PRECISION")
	case TypeChar, TypeVarChar, TypeBinary, TypeVarBinary:
		t.Precision, _ = p.typeArgs(1)
	case TypeDecimal:
		t.Precision, t.Scale = p.typeArgs(2)
	case TypeTimestampLTZ:
		t.Precision, _ = p.typeArgs(1)
	case TypeTime, TypeTimestamp:
		t.Precision, _ = p.typeArgs(1)
		p.timeZone(start, t)
	case TypeInterval:
		t.Interval = p.intervalQualifier()
	case TypeArray, TypeMultiset:
		p.expectOp("<")
		t.Elem = p.dataType()
		p.expectOp(">")
	case TypeMap:
		p.expectOp("<")
		t.Key = p.dataType()
		p.expectOp(",")
		t.Elem = p.dataType()
		p.expectOp(">")
	case TypeRow:
		t.Fields = p.rowFields()
	}
	return t
}

// typeArgs parses (n) or (n, m), if present.
func (p *parser) typeArgs(most int) (first, second int) {
	first, second = NoPrecision, NoPrecision
	if !p.acceptOp("(") {
		return first, second
	}
	first = p.precision()
	if most == 2 && p.acceptOp(",") {
		second = p.precision()
	}
	p.expectOp(")")
	return first, second
}

// timeZone parses WITH LOCAL TIME ZONE and WITHOUT TIME ZONE.
func (p *parser) timeZone(start int, t *DataType) {
	switch {
	case p.is("WITHOUT", "TIME"):
		p.advance()
		p.expect("TIME", "ZONE")
	case p.is("WITH", "LOCAL"):
		p.advance()
		p.expect("LOCAL", "TIME", "ZONE")
		if t.Kind == TypeTime {
			p.notYet(start, "TIME WITH LOCAL TIME ZONE")
		}
		t.Kind = TypeTimestampLTZ
	case p.is("WITH", "TIME"):
		p.advance()
		p.expect("TIME", "ZONE")
		p.notYet(start, "a time WITH TIME ZONE")
	}
}

// rowFields parses <name type, ...> or (name type, ...).
func (p *parser) rowFields() []*FieldDef {
	if p.acceptOp("<>") {
		return nil
	}
	closer := ">"
	if !p.acceptOp("<") {
		p.expectOp("(")
		closer = ")"
	}
	if p.acceptOp(closer) {
		return nil
	}
	var fields []*FieldDef
	p.commaList(func() {
		start := p.pos
		f := &FieldDef{Name: p.columnName()}
		f.Type = p.dataType()
		if p.cur().Kind == String {
			f.Comment = p.stringLit("a comment")
		}
		f.Loc = p.from(start)
		fields = append(fields, f)
	})
	p.expectOp(closer)
	return fields
}

// unknownType reports a type and takes its arguments, so that the rest is still looked at.
func (p *parser) unknownType(start int, tok *Token) {
	if structural[tok.Upper] {
		p.unexpected("a type")
	}
	p.advance()
	if notYetTypes[tok.Upper] {
		p.notYet(start, "the type "+tok.Upper)
	}
	d := p.errs.Errorf(diag.CodeUnknownType, p.span(tok), "there is no type %q", tok.Text)
	if ours, ok := foreignTypes[tok.Upper]; ok {
		d.WithHelp("write %s", ours)
	} else if near, ok := diag.Nearest(tok.Text, slices.Sorted(maps.Keys(plainTypes))); ok {
		d.WithHelp("did you mean %s?", near)
	}
	if p.isOp("(") {
		if end := p.closingOf(p.pos); end > 0 {
			p.pos = end + 1
		}
	}
}
