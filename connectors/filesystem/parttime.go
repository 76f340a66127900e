package filesystem

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
)

// loadZone reads a zone as SQL spells it: an IANA name, UTC, or GMT+08:00.
func loadZone(name string) (*time.Location, error) {
	rest, ok := strings.CutPrefix(name, "GMT")
	if !ok {
		rest, ok = strings.CutPrefix(name, "UTC")
	}
	if ok && rest != "" && (rest[0] == '+' || rest[0] == '-') {
		h, m, _ := strings.Cut(rest[1:], ":")
		hours, err1 := strconv.Atoi(h)
		minutes := 0
		var err2 error
		if m != "" {
			minutes, err2 = strconv.Atoi(m)
		}
		if err1 != nil || err2 != nil || hours > 18 || hours < 0 || minutes > 59 || minutes < 0 {
			return nil, fmt.Errorf("%q is not a time zone such as UTC, Asia/Shanghai or GMT+08:00", name)
		}
		offset := hours*3600 + minutes*60
		if rest[0] == '-' {
			offset = -offset
		}
		return time.FixedZone(name, offset), nil
	}
	// Abbreviations such as PST name different offsets in different places.
	if name == "" || name == "Local" || name != "UTC" && name != "GMT" && !strings.ContainsRune(name, '/') {
		return nil, fmt.Errorf("%q is not a time zone such as UTC, Asia/Shanghai or GMT+08:00", name)
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q is not a time zone: %w", name, err)
	}
	return z, nil
}

// timeExtractor compiles how a table partition's time is read from its name.
// The result is in milliseconds since 1970. A partition with the default name,
// or whose text is no time, has none: that is an error of this partition alone,
// and it is announced only when all input has ended.
func timeExtractor(pattern, formatter string, zone *time.Location, defaultName string) (func(string) (int64, error), error) {
	parse := parseLenient
	if formatter != "" {
		p, err := compilePattern(formatter)
		if err != nil {
			return nil, err
		}
		parse = p
	}
	return func(tablePartition string) (int64, error) {
		vals, err := parsePartition(tablePartition, defaultName)
		if err != nil {
			return 0, err
		}
		if len(vals) == 0 {
			return 0, fmt.Errorf("a table without partitions has no partition time")
		}
		text := vals[0].value
		if pattern != "" {
			text = pattern
			// Longer names first: $dt must not be read as $d and a t.
			sort.SliceStable(vals, func(i, j int) bool { return len(vals[i].name) > len(vals[j].name) })
			for _, v := range vals {
				if v.null && strings.Contains(text, "$"+v.name) {
					return 0, fmt.Errorf("partition %q has no time: column %s is NULL", tablePartition, v.name)
				}
				text = strings.ReplaceAll(text, "$"+v.name, v.value)
			}
		} else if vals[0].null {
			return 0, fmt.Errorf("partition %q has no time: column %s is NULL", tablePartition, vals[0].name)
		}
		t, err := parse(text)
		if err != nil {
			return 0, fmt.Errorf("partition %q: %w", tablePartition, err)
		}
		return time.Date(t[0], time.Month(t[1]), t[2], t[3], t[4], t[5], t[6]*1e6, zone).UnixMilli(), nil
	}, nil
}

// wall is year, month, day, hour, minute, second, millisecond.
type wall [7]int

func (w wall) check(text string) (wall, error) {
	t := time.Date(w[0], time.Month(w[1]), w[2], w[3], w[4], w[5], 0, time.UTC)
	// time.Date rolls 2023-02-29 over to March; a partition's time does not.
	if t.Year() != w[0] || int(t.Month()) != w[1] || t.Day() != w[2] || t.Hour() != w[3] || t.Minute() != w[4] || t.Second() != w[5] {
		return w, fmt.Errorf("%q is no time that exists", text)
	}
	return w, nil
}

// parseLenient reads yyyy-M-d with an optional H:m:s, as Flink does without a
// formatter.
func parseLenient(text string) (wall, error) {
	w := wall{}
	bad := func() (wall, error) { return w, fmt.Errorf("%q is not of the form yyyy-MM-dd HH:mm:ss", text) }
	date, clock, hasClock := strings.Cut(text, " ")
	fill := func(s, sep string, into []int) bool {
		parts := strings.Split(s, sep)
		if len(parts) != len(into) {
			return false
		}
		for i, p := range parts {
			n, err := strconv.Atoi(p)
			if err != nil || n < 0 || len(p) > 4 || i > 0 && len(p) > 2 {
				return false
			}
			into[i] = n
		}
		return true
	}
	if !fill(date, "-", w[:3]) || hasClock && !fill(clock, ":", w[3:6]) {
		return bad()
	}
	return w.check(text)
}

// compilePattern reads a Java date pattern of the letters y M d H m s S with
// literals; in quotes anything is literal.
func compilePattern(pattern string) (func(string) (wall, error), error) {
	type piece struct {
		field, width int
		literal      string
	}
	fields := map[byte]int{'y': 0, 'u': 0, 'M': 1, 'd': 2, 'H': 3, 'm': 4, 's': 5, 'S': 6}
	var pieces []piece
	for i := 0; i < len(pattern); {
		c := pattern[i]
		if c == '\'' {
			end := strings.IndexByte(pattern[i+1:], '\'')
			if end < 0 {
				return nil, fmt.Errorf("pattern %q: a quote is not closed", pattern)
			}
			lit := pattern[i+1 : i+1+end]
			if lit == "" {
				lit = "'"
			}
			pieces = append(pieces, piece{field: -1, literal: lit})
			i += end + 2
			continue
		}
		j := i
		for j < len(pattern) && pattern[j] == c {
			j++
		}
		if f, ok := fields[c]; ok {
			pieces = append(pieces, piece{field: f, width: j - i})
			i = j
			continue
		}
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return nil, fmt.Errorf("pattern %q: letter %q is not supported (not_yet); use yyyy MM dd HH mm ss SSS", pattern, c)
		}
		pieces = append(pieces, piece{field: -1, literal: pattern[i:j]})
		i = j
	}
	return func(text string) (wall, error) {
		w := wall{0, 1, 1}
		rest := text
		bad := func() (wall, error) { return w, fmt.Errorf("%q is not of the form %s", text, pattern) }
		for _, p := range pieces {
			if p.field < 0 {
				var ok bool
				if rest, ok = strings.CutPrefix(rest, p.literal); !ok {
					return bad()
				}
				continue
			}
			n := 0
			for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' && (p.width == 1 || n < p.width) {
				n++
			}
			if n == 0 || p.width > 1 && n != p.width {
				return bad()
			}
			v, err := strconv.Atoi(rest[:n])
			if err != nil {
				return bad()
			}
			if p.field == 0 && p.width == 2 {
				v += 2000
			}
			if p.field == 6 {
				for k := n; k < 3; k++ {
					v *= 10
				}
			}
			w[p.field], rest = v, rest[n:]
		}
		if rest != "" {
			return bad()
		}
		return w.check(text)
	}, nil
}
