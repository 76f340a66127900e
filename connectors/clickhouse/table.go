package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	chcolumn "github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/cespare/xxhash/v2"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// artifactColumn holds, in each row, the id of the artefact that brought it.
const artifactColumn = "_mr_artifact"

// definition is a table as the server has it.
type definition struct {
	// identity changes when the table is dropped and made again; "" where the
	// server has none.
	identity string
	engine   string
	// full is the engine with its keys and settings, create the whole statement.
	full, create string
	partitionKey string
	// sortingKey is "" where the server does not say.
	sortingKey string
	columns    []tableColumn
	// views are materialized views over it.
	views int
	// window is how many blocks the table remembers for deduplication, and
	// windowSeconds how long; 0: not at all, no limit.
	window, windowSeconds int64
}

type tableColumn struct{ name, typ, kind string }

// shape is a hash of what the table is defined as.
func (d *definition) shape() uint64 { return xxhash.Sum64String(d.create) }

func (d *definition) column(name string) *tableColumn {
	i := slices.IndexFunc(d.columns, func(c tableColumn) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return &d.columns[i]
}

func (d *definition) replicated() bool { return strings.HasPrefix(d.engine, "Replicated") }

// merges reports an engine that removes or folds rows by itself.
func (d *definition) merges() bool {
	return d.engine != "MergeTree" && d.engine != "ReplicatedMergeTree"
}

// errNoTable says that the table is not there.
var errNoTable = errors.New("there is no such table")

// where names the table in queries of system tables.
func (s *server) where() string {
	return "database = " + quoteText(s.opts.database) + " AND table = " + quoteText(s.opts.table)
}

// name is the table's name in statements.
func (s *server) name() string { return quoteName(s.opts.database) + "." + quoteName(s.opts.table) }

// describe reads the table's definition.
func (s *server) describe(ctx context.Context) (*definition, error) {
	fields, err := s.strings(ctx, "SELECT name FROM system.columns WHERE database = 'system' AND table = 'tables' AND name IN ('uuid', 'sorting_key')")
	if err != nil {
		return nil, err
	}
	uuid, sorting := "''", "''"
	if slices.Contains(fields, "uuid") {
		uuid = "toString(uuid)"
	}
	if slices.Contains(fields, "sorting_key") {
		sorting = "sorting_key"
	}
	d := &definition{}
	found := false
	err = s.retried(ctx, func(ctx context.Context) error {
		found = false
		rows, err := s.conn.Query(ctx, "SELECT "+uuid+", engine, engine_full, create_table_query, partition_key, "+sorting+", length(dependencies_table)"+
			" FROM system.tables WHERE database = "+quoteText(s.opts.database)+" AND name = "+quoteText(s.opts.table))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var views uint64
			if err := rows.Scan(&d.identity, &d.engine, &d.full, &d.create, &d.partitionKey, &d.sortingKey, &views); err != nil {
				return err
			}
			d.views, found = int(views), true
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("reading the definition of %s: %w", s.name(), err)
	}
	if !found {
		return nil, errNoTable
	}
	if err := s.describeColumns(ctx, d); err != nil {
		return nil, fmt.Errorf("reading the columns of %s: %w", s.name(), err)
	}
	if d.window, d.windowSeconds, err = s.window(ctx, d); err != nil {
		return nil, fmt.Errorf("reading the deduplication window of %s: %w", s.name(), err)
	}
	return d, nil
}

func (s *server) describeColumns(ctx context.Context, d *definition) error {
	return s.retried(ctx, func(ctx context.Context) error {
		d.columns = d.columns[:0]
		rows, err := s.conn.Query(ctx, "SELECT name, type, default_kind FROM system.columns WHERE "+s.where())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var c tableColumn
			if err := rows.Scan(&c.name, &c.typ, &c.kind); err != nil {
				return err
			}
			d.columns = append(d.columns, c)
		}
		return rows.Err()
	})
}

// windowSetting finds a table's own setting in its engine text.
func windowSetting(full, name string) (int64, bool) {
	m := regexp.MustCompile(`\b` + name + ` = (\d+)`).FindStringSubmatch(full)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	return n, err == nil
}

// window reads how many blocks, and seconds, the table remembers.
func (s *server) window(ctx context.Context, d *definition) (blocks, seconds int64, err error) {
	names := []string{"non_replicated_deduplication_window"}
	if d.replicated() {
		names = []string{"replicated_deduplication_window", "replicated_deduplication_window_seconds"}
	}
	var out [2]int64
	for i, name := range names {
		if n, ok := windowSetting(d.full, name); ok {
			out[i] = n
			continue
		}
		// Old servers know no such setting, or have no such table.
		values, err := s.strings(ctx, "SELECT value FROM system.merge_tree_settings WHERE name = "+quoteText(name))
		if err != nil {
			if unreachable(err) {
				return 0, 0, err
			}
			continue
		}
		if len(values) > 0 {
			out[i], _ = strconv.ParseInt(values[0], 10, 64)
		}
	}
	return out[0], out[1], nil
}

// binding is how the columns of a SQL table go into a table of ClickHouse.
type binding struct {
	def *definition
	// columns and names are those of the INSERT, in its order; source the places
	// in the batch. The artefact's own column, if there is one, is the last.
	columns []*column
	names   []string
	source  []int
	// artifact is the artefact's own column, or nil.
	artifact *column
	keys     []partitionKey
	method   string
	// why is a sentence on the method.
	why string
}

// bind checks the table's columns against the definition and finds every
// conversion. All faults are reported at once.
func bind(t *connector.Table, d *definition, s *server) (*binding, error) {
	b := &binding{def: d}
	if d.engine == distributedEngine {
		return nil, fmt.Errorf("table %s is Distributed over Distributed tables: name the one below it", s.name())
	}
	if !strings.HasSuffix(d.engine, "MergeTree") && s.opts.exactlyOnce {
		return nil, fmt.Errorf("engine %s of table %s remembers no block; only the MergeTree family gives exactly once", d.engine, s.name())
	}
	if len(s.opts.addr.hosts) > 1 && s.opts.exactlyOnce && !d.replicated() {
		// A block would be looked for on one server and lie on another.
		return nil, fmt.Errorf("'%s' names %d servers, and table %s is a %s, which is not replicated between them; name one server, or set '%s' = '%s'",
			keyURL, len(s.opts.addr.hosts), s.name(), d.engine, keyGuarantee, atLeastOnce)
	}
	var errs []error
	n := 0
	for _, col := range t.Columns {
		if col.Metadata != "" && !col.Virtual {
			errs = append(errs, fmt.Errorf("column %s: metadata %q cannot be written; declare it VIRTUAL", col.Name, col.Metadata))
		}
		if col.Virtual {
			continue
		}
		at := n
		n++
		c, err := bindColumn(col, d, s)
		if err != nil {
			errs = append(errs, fmt.Errorf("column %s: %w", col.Name, err))
			continue
		}
		b.columns, b.names, b.source = append(b.columns, c), append(b.names, col.Name), append(b.source, at)
	}
	if len(b.columns) == 0 && len(errs) == 0 {
		errs = append(errs, errors.New("the table has no column to write"))
	}
	if err := b.bindArtifact(d, s); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var err error
	if b.keys, err = partitionKeys(d.partitionKey, b, s.timeZone); err != nil {
		return nil, fmt.Errorf("partition key %s of table %s: %w", d.partitionKey, s.name(), err)
	}
	return b, b.choose(s)
}

func bindColumn(col connector.Column, d *definition, s *server) (*column, error) {
	if col.Name == artifactColumn {
		return nil, errors.New("the name is taken: it holds the id of the block that brought a row")
	}
	have := d.column(col.Name)
	if have == nil {
		return nil, fmt.Errorf("table %s has no such column%s; add it, or set '%s' = 'true'", s.name(), nearest(col.Name, d), keyWiden)
	}
	switch have.kind {
	case "MATERIALIZED", "ALIAS":
		return nil, fmt.Errorf("it is %s in table %s and cannot be written", have.kind, s.name())
	case "EPHEMERAL":
		return nil, errors.New("not_yet: EPHEMERAL columns")
	}
	ch, err := parseType(have.typ)
	if err != nil {
		return nil, err
	}
	c, err := newColumn(col.Type, ch, s.timeZone)
	if err != nil {
		return nil, err
	}
	return c, driverKnows(have.typ)
}

// driverKnows tries whether the driver can make a column of a type: later it would
// do so on a goroutine of its own, where it panics over some texts.
func driverKnows(typ string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("not_yet: type %s, which the driver cannot read: %v", typ, r)
		}
	}()
	if _, err := chcolumn.Type(typ).Column("x", &chcolumn.ServerContext{Timezone: time.UTC}); err != nil {
		return fmt.Errorf("not_yet: type %s: %w", typ, err)
	}
	return nil
}

// nearest names a column that differs in case alone.
func nearest(name string, d *definition) string {
	for _, c := range d.columns {
		if strings.EqualFold(c.name, name) {
			return fmt.Sprintf(" (there is %s: names have case)", c.name)
		}
	}
	return ""
}

func (b *binding) bindArtifact(d *definition, s *server) error {
	have := d.column(artifactColumn)
	if have == nil {
		return nil
	}
	ch, err := parseType(have.typ)
	if err == nil {
		b.artifact, err = newColumn(types.NewString().NotNull(), ch, s.timeZone)
	}
	if err == nil && b.artifact.ch.name != "String" {
		err = fmt.Errorf("its type is %s; it must be LowCardinality(String) or String", have.typ)
	}
	if err != nil {
		return fmt.Errorf("column %s: %w", artifactColumn, err)
	}
	b.columns, b.names = append(b.columns, b.artifact), append(b.names, artifactColumn)
	return nil
}

// recommendedWindow is what the sink proposes where a table has no window, or one
// that a few lanes fill in no time.
const recommendedWindow = 1000

// choose decides the commit method, or says what the table lacks.
func (b *binding) choose(s *server) error {
	d := b.def
	token := ""
	switch {
	case !s.tokens:
		token = "the server (version " + s.version + ") knows no insert_deduplication_token"
	case d.window == 0:
		token = "the table remembers no blocks: " + s.alterWindow(d)
	}
	column := ""
	switch {
	case b.artifact == nil:
		column = "the table has no column " + artifactColumn + ": " + s.alterArtifact()
	case d.merges():
		column = "engine " + d.engine + " removes or folds rows, so that rows cannot be counted by their block"
	}
	switch s.opts.method {
	case methodToken:
		if token != "" {
			return fmt.Errorf("method token: %s", token)
		}
		b.method = methodToken
	case methodColumn:
		if column != "" {
			return fmt.Errorf("method column: %s", column)
		}
		b.method = methodColumn
	case methodReplace:
		if !s.opts.exactlyOnce {
			return fmt.Errorf("method replace: '%s' = '%s' does not go with it", keyGuarantee, atLeastOnce)
		}
		b.method, b.why = methodReplace, "exactly once: the content of a table partition is loaded beside it and takes its place at once"
		if d.views > 0 {
			b.why += fmt.Sprintf("; the %d materialized views over the table see nothing of it", d.views)
		}
		return nil
	case methodUpsert:
		if !strings.HasSuffix(d.engine, "ReplacingMergeTree") {
			return fmt.Errorf("method upsert: table %s is a %s, not a ReplacingMergeTree", s.name(), d.engine)
		}
		b.method, b.why = methodUpsert, "at least once: copies of a block are merged by the table's ORDER BY"
		return nil
	default:
		switch {
		case token == "":
			b.method = methodToken
		case column == "":
			b.method = methodColumn
		case s.opts.exactlyOnce:
			return fmt.Errorf("exactly once is not to be had from table %s: %s; or %s; or set '%s' = '%s'", s.name(), token, column, keyGuarantee, atLeastOnce)
		default:
			b.method, b.why = atLeastOnce, "at least once: "+token+"; "+column
			return nil
		}
	}
	switch b.method {
	case methodToken:
		b.why = fmt.Sprintf("exactly once by deduplication token: %s remembers %d blocks", d.engine, d.window)
		if b.countable() {
			b.why += ", and " + artifactColumn + " says for certain which are there"
		}
	case methodColumn:
		b.why = "exactly once by counting " + artifactColumn
	}
	if d.views > 0 {
		b.why += fmt.Sprintf("; it holds for the table, not for the %d materialized views over it", d.views)
	}
	return nil
}

// countable reports that the rows of a block can be counted in the table.
func (b *binding) countable() bool { return b.artifact != nil && !b.def.merges() }

// alterWindow is the statement that gives a table a deduplication window.
func (s *server) alterWindow(d *definition) string {
	name := "non_replicated_deduplication_window"
	if d.replicated() {
		name = "replicated_deduplication_window"
	}
	return fmt.Sprintf("ALTER TABLE %s MODIFY SETTING %s = %d", s.name(), name, recommendedWindow)
}

func (s *server) alterArtifact() string {
	return fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s LowCardinality(String)", s.name(), artifactColumn)
}
