package csvfmt

import (
	_ "embed" // the table of types
	"strconv"
	"strings"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/connector"
)

//go:embed types.md
var typesDoc string

const (
	keyDelimiter    = "csv.field-delimiter"
	keyQuote        = "csv.quote-character"
	keyDisableQuote = "csv.disable-quote-character"
	keyEscape       = "csv.escape-character"
	keyNull         = "csv.null-literal"
	keyComments     = "csv.allow-comments"
	keyElement      = "csv.array-element-delimiter"
	keyFieldCount   = "csv.ignore-field-count"
	keyHiveEscapes  = "csv.hive-escapes"
)

// Format is the format `csv`.
type Format struct{}

var _ format.Format = Format{}

// Spec implements format.Format.
func (Format) Spec() connector.FormatSpec {
	return connector.FormatSpec{
		Name:    "csv",
		Summary: "Comma-separated values, columns by position.",
		Doc:     typesDoc,
		Decode:  true, Encode: true,
		Options: append(format.PolicyOptions("csv"),
			connector.Option{Key: keyDelimiter, Type: connector.OptString, Default: ",", Check: checkCharacter,
				Doc: "The character between fields; `\\t` is a tab, `\\u0001` any other."},
			connector.Option{Key: keyQuote, Type: connector.OptString, Default: `"`, Check: checkCharacter,
				Doc: "The character around fields that hold special ones."},
			connector.Option{Key: keyDisableQuote, Type: connector.OptBool, Default: "false",
				Doc: "No field is quoted; not together with `csv.quote-character`."},
			connector.Option{Key: keyEscape, Type: connector.OptString, Check: checkCharacter,
				Doc: "The character that takes the meaning from the one behind it; none by default."},
			connector.Option{Key: keyNull, Type: connector.OptString,
				Doc: "The text that stands for NULL; none by default, and NULL is then written as an empty field."},
			connector.Option{Key: keyComments, Type: connector.OptBool, Default: "false",
				Doc: "Lines that begin with # are passed over."},
			connector.Option{Key: keyElement, Type: connector.OptString, Default: ";",
				Doc: "The text between the elements of an ARRAY."},
			connector.Option{Key: keyFieldCount, Type: connector.OptBool, Default: "false",
				Doc: "A line with fewer fields than columns gives NULL for the last ones, and fields beyond the columns are passed over, as Hive reads text. Otherwise such a line is malformed."},
			connector.Option{Key: keyHiveEscapes, Type: connector.OptBool, Default: "false",
				Doc: "`csv.escape-character` is that of Hive's text (ESCAPED BY): behind it `n` and `r` are line ends, and any other character is itself, also one between an ARRAY's elements; NULL is `csv.null-literal` as it stands, so that an escaped one is text; values that are no text have no escapes, and a line end always ends a line. Needs an escape character and no quotes. For reading."},
		),
		Validate: func(v connector.Values) error {
			o := format.FromValues(v, "")
			if _, err := format.ParsePolicy("csv", o); err != nil {
				return err
			}
			_, err := parseSettings(o)
			return err
		},
	}
}

// Policy implements format.Format.
func (Format) Policy(o format.Options) (format.Policy, error) { return format.ParsePolicy("csv", o) }

// NewDecoder implements format.Format.
func (Format) NewDecoder(c format.DecoderConfig) (format.Decoder, error) { return NewDecoder(c) }

// NewEncoder implements format.Format.
func (Format) NewEncoder(c format.EncoderConfig) (format.Encoder, error) { return NewEncoder(c) }

// Split implements format.Format: a record is a line, and a line end within
// quotes belongs to the field. Options that are in error split by lines.
func (Format) Split(o format.Options) format.SplitFunc {
	s, err := parseSettings(o)
	if err != nil {
		return format.SplitLines
	}
	return s.split
}

// settings are the options; a character that is not used is 0.
type settings struct {
	delimiter, quote, escape byte
	null                     string
	hasNull                  bool
	comments                 bool
	element                  string
	anyCount                 bool
	// hive: the escape character is Hive's; see hive.go.
	hive bool
}

func parseSettings(o format.Options) (s settings, err error) {
	for _, c := range []struct {
		key, def string
		to       *byte
	}{{keyDelimiter, ",", &s.delimiter}, {keyQuote, `"`, &s.quote}, {keyEscape, "", &s.escape}} {
		v := o.Value(c.key, c.def)
		if v == "" && c.key == keyEscape {
			continue
		}
		var ok bool
		if *c.to, ok = character(v); !ok {
			return s, format.BadValue(c.key, v, "one ASCII character")
		}
	}
	switch v := o.Value(keyDisableQuote, "false"); v {
	case "false":
	case "true":
		if o.Value(keyQuote, "") != "" {
			return s, &connector.OptionError{Key: keyQuote, Message: "option \"" + keyQuote + "\" contradicts \"" + keyDisableQuote + "\"", Hint: "drop one of the two"}
		}
		s.quote = 0
	default:
		return s, format.BadValue(keyDisableQuote, v, "true or false")
	}
	if s.delimiter == s.quote || s.delimiter == s.escape || s.quote != 0 && s.quote == s.escape {
		return s, &connector.OptionError{Key: keyDelimiter, OnValue: true, Message: "delimiter, quote and escape character must differ"}
	}
	switch v := o.Value(keyComments, "false"); v {
	case "true", "false":
		s.comments = v == "true"
	default:
		return s, format.BadValue(keyComments, v, "true or false")
	}
	switch v := o.Value(keyFieldCount, "false"); v {
	case "true", "false":
		s.anyCount = v == "true"
	default:
		return s, format.BadValue(keyFieldCount, v, "true or false")
	}
	switch v := o.Value(keyHiveEscapes, "false"); v {
	case "true", "false":
		s.hive = v == "true"
	default:
		return s, format.BadValue(keyHiveEscapes, v, "true or false")
	}
	if s.hive && (s.escape == 0 || s.quote != 0) {
		return s, &connector.OptionError{Key: keyHiveEscapes, OnValue: true, Message: "text of Hive has an escape character and no quotes",
			Hint: "'" + keyEscape + "' = '\\', '" + keyDisableQuote + "' = 'true'"}
	}
	if o != nil {
		s.null, s.hasNull = o(keyNull)
	}
	if s.element = o.Value(keyElement, ";"); s.element == "" {
		return s, format.BadValue(keyElement, "", "a text of at least one character")
	}
	return s, nil
}

func checkCharacter(v string) error {
	if _, ok := character(v); !ok {
		return format.BadValue("", v, "one ASCII character")
	}
	return nil
}

// character reads a character as Flink does: itself, or a Java escape.
func character(v string) (byte, bool) {
	if strings.HasPrefix(v, `\`) && len(v) > 1 {
		switch rest := v[1:]; {
		case rest == "t":
			return '\t', true
		case rest == `\`:
			return '\\', true
		case rest[0] == 'u' && len(rest) == 5:
			x, err := strconv.ParseUint(rest[1:], 16, 7)
			return byte(x), err == nil && x != 0 && x != '\n' && x != '\r'
		}
		return 0, false
	}
	if len(v) != 1 || v[0] >= 0x80 || v[0] == 0 || v[0] == '\n' || v[0] == '\r' {
		return 0, false
	}
	return v[0], true
}
