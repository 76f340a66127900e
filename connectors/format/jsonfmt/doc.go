// Package jsonfmt reads and writes JSON: the format `json`.
//
// The decoder is driven by the schema. It walks a record once, writes each
// needed value straight into its column, and checks everything else to the
// last byte without converting it. It makes no tree, no tokens and no garbage.
//
// A record is one JSON object, an array of objects, or several objects with
// white space between them (none at all is an empty record); a UTF-8 byte order
// mark may stand in front. Text is RFC 8259 with one addition: control
// characters may stand unescaped in strings, as log lines have them. Every byte
// must be valid UTF-8, objects and arrays nest at most 1,000 deep.
//
// How it is fast:
//
//   - [index]: one pass without branches marks quotes, backslashes and bytes
//     that are not ASCII, so that strings are jumped over, not scanned;
//   - [object]: the key that followed last time is tried first, so a key costs
//     one comparison and no hashing;
//   - [skipper]: values that nobody needs are walked without recursion.
//
// Values (deviations from Flink are marked *):
//
//	BOOLEAN      true, false, or such a string in any case; *anything else fails
//	integers     number or string; 12.0 and 1e2 are integers, *3.7 fails
//	FLOAT DOUBLE number or string, "NaN", "Infinity"; *1e400 fails
//	DECIMAL      number or string, rounded half up and counted; *overflow fails
//	STRING       string; number, true, false as they stand; object, array raw
//	BYTES        string of base64
//	DATE TIME    string yyyy-MM-dd, HH:mm:ss[.f]
//	TIMESTAMP    string in the form of json.timestamp-format.standard; a
//	             fraction beyond the precision is cut, never rounded
//	ARRAY        array; an element that fails keeps its place
//	MAP          object, keys to strings; ROW object
//
// A Decoder belongs to one goroutine at a time, an Encoder to any number.
package jsonfmt
