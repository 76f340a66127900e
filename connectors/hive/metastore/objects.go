package metastore

import (
	"maps"
	"slices"

	"github.com/apache/thrift/lib/go/thrift"
)

// Database is a database of the metastore.
type Database struct {
	Name, Description string
	// Location is the directory that its tables lie in by default.
	Location string
	Owner    string
}

// Column is a column of a table, or a partition key.
type Column struct {
	// Name is in lower case; Type is Hive's spelling, e.g. "decimal(10,2)".
	Name, Type, Comment string
}

// Storage says where and how the data of a table or partition is stored.
type Storage struct {
	Columns []Column
	// Location is a directory as Hadoop spells it: "hdfs://host:8020/lake/t".
	Location                  string
	InputFormat, OutputFormat string
	Compressed                bool
	Buckets                   int32
	SerDe                     string
	SerDeParameters           map[string]string
	BucketColumns             []string
	Parameters                map[string]string

	serdeName   string
	serdeExtras []extra
	sort        *extra
	extras      []extra
}

// Clone is a deep copy.
func (s *Storage) Clone() Storage {
	c := *s
	c.Columns = slices.Clone(s.Columns)
	c.SerDeParameters, c.Parameters = maps.Clone(s.SerDeParameters), maps.Clone(s.Parameters)
	c.BucketColumns = slices.Clone(s.BucketColumns)
	return c
}

// Sorted reports whether the table's files are declared to be sorted.
func (s *Storage) Sorted() bool {
	// An empty list is an element type and four zero bytes of length.
	return s.sort != nil && len(s.sort.raw) > 5
}

// Table is a table of the metastore.
type Table struct {
	Database, Name, Owner string
	// CreateTime and LastAccessTime are seconds since 1970.
	CreateTime, LastAccessTime, Retention int32
	Storage                               Storage
	PartitionKeys                         []Column
	Parameters                            map[string]string
	ViewOriginal, ViewExpanded            string
	// Type is MANAGED_TABLE, EXTERNAL_TABLE, VIRTUAL_VIEW...
	Type string

	extras []extra
}

// Clone is a deep copy.
func (t *Table) Clone() *Table {
	c := *t
	c.Storage, c.PartitionKeys, c.Parameters = t.Storage.Clone(), slices.Clone(t.PartitionKeys), maps.Clone(t.Parameters)
	return &c
}

// Partition is a table partition as the metastore knows it.
type Partition struct {
	// Values are those of the table's partition keys, in order, as text.
	Values                     []string
	Database, Table            string
	CreateTime, LastAccessTime int32
	Storage                    Storage
	Parameters                 map[string]string

	extras []extra
}

// Clone is a deep copy.
func (p *Partition) Clone() *Partition {
	c := *p
	c.Values, c.Storage, c.Parameters = slices.Clone(p.Values), p.Storage.Clone(), maps.Clone(p.Parameters)
	return &c
}

func (e *encoder) columns(id int16, cols []Column) {
	e.list(id, thrift.STRUCT, len(cols), func(i int) {
		e.structure(func() {
			e.str(1, cols[i].Name)
			e.str(2, cols[i].Type)
			e.optional(3, cols[i].Comment)
		})
	})
}

func (d *decoder) columns(t thrift.TType, v *[]Column) bool {
	*v = []Column{}
	return d.list(t, thrift.STRUCT, func() {
		var c Column
		d.structure(nil, func(id int16, t thrift.TType) bool {
			switch id {
			case 1:
				return d.str(t, &c.Name)
			case 2:
				return d.str(t, &c.Type)
			case 3:
				return d.str(t, &c.Comment)
			}
			return false
		})
		*v = append(*v, c)
	})
}

func (e *encoder) storage(id int16, s *Storage) {
	e.field(id, thrift.STRUCT, func() {
		e.structure(func() {
			e.columns(1, s.Columns)
			e.optional(2, s.Location)
			e.optional(3, s.InputFormat)
			e.optional(4, s.OutputFormat)
			e.boolean(5, s.Compressed)
			e.i32(6, s.Buckets)
			e.field(7, thrift.STRUCT, func() {
				e.structure(func() {
					e.optional(1, s.serdeName)
					e.optional(2, s.SerDe)
					e.stringMap(3, s.SerDeParameters)
					e.extras(s.serdeExtras)
				})
			})
			e.strings(8, s.BucketColumns)
			if s.sort != nil {
				e.extras([]extra{*s.sort})
			} else {
				e.list(9, thrift.STRUCT, 0, nil)
			}
			e.stringMap(10, s.Parameters)
			e.extras(s.extras)
		})
	})
}

func (d *decoder) storage(t thrift.TType, s *Storage) bool {
	if t != thrift.STRUCT {
		return false
	}
	d.structure(&s.extras, func(id int16, t thrift.TType) bool {
		switch id {
		case 1:
			return d.columns(t, &s.Columns)
		case 2:
			return d.str(t, &s.Location)
		case 3:
			return d.str(t, &s.InputFormat)
		case 4:
			return d.str(t, &s.OutputFormat)
		case 5:
			return d.boolean(t, &s.Compressed)
		case 6:
			return d.i32(t, &s.Buckets)
		case 7:
			return d.serde(t, s)
		case 8:
			return d.strings(t, &s.BucketColumns)
		case 9:
			var kept []extra
			d.keep(&kept, id, t)
			s.sort = &kept[0]
			return true
		case 10:
			return d.stringMap(t, &s.Parameters)
		}
		return false
	})
	return true
}

func (d *decoder) serde(t thrift.TType, s *Storage) bool {
	if t != thrift.STRUCT {
		return false
	}
	d.structure(&s.serdeExtras, func(id int16, t thrift.TType) bool {
		switch id {
		case 1:
			return d.str(t, &s.serdeName)
		case 2:
			return d.str(t, &s.SerDe)
		case 3:
			return d.stringMap(t, &s.SerDeParameters)
		}
		return false
	})
	return true
}

func (e *encoder) table(id int16, t *Table) {
	e.field(id, thrift.STRUCT, func() {
		e.structure(func() {
			e.str(1, t.Name)
			e.str(2, t.Database)
			e.optional(3, t.Owner)
			e.i32(4, t.CreateTime)
			e.i32(5, t.LastAccessTime)
			e.i32(6, t.Retention)
			e.storage(7, &t.Storage)
			e.columns(8, t.PartitionKeys)
			e.stringMap(9, t.Parameters)
			e.optional(10, t.ViewOriginal)
			e.optional(11, t.ViewExpanded)
			e.optional(12, t.Type)
			e.extras(t.extras)
		})
	})
}

func (d *decoder) table(t thrift.TType, v *Table) bool {
	if t != thrift.STRUCT {
		return false
	}
	d.structure(&v.extras, func(id int16, t thrift.TType) bool {
		switch id {
		case 1:
			return d.str(t, &v.Name)
		case 2:
			return d.str(t, &v.Database)
		case 3:
			return d.str(t, &v.Owner)
		case 4:
			return d.i32(t, &v.CreateTime)
		case 5:
			return d.i32(t, &v.LastAccessTime)
		case 6:
			return d.i32(t, &v.Retention)
		case 7:
			return d.storage(t, &v.Storage)
		case 8:
			return d.columns(t, &v.PartitionKeys)
		case 9:
			return d.stringMap(t, &v.Parameters)
		case 10:
			return d.str(t, &v.ViewOriginal)
		case 11:
			return d.str(t, &v.ViewExpanded)
		case 12:
			return d.str(t, &v.Type)
		}
		return false
	})
	return true
}

// partition writes the struct without a field around it.
func (e *encoder) partition(p *Partition) {
	e.structure(func() {
		e.strings(1, p.Values)
		e.str(2, p.Database)
		e.str(3, p.Table)
		e.i32(4, p.CreateTime)
		e.i32(5, p.LastAccessTime)
		e.storage(6, &p.Storage)
		e.stringMap(7, p.Parameters)
		e.extras(p.extras)
	})
}

func (d *decoder) partitions(t thrift.TType, v *[]*Partition) bool {
	return d.list(t, thrift.STRUCT, func() {
		p := new(Partition)
		d.structure(&p.extras, func(id int16, t thrift.TType) bool {
			switch id {
			case 1:
				return d.strings(t, &p.Values)
			case 2:
				return d.str(t, &p.Database)
			case 3:
				return d.str(t, &p.Table)
			case 4:
				return d.i32(t, &p.CreateTime)
			case 5:
				return d.i32(t, &p.LastAccessTime)
			case 6:
				return d.storage(t, &p.Storage)
			case 7:
				return d.stringMap(t, &p.Parameters)
			}
			return false
		})
		*v = append(*v, p)
	})
}
