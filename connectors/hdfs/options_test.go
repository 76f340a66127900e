package hdfs

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

func spec() *connector.Spec {
	return &connector.Spec{Name: "filesystem", Options: append(options(), connector.Option{Key: "path"}), Validate: validateKerberos}
}

// connectorIn adds the connector's name.
func connectorIn(with map[string]string) map[string]string {
	out := map[string]string{"connector": "filesystem"}
	maps.Copy(out, with)
	return out
}

func values(t *testing.T, with map[string]string) connector.Values {
	t.Helper()
	v, errs := spec().Resolve(connectorIn(with))
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	return v
}

// siteDir is a directory with a Hadoop configuration.
func siteDir(t *testing.T, props map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	text := "<configuration>"
	for k, v := range props {
		text += "<property><name>" + k + "</name><value>" + v + "</value></property>"
	}
	if err := os.WriteFile(filepath.Join(dir, "hdfs-site.xml"), []byte(text+"</configuration>"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestWhichCluster(t *testing.T) {
	ha := map[string]string{
		"fs.defaultFS": "hdfs://ns1", "dfs.ha.namenodes.ns1": "nn1, nn2", "dfs.namenode.rpc-address.ns1.nn1": "a:9000",
		"dfs.namenode.rpc-address.ns1.nn2": "b:9000", "dfs.replication": "2", "dfs.blocksize": "64m", "dfs.data.transfer.protection": "integrity,privacy",
	}
	for _, c := range []struct {
		url        string
		site, with map[string]string
		authority  string
		dir        string
		addresses  string
	}{
		{url: "hdfs://h/lake", authority: "h", dir: "/lake", addresses: "h:8020"},
		{url: "hdfs://h:9000/lake/", authority: "h:9000", dir: "/lake", addresses: "h:9000"},
		{url: "hdfs://[::1]:9000/lake", authority: "[::1]:9000", dir: "/lake", addresses: "[::1]:9000"},
		{url: "hdfs://ns1/a/../b", site: ha, authority: "ns1", dir: "/b", addresses: "a:9000 b:9000"},
		{url: "hdfs:///lake", site: ha, authority: "ns1", dir: "/lake", addresses: "a:9000 b:9000"},
		{url: "hdfs://other/lake", site: ha, authority: "other", dir: "/lake", addresses: "other:8020"},
		{url: "hdfs://ns1/lake", site: ha, with: map[string]string{keyNameNodes: "x:1;y:2"}, authority: "ns1", dir: "/lake", addresses: "x:1 y:2"},
		{url: "hdfs://h/lake/a%3Ab c", authority: "h", dir: "/lake/a%3Ab c", addresses: "h:8020"},
	} {
		t.Run(c.url, func(t *testing.T) {
			env := func(k string) string {
				if k == "HADOOP_CONF_DIR" && c.site != nil {
					return siteDir(t, c.site)
				}
				return ""
			}
			s := NewScheme(vfs.NewMem(), env)
			if err := s.CheckPath(c.url); err != nil {
				t.Fatal(err)
			}
			fsys, dir, prefix, release, err := s.Mount(t.Context(), c.url, values(t, c.with))
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			conf := fsys.(*FS).c.conf
			if prefix != "hdfs://"+c.authority || dir != c.dir || strings.Join(conf.Addresses, " ") != c.addresses {
				t.Errorf("%s %s at %v", prefix, dir, conf.Addresses)
			}
			if c.site != nil && (conf.Replication != 2 || conf.BlockBytes != 64<<20 || conf.Protection != "privacy") {
				t.Errorf("of the Hadoop configuration: %+v", conf)
			}
		})
	}
}

func TestPathsThatAreRefused(t *testing.T) {
	s := NewScheme(vfs.NewMem(), nil)
	for _, url := range []string{"hdfs://h", "hdfs://h/", "hdfs://", "hdfs://u@h/lake"} {
		if s.CheckPath(url) == nil {
			t.Errorf("%s is taken", url)
		}
	}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	none := func(string) string { return "" }
	for name, c := range map[string]struct {
		url  string
		with map[string]string
		site map[string]string
		want string
	}{
		"no default":              {url: "hdfs:///lake", want: "names no NameNode"},
		"no such configuration":   {url: "hdfs://h/lake", with: map[string]string{keyConfDir: t.TempDir()}, want: "no core-site.xml"},
		"half a name service":     {url: "hdfs://ns/lake", site: map[string]string{"dfs.ha.namenodes.ns": "a,b", "dfs.namenode.rpc-address.ns.a": "a:1"}, want: "dfs.namenode.rpc-address.ns.b"},
		"Kerberos is demanded":    {url: "hdfs://h/lake", site: map[string]string{"hadoop.security.authentication": "kerberos"}, want: keyPrincipal},
		"no principal of the NN":  {url: "hdfs://h/lake", with: map[string]string{keyPrincipal: "u@R", keyKeytab: "k"}, want: keyService},
		"block size of the site":  {url: "hdfs://h/lake", site: map[string]string{"dfs.blocksize": "many"}, want: "dfs.blocksize"},
		"replication of the site": {url: "hdfs://h/lake", site: map[string]string{"dfs.replication": "-1"}, want: "dfs.replication"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.site != nil {
				c.with = map[string]string{keyConfDir: siteDir(t, c.site)}
			}
			_, _, _, _, err := NewScheme(vfs.NewMem(), none).Mount(t.Context(), c.url, values(t, c.with))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want something about %s", err, c.want)
			}
		})
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	for _, with := range []map[string]string{
		{keyNameNodes: "nn1"}, {keyBlock: "1000"}, {keyBlock: "0"}, {keyRPC: "0 s"}, {keyTransfers: "0"}, {keyReplication: "0"},
		{keyPrincipal: "u@R"}, {keyKrb5Conf: "/etc/krb5.conf"}, {keyProtection: "none"}, {"hdfs.usr": "x"},
	} {
		if _, errs := spec().Resolve(connectorIn(with)); len(errs) == 0 {
			t.Errorf("%v is taken", with)
		}
	}
}

// TestMountsAreShared: equal options share a cluster's connections until the last user
// has gone.
func TestMountsAreShared(t *testing.T) {
	s := NewScheme(vfs.NewMem(), func(string) string { return "" })
	mount := func(url string, with map[string]string) (*FS, func() error) {
		fsys, _, _, release, err := s.Mount(t.Context(), url, values(t, with))
		if err != nil {
			t.Fatal(err)
		}
		return fsys.(*FS), release
	}
	a, ra := mount("hdfs://h:1/a", nil)
	b, rb := mount("hdfs://h:1/b", nil)
	c, rc := mount("hdfs://h:1/a", map[string]string{keyUser: "x"})
	defer rc()
	if a.c != b.c || a.c == c.c {
		t.Fatal("tables of one cluster and user do not share, or of two users do")
	}
	for range 2 {
		if err := ra(); err != nil {
			t.Fatal(err)
		}
	}
	if b.ctx.Err() != nil || b.c.closed {
		t.Fatal("closed while another table uses it")
	}
	if err := rb(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Stat("/b"); !errors.Is(err, errClosed) {
		t.Fatalf("a closed filesystem answers %v", err)
	}
}

// TestDocumentedOptions takes the options of the example in the documentation,
// and looks for each option that the page names.
func TestDocumentedOptions(t *testing.T) {
	page, err := os.ReadFile("../../docs/connectors/hdfs.md")
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, o := range options() {
		known = append(known, o.Key)
	}
	for _, m := range regexp.MustCompile(`'(hdfs\.[a-z-]+)' = '([^']*)'`).FindAllStringSubmatch(string(page), -1) {
		values(t, map[string]string{m[1]: m[2]})
	}
	for _, m := range regexp.MustCompile("`(hdfs\\.[a-z.-]+[a-z])`").FindAllStringSubmatch(string(page), -1) {
		if !slices.Contains(known, m[1]) {
			t.Errorf("the page names option %s, which there is not", m[1])
		}
	}
}
