package exprtext

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/types"
)

func (p *parser) typed(word string) expr.Expr {
	s := p.raw
	p.next()
	t := types.NewDate()
	switch word {
	case "X":
		b := make([]byte, len(s)/2)
		if _, err := fmt.Sscanf(s, "%x", &b); err != nil {
			p.fail("%v", err)
		}
		return expr.Bytes(b)
	case "TIME":
		t = types.NewTime(0)
		if i := strings.IndexByte(s, '.'); i >= 0 {
			t = types.NewTime(min(len(s)-i-1, 3))
		}
	case "TIMESTAMP":
		t = types.NewTimestamp(0)
		if i := strings.IndexByte(s, '.'); i >= 0 {
			t = types.NewTimestamp(len(s) - i - 1)
		}
	}
	return expr.Fold(p.must(expr.NewCast(expr.Text(s), t, false)))
}

func (p *parser) interval() expr.Expr {
	neg := p.accept("-")
	n, err := strconv.ParseInt(p.raw, 10, 64)
	if err != nil {
		p.fail("%v", err)
	}
	if neg {
		n = -n
	}
	p.next()
	unit := p.tok
	p.next()
	ms := map[string]int64{"SECOND": 1000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": 86_400_000}
	switch unit {
	case "MONTH":
		return expr.Int(types.Simple(types.IntervalYearMonth), n)
	case "YEAR":
		return expr.Int(types.Simple(types.IntervalYearMonth), 12*n)
	}
	if ms[unit] == 0 {
		p.fail("unknown interval unit %s", unit)
	}
	return expr.Int(types.Simple(types.IntervalDaySecond), n*ms[unit])
}

func (p *parser) typ() types.Type {
	t := p.bareType()
	if p.accept("NOT") {
		p.want("NULL")
		t = t.NotNull()
	}
	return t
}

func (p *parser) bareType() types.Type {
	word := p.tok
	p.next()
	switch word {
	case "ARRAY":
		p.want("<")
		e := p.typ()
		p.want(">")
		return types.NewArray(e)
	case "MAP":
		p.want("<")
		k := p.typ()
		p.want(",")
		v := p.typ()
		p.want(">")
		return types.NewMap(k, v)
	case "ROW":
		p.want("<")
		var fs []types.Field
		for {
			name := p.raw
			if p.kind == 'w' && p.tok != strings.ToUpper(p.raw) {
				name = p.tok
			}
			p.next()
			fs = append(fs, types.Field{Name: name, Type: p.typ()})
			if !p.accept(",") {
				break
			}
		}
		p.want(">")
		return types.NewRow(fs...)
	}
	var ns []int
	if p.accept("(") {
		for !p.accept(")") {
			n, _ := strconv.Atoi(p.raw)
			p.next()
			ns = append(ns, n)
			p.accept(",")
		}
	}
	n := func(i, def int) int {
		if i < len(ns) {
			return ns[i]
		}
		return def
	}
	switch word {
	case "BOOLEAN":
		return types.NewBoolean()
	case "TINYINT":
		return types.NewTinyInt()
	case "SMALLINT":
		return types.NewSmallInt()
	case "INT":
		return types.NewInt()
	case "BIGINT":
		return types.NewBigInt()
	case "FLOAT":
		return types.NewFloat()
	case "DOUBLE":
		return types.NewDouble()
	case "DECIMAL":
		return types.NewDecimal(n(0, 10), n(1, 0))
	case "STRING":
		return types.NewString()
	case "VARCHAR":
		return types.NewVarchar(n(0, types.MaxLength))
	case "CHAR":
		return types.NewChar(n(0, 1))
	case "BYTES":
		return types.NewBytes()
	case "BINARY":
		return types.NewBinary(n(0, 1))
	case "DATE":
		return types.NewDate()
	case "TIME":
		return types.NewTime(n(0, 0))
	case "TIMESTAMP":
		return types.NewTimestamp(n(0, 6))
	case "TIMESTAMP_LTZ":
		return types.NewTimestampLTZ(n(0, 6))
	}
	p.fail("unknown type %q", word)
	return types.Type{}
}
