package logictest

import (
	"fmt"
	"strconv"
	"strings"
)

// block is one block of a file.
type block struct {
	line int // of the first line
	// sql is the statement; sqlLine the line it starts at.
	sql     string
	sqlLine int

	query bool
	// job is the sink table of a job whose rows are compared.
	job string
	// wantError is the code that must be reported (statement), or with which a
	// row must fail (query); "" is none. errorAt is its place, "" is any.
	wantError string
	errorAt   string
	// sorted compares rows sorted; streaming leaves the backfill out.
	sorted    bool
	streaming bool
	types     string
	dead      map[string]int
	late      int
	want      []string
}

// parse reads a file.
func parse(text string) ([]*block, error) {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	var out []*block
	for i := 0; i < len(lines); i++ {
		if line := strings.TrimSpace(lines[i]); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		b := &block{line: i + 1}
		if err := b.head(lines[i]); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		i++
		b.sqlLine = i + 1
		var sql []string
		for ; i < len(lines) && strings.TrimSpace(lines[i]) != "" && lines[i] != "----"; i++ {
			sql = append(sql, lines[i])
		}
		b.sql = strings.Join(sql, "\n")
		if i < len(lines) && lines[i] == "----" {
			for i++; i < len(lines) && lines[i] != ""; i++ {
				b.want = append(b.want, lines[i])
			}
		}
		out = append(out, b)
	}
	return out, nil
}

func (b *block) head(line string) error {
	head, types, _ := strings.Cut(line, " : ")
	b.types = strings.TrimSpace(types)
	words := strings.Fields(head)
	switch words[0] {
	case "statement":
		if len(words) >= 3 && words[1] == "error" {
			b.wantError = words[2]
			if len(words) > 3 {
				b.errorAt = words[3]
			}
			return nil
		}
		if len(words) == 2 && words[1] == "ok" {
			return nil
		}
		return fmt.Errorf("%q: want statement ok, or statement error CODE [LINE:COL]", line)
	case "query":
		b.query = true
		return b.queryHead(words[1:])
	case "job":
		if len(words) < 2 {
			return fmt.Errorf("%q: want job TABLE", line)
		}
		b.query, b.job = true, words[1]
		return b.queryHead(words[2:])
	}
	return fmt.Errorf("%q is no statement, query or job", line)
}

func (b *block) queryHead(words []string) error {
	for i := 0; i < len(words); i++ {
		arg := ""
		if i+1 < len(words) {
			arg = words[i+1]
		}
		switch words[i] {
		case "rowsort":
			b.sorted = true
		case "nosort":
		case "streaming":
			b.streaming = true
		case "error":
			b.wantError = arg
			i++
		case "dead":
			b.dead = map[string]int{}
			for _, d := range strings.Split(arg, ",") {
				code, n, _ := strings.Cut(d, ":")
				count, err := strconv.Atoi(n)
				if err != nil {
					return fmt.Errorf("%q: want dead code:count", d)
				}
				b.dead[code] = count
			}
			i++
		case "late":
			n, err := strconv.Atoi(arg)
			if err != nil {
				return fmt.Errorf("%q: want late count", arg)
			}
			b.late = n
			i++
		default:
			return fmt.Errorf("unknown word %q", words[i])
		}
	}
	return nil
}
