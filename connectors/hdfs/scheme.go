package hdfs

import (
	"context"
	"fmt"
	"os"
	"path"
	"sync"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// Scheme gives connectors of files their paths "hdfs://...". Tables of one
// cluster, user and set of options share its connections, so that transfers are
// bounded together. It is safe for concurrent use.
type Scheme struct {
	local vfs.FS
	env   func(string) string

	mu     sync.Mutex
	mounts map[string]*mount
}

// mount is a cluster with the number of its users.
type mount struct {
	cluster *cluster
	users   int
}

// NewScheme makes the scheme. local is where files that are being written lie;
// env looks up environment variables, nil: the process's own.
func NewScheme(local vfs.FS, env func(string) string) *Scheme {
	if env == nil {
		env = os.Getenv
	}
	return &Scheme{local: local, env: env, mounts: map[string]*mount{}}
}

// Name is the part of a path before "://".
func (s *Scheme) Name() string { return "hdfs" }

// Options are what tables on this scheme may set.
func (s *Scheme) Options() []connector.Option { return options() }

// CheckPath refuses a path that cannot be one.
func (s *Scheme) CheckPath(url string) error {
	_, _, err := splitURL(url)
	return err
}

// Validate refuses contradictions between a table's options.
func (s *Scheme) Validate(v connector.Values) error {
	if err := validateStandby(v); err != nil {
		return err
	}
	return validateKerberos(v)
}

// Mount gives the filesystem of a path, the directory in it, and the prefix that
// makes users' paths of its names. release must be called once when the table is
// closed. It does not connect.
func (s *Scheme) Mount(_ context.Context, url string, v connector.Values) (fsys vfs.FS, dir, prefix string, release func() error, err error) {
	authority, dir, err := splitURL(url)
	if err != nil {
		return nil, "", "", nil, &connector.OptionError{Key: "path", OnValue: true, Message: err.Error()}
	}
	site, err := loadSite(v, s.env)
	if err != nil {
		return nil, "", "", nil, err
	}
	conf, err := config(authority, v, site, s.env)
	if err != nil {
		return nil, "", "", nil, err
	}
	key := fmt.Sprintf("%+v", conf)
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.mounts[key]
	if m == nil {
		m = &mount{cluster: newCluster(conf)}
		s.mounts[key] = m
	}
	m.users++
	f := view(m.cluster, s.local)
	var once sync.Once
	return f, path.Clean(dir), "hdfs://" + conf.Authority, func() error {
		once.Do(func() {
			f.stop(errClosed)
			s.release(key, m)
		})
		return nil
	}, nil
}

func (s *Scheme) release(key string, m *mount) {
	s.mu.Lock()
	m.users--
	last := m.users == 0
	if last {
		delete(s.mounts, key)
	}
	s.mu.Unlock()
	if last {
		m.cluster.close()
	}
}
