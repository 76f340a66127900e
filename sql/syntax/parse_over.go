package syntax

// windowSpec parses a window name or (spec).
func (p *parser) windowSpec() *WindowSpec {
	start := p.pos
	w := &WindowSpec{}
	if !p.acceptOp("(") {
		w.Ref = p.ident("a window")
		w.Loc = p.from(start)
		return w
	}
	if canStartName(p.cur()) && !p.is("PARTITION") && !p.is("ORDER") {
		w.Ref = p.ident("a window")
	}
	if p.accept("PARTITION") {
		p.expect("BY")
		p.commaList(func() { w.PartitionBy = append(w.PartitionBy, p.expr()) })
	}
	if p.accept("ORDER") {
		p.expect("BY")
		w.OrderBy = p.orderItems()
	}
	if p.is("ROWS") || p.is("RANGE") {
		w.Frame = p.frame()
	}
	p.expectOp(")")
	w.Loc = p.from(start)
	return w
}

func (p *parser) frame() *Frame {
	start := p.pos
	f := &Frame{Unit: FrameRows}
	if p.advance().Upper == "RANGE" {
		f.Unit = FrameRange
	}
	if p.accept("BETWEEN") {
		f.Start = p.frameBound()
		p.expect("AND")
		f.End = p.frameBound()
	} else {
		f.Start = p.frameBound()
	}
	f.Loc = p.from(start)
	return f
}

func (p *parser) frameBound() *FrameBound {
	start := p.pos
	b := &FrameBound{}
	switch {
	case p.is("CURRENT", "ROW"):
		p.pos += 2
		b.Kind = CurrentRow
		b.Loc = p.from(start)
		return b
	case p.is("UNBOUNDED") && (p.at(1).isWord("PRECEDING") || p.at(1).isWord("FOLLOWING")):
		p.advance()
		b.Kind = UnboundedPreceding
		if p.advance().Upper == "FOLLOWING" {
			b.Kind = UnboundedFollowing
		}
		b.Loc = p.from(start)
		return b
	}
	// The bound is parsed above AND, which separates the two bounds.
	b.Offset = p.exprAt(precAnd + 1)
	switch p.acceptOne("PRECEDING", "FOLLOWING") {
	case "PRECEDING":
		b.Kind = Preceding
	case "FOLLOWING":
		b.Kind = Following
	default:
		p.unexpected("\"PRECEDING\" or \"FOLLOWING\"")
	}
	b.Loc = p.from(start)
	return b
}
