package connector

// OptionType is the type of an option's value in a WITH clause. Values are
// always written as string literals.
type OptionType uint8

const (
	OptString   OptionType = iota
	OptBool                // true | false
	OptInt                 // decimal integer
	OptFloat               // decimal number
	OptDuration            // Flink's form: "10 s", "1 min", "2 h", "1 d", "500 ms"
	OptBytes               // Flink's form: "128MB", "64 kb", "1024"; powers of 1024
	OptEnum                // one of Enum
	OptList                // separated by ';'
)

// Option declares one option of a connector or a format.
type Option struct {
	// Key is the full key, e.g. "sink.rolling-policy.file-size"; one that ends
	// in '*' declares a family, e.g. "fields.*" .
	Key string
	// Type, and Enum for OptEnum; Refused are values that users may expect of
	// an OptEnum, and why they are refused.
	Type    OptionType
	Enum    []string
	Refused map[string]string
	// Default is the value when the key is absent; "" is no default.
	Default string
	// Required makes absence an error.
	Required bool
	// Secret values are masked wherever they are printed.
	Secret bool
	// Min and Max bound OptInt values, both 0: unbounded.
	Min, Max int64
	// Check, when set, refuses a value with a sentence that says why.
	Check func(value string) error
	// Doc is one or two sentences for the documentation page.
	Doc string
	// Since is the version that brought the option.
	Since string
}

// Changelog says which kinds of rows a sink takes, or a source gives.
type Changelog uint8

const (
	// InsertOnly sinks refuse a query that updates.
	InsertOnly Changelog = iota
	// Upsert sinks take +I, +U and -D by primary key; -U is dropped. Sources give +U
	// for what the row of a key is from now on, and -D, of which only the key counts;
	// both in batch.Kinds, and the rows of a key from one partition.
	Upsert
	// All sinks take every kind of row.
	All
)

// MetadataColumn is a column that a table may declare METADATA FROM 'key'.
type MetadataColumn struct {
	Key string
	// Type is the SQL type, e.g. "TIMESTAMP_LTZ(3) NOT NULL".
	Type string
	// Writable metadata is also taken by the sink.
	Writable bool
	Doc      string
}

// FormatSpec declares a format (json, csv, parquet) for use in Spec.Formats.
type FormatSpec struct {
	Name    string
	Summary string
	// Doc is Markdown: how each type is read and written.
	Doc            string
	Options        []Option
	Decode, Encode bool
	// Validate refuses contradictions between the format's options, as
	// Spec.Validate does between a connector's.
	Validate func(Values) error
}

// Place is where a table is written.
type Place struct {
	// At is equal for equal places, however they are spelled.
	At string
	// Option is the key that says so.
	Option string
}

// Spec declares a connector: from it come option checking, documentation,
// completion and `millrace connectors describe`.
type Spec struct {
	// Name is the value of 'connector'.
	Name string
	// Summary is one line; Doc is a few paragraphs of Markdown.
	Summary, Doc string
	// Source and Sink say what tables of this connector can be used as.
	Source, Sink bool
	// Lookup: tables can be looked up by key, see LookupConnector.
	Lookup bool
	// Bounded: the source always ends.
	Bounded bool
	// BoundedBy is the key of an option that, when it is set, makes the source end.
	BoundedBy string
	// Options, without those of formats.
	Options []Option
	// Formats that 'format' may name; empty: the connector has no format.
	Formats []FormatSpec
	// RefusedFormats are names of formats that users may expect, and why they
	// are refused.
	RefusedFormats map[string]string
	// DefaultFormat is used when 'format' is absent; "" makes it required.
	DefaultFormat string
	Metadata      []MetadataColumn
	// Changelog is what tables take when they are written, SourceChangelog what they
	// give when they are read: InsertOnly, or Upsert by their primary key.
	Changelog, SourceChangelog Changelog
	// Partitioned: PARTITIONED BY is supported.
	Partitioned bool
	// Places are those that a table, by its name and options, is written at: a job
	// writes one table at a place. nil: several may share one.
	Places func(table string, v Values) []Place
	// Passing: what is written is not kept, so that rows of earlier runs are nowhere.
	Passing bool
	// FoldsNames: names of columns that differ in upper and lower case alone are one.
	FoldsNames bool
	// Guarantee is one sentence, e.g. "Exactly once: ...".
	Guarantee string
	// Validate refuses contradictions between options; it names the key at
	// fault by returning an *OptionError.
	Validate func(Values) error
}

// Connector is a system that tables can lie in.
type Connector interface {
	Spec() *Spec
}
