package filesystem

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// Scheme is a kind of filesystem that tables lie in when their path begins with
// its name and "://". Paths without a scheme, and with "file://", are of the
// filesystem that the connector was made with.
//
// A scheme's filesystem may differ from a local one in this: a file gets its
// name, and the errors that come with it, when it is synced, and may then have
// another one (File.Name); files are written once; there are no hard links
// (vfs.ErrNotSupported), but RenameNoReplace of a directory is atomic against
// one that is not empty; RenameNoReplace of a file looks first and renames then.
type Scheme interface {
	// Name is the scheme, as "hdfs".
	Name() string
	// Options are those of the scheme's tables; their keys begin with its name
	// and a dot.
	Options() []connector.Option
	// CheckPath refuses a path by its form.
	CheckPath(url string) error
	// Validate refuses contradictions between options.
	Validate(v connector.Values) error
	// Mount gives the filesystem of a path, the directory in it and the prefix
	// that makes users' paths of its names. release is called once, when the
	// table is closed. It must not need the system to be up.
	Mount(ctx context.Context, url string, v connector.Values) (fsys vfs.FS, dir, prefix string, release func() error, err error)
}

// With adds schemes. It is called before the connector is used.
func (c *Connector) With(schemes ...Scheme) *Connector {
	for _, s := range schemes {
		c.schemes[s.Name()] = s
		c.spec.Options = append(c.spec.Options, s.Options()...)
	}
	return c
}

// scheme is the part of a path before "://", "" for a local one.
func scheme(path string) string {
	name, _, ok := strings.Cut(path, "://")
	if !ok || name == "file" {
		return ""
	}
	return name
}

func (c *Connector) checkPath(s string) error {
	if s == "" {
		return errors.New("the path is empty")
	}
	name := scheme(s)
	if name == "" {
		return nil
	}
	if m := c.schemes[name]; m != nil {
		return m.CheckPath(s)
	}
	known := []string{"file"}
	for n := range c.schemes {
		known = append(known, n)
	}
	sort.Strings(known)
	return fmt.Errorf("not_yet: paths of scheme %q; there is %s", name, strings.Join(known, ", "))
}

// validateScheme refuses options of a scheme that the path does not have.
func (c *Connector) validateScheme(v connector.Values) error {
	path := v.String(keyPath)
	if path == "" {
		// Connector hive learns it from the metastore, and has it checked then.
		return nil
	}
	name := scheme(path)
	for n, m := range c.schemes {
		if n == name {
			if err := m.Validate(v); err != nil {
				return err
			}
			continue
		}
		for _, o := range m.Options() {
			if v.Has(o.Key) {
				return &connector.OptionError{Key: o.Key, Message: "'" + o.Key + "' has no effect: the path is not " + n + "://"}
			}
		}
	}
	return nil
}

// place is where a table lies.
type place struct {
	fs  vfs.FS
	dir string
	// linkless: there are no hard links.
	linkless bool
	// prefix and a name give the path as users write it.
	prefix  string
	release func() error
}

// place finds where a path leads, by the options of a table.
func (c *Connector) place(ctx context.Context, path string, v connector.Values) (place, error) {
	name := scheme(path)
	if name == "" {
		// Names are compared and joined; "./lake/" and "lake" must be one directory.
		return place{fs: c.fs, dir: c.fs.Join(strings.TrimPrefix(path, "file://")), release: func() error { return nil }}, nil
	}
	m := c.schemes[name]
	if m == nil {
		return place{}, &connector.OptionError{Key: keyPath, OnValue: true, Message: c.checkPath(path).Error()}
	}
	p := place{linkless: true}
	var err error
	p.fs, p.dir, p.prefix, p.release, err = m.Mount(ctx, path, v)
	return p, err
}
