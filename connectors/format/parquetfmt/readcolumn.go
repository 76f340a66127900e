package parquetfmt

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// columnReader reads one projected column: the leaves under it and how they
// are put together.
type columnReader struct {
	name   string
	typ    types.Type
	plan   *readNode // nil: the file has no such column
	leaves []*leafReader
}

// readNode pairs a node of the file with the type that is asked for.
type readNode struct {
	file     *fileNode
	typ      types.Type
	children []*readNode // nil entry: a ROW field that the file does not have
	leaf     *leafReader
	// witness stands in for a ROW none of whose fields is read: its levels
	// tell which rows are NULL.
	witness *leafReader
}

func newColumnReader(n *fileNode, name string, t types.Type, chunks []parquet.ColumnChunk) (*columnReader, error) {
	c := &columnReader{name: name, typ: t}
	if n == nil {
		return c, nil
	}
	plan, err := c.bind(n, name, t, chunks)
	if err != nil {
		c.close()
		return nil, err
	}
	c.plan = plan
	return c, nil
}

func (c *columnReader) bind(n *fileNode, path string, t types.Type, chunks []parquet.ColumnChunk) (*readNode, error) {
	r := &readNode{file: n, typ: t}
	mismatch := func() error {
		return fmt.Errorf("column %s: the file has %s, which cannot be read as %s", path, n.typ, t)
	}
	child := func(f *fileNode, name string, t types.Type) error {
		if f == nil {
			r.children = append(r.children, nil)
			return nil
		}
		b, err := c.bind(f, path+"."+name, t, chunks)
		r.children = append(r.children, b)
		return err
	}
	switch {
	case n.shape == shapeLeaf && !t.IsNested():
		if n.column >= len(chunks) {
			return nil, fmt.Errorf("%w: column %s is not in the row group", ErrCorrupt, path)
		}
		conv, ok := converterFor(n, t)
		if !ok {
			return nil, mismatch()
		}
		r.leaf = &leafReader{node: n, path: path, typ: t, convert: conv, pages: chunks[n.column].Pages()}
		c.leaves = append(c.leaves, r.leaf)
		return r, nil
	case n.shape == shapeRow && t.Kind == types.Row:
		for _, f := range t.Fields {
			if err := child(byName(n.children, f.Name), f.Name, f.Type); err != nil {
				return nil, err
			}
		}
		if !r.anyLeaf() {
			for n.shape != shapeLeaf {
				n = n.children[0]
			}
			if n.column >= len(chunks) {
				return nil, fmt.Errorf("%w: column %s is not in the row group", ErrCorrupt, path)
			}
			r.witness = &leafReader{node: n, path: path, typ: types.NewBoolean(), convert: dropValues, pages: chunks[n.column].Pages()}
			c.leaves = append(c.leaves, r.witness)
		}
		return r, nil
	case n.shape == shapeList && t.Kind == types.Array:
		return r, child(n.children[0], "element", *t.Elem)
	case n.shape == shapeMap && t.Kind == types.Map:
		if err := child(n.children[0], "key", *t.Key); err != nil {
			return nil, err
		}
		return r, child(n.children[1], "value", *t.Elem)
	}
	return nil, mismatch()
}

func (c *columnReader) close() {
	for _, l := range c.leaves {
		l.close()
	}
}

func (c *columnReader) skip(rows int64) error {
	for _, l := range c.leaves {
		if err := l.take(int(rows), true); err != nil {
			return err
		}
	}
	return nil
}

func (c *columnReader) read(out *batch.Vec, rows int) error {
	if c.plan == nil {
		fillNull(out, c.typ, rows)
		return nil
	}
	for _, l := range c.leaves {
		if err := l.take(rows, false); err != nil {
			return err
		}
	}
	if l := c.plan.leaf; l != nil && l.node.maxRep == 0 {
		l.emitFlat(out, rows)
		return nil
	}
	out.Reset(c.typ, rows)
	for _, l := range c.leaves {
		spans := l.rowSpans(rows)
		if err := c.plan.assemble(out, l, spans); err != nil {
			return err
		}
	}
	return nil
}

// fillNull makes out a column of NULLs.
func fillNull(out *batch.Vec, t types.Type, rows int) {
	out.Reset(t, 1)
	switch t.Physical() {
	case types.PhysBytes, types.PhysList, types.PhysMap:
		out.Offsets = append(out.Offsets, 0)
	case types.PhysRow:
		for i, f := range t.Fields {
			fillNull(out.Children[i], f.Type, 1)
		}
	}
	out.Valid = batch.Bitmap{0}
	out.Enc, out.Len = batch.Const, rows
}

// leafReader decodes one leaf: levels, and values already converted to the
// layout that is asked for.
type leafReader struct {
	node    *fileNode
	path    string
	typ     types.Type
	convert converter
	pages   parquet.Pages
	page    parquet.Page
	values  parquet.ValueReader
	eof     bool

	buf        [512]parquet.Value
	have, next int

	// The rows taken last.
	rep, def []uint8
	dense    batch.Vec // values of the slots with def = maxDef
	errs     []batch.ValueError
	count    int
}

func (l *leafReader) close() {
	if l.page != nil {
		parquet.Release(l.page)
		l.page = nil
	}
	if l.pages != nil {
		l.pages.Close()
		l.pages = nil
	}
}

// fill makes buf hold at least one value, or reports io.EOF.
func (l *leafReader) fill() error {
	for l.next >= l.have {
		if l.values == nil {
			if l.eof {
				return io.EOF
			}
			p, err := l.pages.ReadPage()
			if err != nil {
				if err == io.EOF {
					l.eof = true
				} else {
					err = fmt.Errorf("%w: column %s: %w", ErrCorrupt, l.path, err)
				}
				return err
			}
			l.page, l.values = p, p.Values()
		}
		n, err := l.values.ReadValues(l.buf[:])
		l.next, l.have = 0, n
		if err != nil && err != io.EOF {
			return fmt.Errorf("%w: column %s: %w", ErrCorrupt, l.path, err)
		}
		if n == 0 {
			parquet.Release(l.page)
			l.page, l.values = nil, nil
		}
	}
	return nil
}

// take reads the given number of whole rows. With skip, values are dropped.
func (l *leafReader) take(rows int, skip bool) error {
	l.rep, l.def, l.count = l.rep[:0], l.def[:0], 0
	l.dense.Reset(l.typ, 0)
	l.errs = l.errs[:0]
	nested := l.node.maxRep > 0
	for started := 0; ; {
		if err := l.fill(); err != nil {
			if err == io.EOF && started == rows {
				return nil
			}
			return err
		}
		// The slots up to the one that begins row number rows.
		from := l.next
		for l.next < l.have {
			if !nested || l.buf[l.next].RepetitionLevel() == 0 {
				if started == rows {
					break
				}
				started++
			}
			l.next++
		}
		if !skip {
			if err := l.stage(l.buf[from:l.next]); err != nil {
				return err
			}
		}
		if l.next < l.have || !nested && started == rows {
			return nil
		}
	}
}

func (l *leafReader) stage(vals []parquet.Value) error {
	n := 0
	for i := range vals {
		v := &vals[i]
		d := uint8(v.DefinitionLevel())
		l.def = append(l.def, d)
		l.rep = append(l.rep, uint8(v.RepetitionLevel()))
		if d == l.node.maxDef {
			if v.IsNull() {
				return fmt.Errorf("%w: column %s: a value is missing", ErrCorrupt, l.path)
			}
			vals[n] = *v
			n++
		}
	}
	l.errs = l.convert(&l.dense, vals[:n], l.errs)
	l.count += n
	if len(l.dense.Data) > maxBodyBytes {
		return fmt.Errorf("column %s: more than 1 GiB of values in one batch; read fewer rows", l.path)
	}
	return nil
}

// emitFlat gives a column without lists: the dense values spread over rows.
func (l *leafReader) emitFlat(out *batch.Vec, rows int) {
	if l.count == rows {
		l.dense.Len = rows
		*out, l.dense = l.dense, *out
		for _, e := range l.errs {
			out.SetErr(int(e.Row), e.Code, l.path, e.Message)
		}
		return
	}
	out.Reset(l.typ, rows)
	g := newGatherer(out, l)
	for k := range rows {
		if l.def[k] == l.node.maxDef {
			g.value(k)
		} else {
			g.null(k)
		}
	}
}

// span is the stretch of a leaf's slots that belongs to one entry of a node,
// and how many values lie before it.
type span struct {
	from, to, value int32
}

func (l *leafReader) rowSpans(rows int) []span {
	spans := make([]span, 0, rows)
	value := int32(0)
	for i, r := range l.rep {
		if r == 0 {
			if n := len(spans); n > 0 {
				spans[n-1].to = int32(i)
			}
			spans = append(spans, span{from: int32(i), value: value})
		}
		if l.def[i] == l.node.maxDef {
			value++
		}
	}
	if n := len(spans); n > 0 {
		spans[n-1].to = int32(len(l.rep))
	}
	return spans
}

// assemble fills in what one leaf knows about out: the structure on its way
// and its values. Each leaf of a column repeats the structure; it must agree.
func (n *readNode) assemble(out *batch.Vec, l *leafReader, spans []span) error {
	if n.leaf != nil {
		if n.leaf != l {
			return nil
		}
		g := newGatherer(out, l)
		for k, s := range spans {
			if l.def[s.from] == l.node.maxDef {
				g.next = int(s.value)
				g.value(k)
			} else {
				g.null(k)
			}
		}
		return nil
	}
	if !n.covers(l) {
		return nil
	}
	for k, s := range spans {
		if l.def[s.from] < n.file.def {
			out.SetNull(k)
		}
	}
	if n.file.shape == shapeRow {
		for i, c := range n.children {
			if c == nil {
				fillNull(out.Children[i], n.typ.Fields[i].Type, len(spans))
				continue
			}
			if err := c.assemble(out.Children[i], l, spans); err != nil {
				return err
			}
		}
		return nil
	}
	return n.elements(out, l, spans)
}

func (n *readNode) elements(out *batch.Vec, l *leafReader, spans []span) error {
	first := len(out.Offsets) == 1
	var down []span
	for k, s := range spans {
		if l.def[s.from] >= n.file.listDef {
			value := s.value
			for i := s.from; i < s.to; i++ {
				if i == s.from || l.rep[i] == n.file.rep {
					if m := len(down); i > s.from {
						down[m-1].to = i
					}
					down = append(down, span{from: i, value: value})
				}
				if l.def[i] == l.node.maxDef {
					value++
				}
			}
			down[len(down)-1].to = s.to
		}
		switch {
		case first:
			out.Offsets = append(out.Offsets, int32(len(down)))
		case out.Offsets[k+1] != int32(len(down)):
			return fmt.Errorf("%w: column %s: its leaves disagree on list lengths", ErrCorrupt, l.path)
		}
	}
	for i, c := range n.children {
		child := out.Children[i]
		if !c.covers(l) {
			continue
		}
		if first || child.Len != len(down) {
			child.Reset(c.typ, len(down))
		}
		if err := c.assemble(child, l, down); err != nil {
			return err
		}
	}
	return nil
}

// covers reports whether leaf l lies under n.
func (n *readNode) covers(l *leafReader) bool {
	if n == nil {
		return false
	}
	if n.leaf != nil {
		return n.leaf == l
	}
	for _, c := range n.children {
		if c.covers(l) {
			return true
		}
	}
	return n.witness == l
}

func (n *readNode) anyLeaf() bool {
	for _, c := range n.children {
		if c != nil {
			return true
		}
	}
	return false
}
