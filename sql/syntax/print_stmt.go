package syntax

func (p *printer) stmt(s Stmt) {
	switch s := s.(type) {
	case *BadStmt:
		p.w(s.Src.Text())
	case *CreateTable:
		p.createTable(s)
	case *CreateWideTable:
		p.createWide(s)
	case *CreateView:
		p.createView(s)
	case *ForEach:
		p.w("FOR EACH TABLE ")
		p.ident(s.Var)
		p.w(" IN (")
		p.stmt(s.Set)
		p.w(") BEGIN")
		p.body(s.Body)
		p.w("END FOR")
	case *StatementSet:
		p.w("EXECUTE STATEMENT SET BEGIN")
		stmts := make([]Stmt, len(s.Inserts))
		for i, ins := range s.Inserts {
			stmts[i] = ins
		}
		p.body(stmts)
		p.w("END")
	case *Insert:
		p.insert(s)
	case *QueryStmt:
		p.query(s.Query)
	case *Explain:
		p.explain(s)
	case *AlterTable:
		p.w("ALTER TABLE ")
		p.wIf(s.IfExists, "IF EXISTS ")
		p.name(s.Name)
		p.w(" ")
		p.alter(s.Action)
	case *AlterView:
		p.w("ALTER VIEW ")
		p.name(s.Name)
		if s.RenameTo != nil {
			p.w(" RENAME TO ")
			p.name(s.RenameTo)
			return
		}
		p.w(" AS")
		p.nl()
		p.query(s.Query)
	default:
		p.smallStmt(s)
	}
}

// body writes statements between BEGIN and END.
func (p *printer) body(stmts []Stmt) {
	p.indent++
	for _, s := range stmts {
		p.nl()
		p.stmt(s)
		p.w(";")
	}
	p.indent--
	p.nl()
}

func (p *printer) smallStmt(s Stmt) {
	switch s := s.(type) {
	case *Set:
		p.w("SET")
		if s.Key != nil {
			p.w(" ")
			p.str(s.Key)
		}
		if s.Value != nil {
			p.w(" = ")
			p.str(s.Value)
		}
	case *Reset:
		p.w("RESET")
		if s.Key != nil {
			p.w(" ")
			p.str(s.Key)
		}
	case *Drop:
		p.w("DROP ")
		p.wIf(s.Temporary, "TEMPORARY ")
		p.w(map[ObjectKind]string{KindTable: "TABLE ", KindView: "VIEW "}[s.Kind])
		p.wIf(s.IfExists, "IF EXISTS ")
		p.name(s.Name)
	case *Show:
		p.show(s)
	case *Describe:
		p.w("DESCRIBE ")
		p.w(map[ObjectKind]string{KindFunction: "FUNCTION ", KindGroup: "GROUP ", KindJob: "JOB "}[s.Kind])
		p.wIf(s.Extended, "EXTENDED ")
		switch {
		case s.ID != nil:
			p.str(s.ID)
		case s.Kind == KindFunction:
			p.functionName(s.Name)
		default:
			p.name(s.Name)
		}
	case *StopJob:
		p.w("STOP JOB ")
		p.str(s.ID)
		p.wIf(s.Savepoint, " WITH SAVEPOINT")
		p.wIf(s.Drain, " WITH DRAIN")
	}
}

func (p *printer) show(s *Show) {
	names := [...]string{"TABLES", "VIEWS", "FUNCTIONS", "GROUPS", "JOBS", "COLUMNS FROM", "PARTITIONS", "CREATE TABLE", "CREATE VIEW"}
	p.w("SHOW ")
	p.wIf(s.User, "USER ")
	p.w(names[s.Kind])
	if s.Of != nil {
		p.w(" ")
		p.name(s.Of)
	}
	if s.Pattern != nil {
		p.wIf(s.Not, " NOT")
		if s.ILike {
			p.w(" ILIKE ")
		} else {
			p.w(" LIKE ")
		}
		p.str(s.Pattern)
	}
}

func (p *printer) explain(s *Explain) {
	p.w("EXPLAIN")
	p.wIf(s.Placement, " PLACEMENT")
	p.wIf(len(s.Details) > 0, " ")
	names := [...]string{"ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE"}
	join(p, s.Details, func(d ExplainDetail) { p.w(names[d]) })
	if s.Stmt != nil {
		p.w(" ")
		p.stmt(s.Stmt)
	}
}

func (p *printer) insert(s *Insert) {
	if s.Overwrite {
		p.w("INSERT OVERWRITE ")
	} else {
		p.w("INSERT INTO ")
	}
	p.name(s.Target)
	p.hints(s.Hints)
	if s.Partition != nil {
		p.w(" PARTITION (")
		join(p, s.Partition, func(v *PartitionValue) {
			p.ident(v.Column)
			if v.Value != nil {
				p.w(" = ")
				p.expr(v.Value, 0)
			}
		})
		p.w(")")
	}
	if s.Columns != nil {
		p.w(" ")
		p.idents(s.Columns)
	}
	p.nl()
	p.query(s.Query)
}

func (p *printer) createTable(s *CreateTable) {
	p.w("CREATE ")
	p.wIf(s.Temporary, "TEMPORARY ")
	p.w("TABLE ")
	p.wIf(s.IfNotExists, "IF NOT EXISTS ")
	p.name(s.Name)
	if s.Columns != nil {
		p.w(" (")
		join(p, s.Columns, p.ident)
		p.w(")")
	}
	if s.Elements != nil {
		p.elements(s.Elements)
	}
	p.comment(s.Comment)
	p.partitions(s.Partitions)
	if s.HasWith {
		p.options(" WITH", s.Options)
	}
	switch {
	case s.Like != nil:
		p.like(s)
	case s.As != nil:
		p.w(" AS")
		p.nl()
		p.query(s.As)
	}
}

func (p *printer) elements(list []TableElement) {
	p.w(" (")
	lines(p, list, p.element)
	p.nl()
	p.w(")")
}

func (p *printer) partitions(c *PartitionClause) {
	if c == nil {
		return
	}
	p.w(" PARTITIONED BY (")
	join(p, c.Columns, func(c *PartitionColumn) {
		p.ident(c.Name)
		if c.Type != nil {
			p.w(" ")
			p.typ(c.Type)
		}
	})
	p.w(")")
}

func (p *printer) like(s *CreateTable) {
	merges := [...]string{"INCLUDING", "EXCLUDING", "OVERWRITING"}
	features := [...]string{"ALL", "CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS"}
	p.w(" LIKE ")
	p.name(s.Like.Source)
	if s.Like.Options != nil {
		p.w(" (")
		for i, o := range s.Like.Options {
			p.wIf(i > 0, " ")
			p.w(merges[o.Merge], " ", features[o.Feature])
		}
		p.w(")")
	}
	if s.ColumnsOf != nil {
		p.w(" WITH COLUMNS OF ")
		p.name(s.ColumnsOf.Source)
		if s.ColumnsOf.Except != nil {
			p.w(" EXCEPT ")
			p.idents(s.ColumnsOf.Except)
		}
	}
}

func (p *printer) element(e TableElement) {
	switch e := e.(type) {
	case *ColumnDef:
		p.ident(e.Name)
		p.w(" ")
		p.typ(e.Type)
		if k := e.PrimaryKey; k != nil {
			p.constraint(k)
			p.w(" PRIMARY KEY")
			p.wIf(k.NotEnforced, " NOT ENFORCED")
		}
		p.comment(e.Comment)
	case *ComputedColumn:
		p.ident(e.Name)
		p.w(" AS ")
		p.expr(e.Expr, 0)
		p.comment(e.Comment)
	case *MetadataColumn:
		p.ident(e.Name)
		p.w(" ")
		p.typ(e.Type)
		p.w(" METADATA")
		if e.From != nil {
			p.w(" FROM ")
			p.str(e.From)
		}
		p.wIf(e.Virtual, " VIRTUAL")
		p.comment(e.Comment)
	case *WatermarkDef:
		p.w("WATERMARK FOR ")
		p.name(e.Column)
		p.w(" AS ")
		p.expr(e.Expr, 0)
	case *PrimaryKeyDef:
		if e.Constraint != nil {
			p.w("CONSTRAINT ")
			p.ident(e.Constraint)
			p.w(" ")
		}
		p.w("PRIMARY KEY ")
		p.idents(e.Columns)
		p.wIf(e.NotEnforced, " NOT ENFORCED")
	}
}

func (p *printer) constraint(k *PrimaryKeyDef) {
	if k.Constraint != nil {
		p.w(" CONSTRAINT ")
		p.ident(k.Constraint)
	}
}

func (p *printer) createView(s *CreateView) {
	p.w("CREATE ")
	p.wIf(s.Temporary, "TEMPORARY ")
	p.w("VIEW ")
	p.wIf(s.IfNotExists, "IF NOT EXISTS ")
	p.name(s.Name)
	if s.Columns != nil {
		p.w(" ")
		p.idents(s.Columns)
	}
	p.comment(s.Comment)
	p.w(" AS")
	p.nl()
	p.query(s.Query)
}

func (p *printer) createWide(s *CreateWideTable) {
	p.w("CREATE WIDE TABLE ")
	p.wIf(s.IfNotExists, "IF NOT EXISTS ")
	p.name(s.Name)
	p.elements(s.Elements)
	p.comment(s.Comment)
	p.partitions(s.Partitions)
	p.nl()
	p.w("WINDOW TUMBLE(SIZE => ")
	p.expr(s.Window.Size, 0)
	if s.Window.Offset != nil {
		p.w(", OFFSET => ")
		p.expr(s.Window.Offset, 0)
	}
	p.w(")")
	if s.Lateness != nil {
		p.w(" ALLOWED LATENESS ")
		p.expr(s.Lateness, 0)
	}
	p.nl()
	p.options("WITH", s.Options)
	p.nl()
	p.w("AS UNION OF")
	lines(p, s.Branches, p.branch)
}

func (p *printer) branch(b *WideBranch) {
	p.ident(b.Label)
	if b.Offline {
		p.w(" OFFLINE GENERATION ")
		p.expr(b.Generation, 0)
		p.w(" = ")
		p.expr(b.GenExpr, 0)
		p.wIf(b.CreatesRows, " CREATES ROWS")
	} else {
		p.w(" TIME ")
		p.expr(b.Time, 0)
		if b.VersionBy != nil {
			p.w(" VERSION BY ")
			p.expr(b.VersionBy, 0)
		}
		p.wIf(b.KeepNulls, " KEEP NULLS")
	}
	p.w(" AS ")
	p.parenQuery(b.Query)
}

func (p *printer) alter(a AlterAction) {
	switch a := a.(type) {
	case *RenameTable:
		p.w("RENAME TO ")
		p.name(a.To)
	case *RenameColumn:
		p.w("RENAME ")
		p.ident(a.From)
		p.w(" TO ")
		p.ident(a.To)
	case *SetOptions:
		p.options("SET", a.Options)
	case *ResetOptions:
		p.w("RESET (")
		join(p, a.Keys, p.str)
		p.w(")")
	case *AddElements:
		p.placed("ADD", a.Elements)
	case *ModifyElements:
		p.placed("MODIFY", a.Elements)
	case *DropElements:
		p.w("DROP ")
		switch {
		case a.PrimaryKey:
			p.w("PRIMARY KEY")
		case a.Constraint != nil:
			p.w("CONSTRAINT ")
			p.ident(a.Constraint)
		case a.Watermark:
			p.w("WATERMARK")
		default:
			p.idents(a.Columns)
		}
	}
}

func (p *printer) placed(word string, list []*PlacedElement) {
	p.w(word, " (")
	lines(p, list, func(e *PlacedElement) {
		p.element(e.Element)
		p.wIf(e.First, " FIRST")
		if e.After != nil {
			p.w(" AFTER ")
			p.ident(e.After)
		}
	})
	p.nl()
	p.w(")")
}
