package hdfs

import (
	"fmt"
	"net"
	"net/url"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/colinmarc/hdfs/v2/hadoopconf"

	"github.com/millrace/millrace/runtime/connector"
)

// site are the settings of core-site.xml and hdfs-site.xml; nil: there are none.
type site map[string]string

// loadSite reads the Hadoop configuration. A directory that the table names
// must have one.
func loadSite(v connector.Values, env func(string) string) (site, error) {
	dirs := []string{}
	named := v.String(keyConfDir)
	switch {
	case named != "":
		dirs = append(dirs, named)
	case env("HADOOP_CONF_DIR") != "":
		dirs = append(dirs, env("HADOOP_CONF_DIR"))
	case env("HADOOP_HOME") != "":
		dirs = append(dirs, filepath.Join(env("HADOOP_HOME"), "etc", "hadoop"), filepath.Join(env("HADOOP_HOME"), "conf"))
	}
	for _, d := range dirs {
		conf, err := hadoopconf.Load(d)
		if err != nil {
			return nil, fmt.Errorf("reading the Hadoop configuration in %s: %w", d, err)
		}
		if conf != nil {
			return site(conf), nil
		}
	}
	if named != "" {
		return nil, &connector.OptionError{Key: keyConfDir, OnValue: true, Message: fmt.Sprintf("there is no core-site.xml and no hdfs-site.xml in %s", named)}
	}
	return nil, nil
}

// defaultAuthority is that of fs.defaultFS.
func (s site) defaultAuthority() string {
	for _, k := range []string{"fs.defaultFS", "fs.default.name"} {
		if u, err := url.Parse(s[k]); err == nil && u.Scheme == "hdfs" {
			return u.Host
		}
	}
	return ""
}

// nameNodes are the addresses behind an authority: those of the name service,
// else the authority itself.
func (s site) nameNodes(authority string) ([]string, error) {
	if ids := s["dfs.ha.namenodes."+authority]; ids != "" {
		var out []string
		for id := range strings.SplitSeq(ids, ",") {
			key := "dfs.namenode.rpc-address." + authority + "." + strings.TrimSpace(id)
			if s[key] == "" {
				return nil, fmt.Errorf("the Hadoop configuration has no %s for a NameNode of %q", key, authority)
			}
			out = append(out, s[key])
		}
		return out, nil
	}
	if addr := s["dfs.namenode.rpc-address."+authority]; addr != "" {
		return []string{addr}, nil
	}
	if _, _, err := net.SplitHostPort(authority); err == nil {
		return []string{authority}, nil
	}
	return []string{net.JoinHostPort(authority, defaultPort)}, nil
}

// blockBytes reads dfs.blocksize: a number with k, m, g, t.
func (s site) blockBytes() (int64, error) {
	text := strings.ToLower(strings.TrimSpace(s["dfs.blocksize"]))
	if text == "" {
		return 0, nil
	}
	shift := 0
	if i := strings.IndexByte("kmgt", text[len(text)-1]); i >= 0 {
		shift, text = 10*(i+1), text[:len(text)-1]
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n > 1<<62>>shift {
		return 0, fmt.Errorf("dfs.blocksize %q of the Hadoop configuration is no size", s["dfs.blocksize"])
	}
	return n << shift, nil
}

// config puts a table's options over the site's settings.
func config(authority string, v connector.Values, s site, env func(string) string) (Config, error) {
	c := Config{
		Authority: authority, User: v.String(keyUser), Replication: int(v.Int(keyReplication)), BlockBytes: v.Bytes(keyBlock),
		RPCTimeout: v.Duration(keyRPC), RetryTimeout: v.Duration(keyRetry), Transfers: int(v.Int(keyTransfers)),
		UseHostname: s["dfs.client.use.datanode.hostname"] == "true", SpoolDir: v.String(keySpool), Protection: v.String(keyProtection),
	}
	if c.Authority == "" {
		c.Authority = s.defaultAuthority()
	}
	if c.Authority == "" {
		return c, &connector.OptionError{Key: "path", OnValue: true, Message: "the path names no NameNode, and no Hadoop configuration says which is the default",
			Hint: "'path' = 'hdfs://host:8020/dir', or '" + keyConfDir + "'"}
	}
	var err error
	if c.Addresses = v.List(keyNameNodes); len(c.Addresses) == 0 {
		if c.Addresses, err = s.nameNodes(c.Authority); err != nil {
			return c, err
		}
	}
	if v.Has(keyHostname) {
		c.UseHostname = v.Bool(keyHostname)
	}
	if c.Replication == 0 && s["dfs.replication"] != "" {
		if c.Replication, err = strconv.Atoi(s["dfs.replication"]); err != nil || c.Replication <= 0 {
			return c, fmt.Errorf("dfs.replication %q of the Hadoop configuration is no number of replicas", s["dfs.replication"])
		}
	}
	if c.BlockBytes == 0 {
		if c.BlockBytes, err = s.blockBytes(); err != nil {
			return c, err
		}
	}
	if c.Protection == "" {
		c.Protection = protection(s)
	}
	if c.SpoolDir == "" {
		c.SpoolDir = env("TMPDIR")
	}
	if c.SpoolDir == "" {
		c.SpoolDir = "/tmp"
	}
	if c.Kerberos, err = kerberos(v, s, env); err != nil {
		return c, err
	}
	return c, c.findUser(env)
}

func (c *Config) findUser(env func(string) string) error {
	if c.User == "" {
		c.User = env("HADOOP_USER_NAME")
	}
	if c.User == "" && !c.Kerberos.on() {
		u, err := user.Current()
		if err != nil {
			return fmt.Errorf("finding the user (option '%s' names one): %w", keyUser, err)
		}
		c.User = u.Username
	}
	return nil
}

// protection is the strongest one that the site names.
func protection(s site) string {
	if strings.EqualFold(s["dfs.encrypt.data.transfer"], "true") {
		return "privacy"
	}
	strongest := ""
	for _, p := range []string{"authentication", "integrity", "privacy"} {
		for have := range strings.SplitSeq(s["dfs.data.transfer.protection"], ",") {
			if strings.EqualFold(strings.TrimSpace(have), p) {
				strongest = p
			}
		}
	}
	return strongest
}
