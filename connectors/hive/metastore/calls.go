package metastore

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/thrift/lib/go/thrift"
)

// Database gives a database (ErrNoSuchObject).
func (c *Client) Database(ctx context.Context, name string) (*Database, error) {
	var db *Database
	err := c.call(ctx, &message{method: "get_database", faults: []error{ErrNoSuchObject, ErrMeta},
		args: func(e *encoder) { e.str(1, name) },
		result: func(d *decoder, t thrift.TType) bool {
			if t != thrift.STRUCT {
				return false
			}
			db = new(Database)
			d.structure(nil, func(id int16, t thrift.TType) bool {
				switch id {
				case 1:
					return d.str(t, &db.Name)
				case 2:
					return d.str(t, &db.Description)
				case 3:
					return d.str(t, &db.Location)
				case 6:
					return d.str(t, &db.Owner)
				}
				return false
			})
			return true
		}})
	if err == nil && db == nil {
		err = missing("get_database")
	}
	return db, err
}

// CreateDatabase creates a database (ErrAlreadyExists).
func (c *Client) CreateDatabase(ctx context.Context, db *Database) error {
	return c.call(ctx, &message{method: "create_database", faults: []error{ErrAlreadyExists, ErrInvalidObject, ErrMeta},
		args: func(e *encoder) {
			e.field(1, thrift.STRUCT, func() {
				e.structure(func() {
					e.str(1, db.Name)
					e.optional(2, db.Description)
					e.optional(3, db.Location)
					e.stringMap(4, nil)
					e.optional(6, db.Owner)
				})
			})
		}})
}

// Table gives a table (ErrNoSuchObject).
func (c *Client) Table(ctx context.Context, database, name string) (*Table, error) {
	var t *Table
	read := func(d *decoder, tt thrift.TType) bool {
		v := new(Table)
		if !d.table(tt, v) {
			return false
		}
		t = v
		return true
	}
	faults := []error{ErrMeta, ErrNoSuchObject}
	err := c.call(ctx, &message{method: "get_table_req", faults: faults,
		args: func(e *encoder) {
			e.field(1, thrift.STRUCT, func() {
				e.structure(func() {
					e.str(1, database)
					e.str(2, name)
				})
			})
		},
		result: func(d *decoder, tt thrift.TType) bool {
			if tt != thrift.STRUCT {
				return false
			}
			d.structure(nil, func(id int16, tt thrift.TType) bool { return id == 1 && read(d, tt) })
			return true
		}})
	if errors.Is(err, ErrUnknownMethod) {
		err = c.call(ctx, &message{method: "get_table", faults: faults, result: read,
			args: func(e *encoder) { e.str(1, database); e.str(2, name) }})
	}
	if err == nil && t == nil {
		err = missing("get_table_req")
	}
	return t, err
}

// CreateTable creates a table: ErrAlreadyExists, also when a first try whose
// answer was lost has made it; ErrInvalidObject for a missing database.
func (c *Client) CreateTable(ctx context.Context, t *Table) error {
	return c.call(ctx, &message{method: "create_table", faults: []error{ErrAlreadyExists, ErrInvalidObject, ErrMeta, ErrNoSuchObject},
		args: func(e *encoder) { e.table(1, t) }})
}

// DropTable drops a table, with its data if deleteData is set (ErrNoSuchObject).
func (c *Client) DropTable(ctx context.Context, database, name string, deleteData bool) error {
	return c.call(ctx, &message{method: "drop_table", faults: []error{ErrNoSuchObject, ErrMeta},
		args: func(e *encoder) { e.str(1, database); e.str(2, name); e.boolean(3, deleteData) }})
}

// AlterTable writes a table's description; its columns go into all partitions
// as well when cascade is set. Without it partitions that are there keep theirs.
func (c *Client) AlterTable(ctx context.Context, t *Table, cascade bool) error {
	env := map[string]string{"DO_NOT_UPDATE_STATS": "true"}
	if cascade {
		env["CASCADE"] = "true"
	}
	return c.call(ctx, &message{method: "alter_table_with_environment_context", faults: []error{ErrInvalidOperation, ErrMeta},
		args: func(e *encoder) {
			e.str(1, t.Database)
			e.str(2, t.Name)
			e.table(3, t)
			e.environment(4, env)
		}})
}

func (e *encoder) environment(id int16, m map[string]string) {
	e.field(id, thrift.STRUCT, func() { e.structure(func() { e.stringMap(1, m) }) })
}

// Partitions gives those of the named partitions that there are; a name is
// "dt=2024-05-01/hr=08", escaped as in a path.
func (c *Client) Partitions(ctx context.Context, database, table string, names []string) ([]*Partition, error) {
	var out []*Partition
	err := c.call(ctx, &message{method: "get_partitions_by_names", faults: []error{ErrMeta, ErrNoSuchObject},
		args:   func(e *encoder) { e.str(1, database); e.str(2, table); e.strings(3, names) },
		result: func(d *decoder, t thrift.TType) bool { return d.partitions(t, &out) }})
	return out, err
}

// PartitionNames lists the names of a table's partitions.
func (c *Client) PartitionNames(ctx context.Context, database, table string) ([]string, error) {
	var out []string
	err := c.call(ctx, &message{method: "get_partition_names", faults: []error{ErrMeta, ErrNoSuchObject},
		args:   func(e *encoder) { e.str(1, database); e.str(2, table); e.i16(3, -1) },
		result: func(d *decoder, t thrift.TType) bool { return d.strings(t, &out) }})
	return out, err
}

// AddPartitions adds those of the partitions that are absent and gives them;
// one that is there already is left as it is, and not given. All or none are
// added (ErrInvalidObject for a missing table, ErrMeta).
func (c *Client) AddPartitions(ctx context.Context, database, table string, parts []*Partition) ([]*Partition, error) {
	var added []*Partition
	err := c.call(ctx, &message{method: "add_partitions_req", faults: []error{ErrInvalidObject, ErrAlreadyExists, ErrMeta},
		args: func(e *encoder) {
			e.field(1, thrift.STRUCT, func() {
				e.structure(func() {
					e.str(1, database)
					e.str(2, table)
					e.list(3, thrift.STRUCT, len(parts), func(i int) { e.partition(parts[i]) })
					e.boolean(4, true) // if not exists
					e.boolean(5, true) // with the result
				})
			})
		},
		result: func(d *decoder, t thrift.TType) bool {
			if t != thrift.STRUCT {
				return false
			}
			d.structure(nil, func(id int16, t thrift.TType) bool { return id == 1 && d.partitions(t, &added) })
			return true
		}})
	return added, err
}

// AlterPartitions writes the descriptions of partitions that there are
// (ErrInvalidOperation). Their statistics are taken as given.
func (c *Client) AlterPartitions(ctx context.Context, database, table string, parts []*Partition) error {
	args := func(e *encoder) {
		e.str(1, database)
		e.str(2, table)
		e.list(3, thrift.STRUCT, len(parts), func(i int) { e.partition(parts[i]) })
	}
	faults := []error{ErrInvalidOperation, ErrMeta}
	err := c.call(ctx, &message{method: "alter_partitions_with_environment_context", faults: faults,
		args: func(e *encoder) { args(e); e.environment(4, map[string]string{"DO_NOT_UPDATE_STATS": "true"}) }})
	if errors.Is(err, ErrUnknownMethod) {
		err = c.call(ctx, &message{method: "alter_partitions", faults: faults, args: args})
	}
	return err
}

// DropPartition drops one partition, with its data if deleteData is set
// (ErrNoSuchObject).
func (c *Client) DropPartition(ctx context.Context, database, table string, values []string, deleteData bool) error {
	return c.call(ctx, &message{method: "drop_partition", faults: []error{ErrNoSuchObject, ErrMeta},
		args:   func(e *encoder) { e.str(1, database); e.str(2, table); e.strings(3, values); e.boolean(4, deleteData) },
		result: func(d *decoder, t thrift.TType) bool { var done bool; return d.boolean(t, &done) }})
}

func missing(method string) error {
	return &Fault{Method: method, Cause: ErrInternal, Message: fmt.Sprintf("the answer of %s holds no result", method)}
}
