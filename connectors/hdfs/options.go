package hdfs

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
)

// Option keys.
const (
	keyNameNodes   = "hdfs.namenodes"
	keyConfDir     = "hdfs.config-dir"
	keyUser        = "hdfs.user"
	keyReplication = "hdfs.replication"
	keyBlock       = "hdfs.block-size"
	keyRPC         = "hdfs.rpc-timeout"
	keyRetry       = "hdfs.retry-timeout"
	keyTransfers   = "hdfs.transfers"
	keySpool       = "hdfs.spool-directory"
	keyHostname    = "hdfs.use-datanode-hostname"
	keyPrincipal   = "hdfs.kerberos.principal"
	keyKeytab      = "hdfs.kerberos.keytab"
	keyKrb5Conf    = "hdfs.kerberos.krb5-conf"
	keyService     = "hdfs.kerberos.service-principal"
	keyProtection  = "hdfs.data-transfer-protection"
)

const defaultPort = "8020"

func options() []connector.Option {
	return append(clusterOptions(), standbyOptions()...)
}

func clusterOptions() []connector.Option {
	unproved := " Written, not proved: there is no KDC among the tests' servers."
	return []connector.Option{
		{Key: keyNameNodes, Type: connector.OptList, Check: checkNameNodes,
			Doc: "The NameNodes behind the name in `path`, as `nn1:8020;nn2:8020`. Unset: those of the Hadoop configuration; if that does not know the name, it is the NameNode's host."},
		{Key: keyConfDir, Type: connector.OptString,
			Doc: "Directory of core-site.xml and hdfs-site.xml. Unset: `$HADOOP_CONF_DIR`, else `$HADOOP_HOME/etc/hadoop`, else none."},
		{Key: keyUser, Type: connector.OptString, Doc: "The user in HDFS. Unset: `$HADOOP_USER_NAME`, else the process's user."},
		{Key: keyReplication, Type: connector.OptInt, Min: 1, Max: 512, Doc: "Replicas of new files. Unset: dfs.replication of the Hadoop configuration, else the NameNode's default."},
		{Key: keyBlock, Type: connector.OptBytes, Check: checkBlock, Doc: "Block size of new files, a multiple of 512 bytes. Unset: dfs.blocksize of the Hadoop configuration, else the NameNode's default."},
		{Key: keyRPC, Type: connector.OptDuration, Default: "30 s", Check: notZero, Doc: "How long a NameNode or DataNode may say nothing before the connection is given up."},
		{Key: keyRetry, Type: connector.OptDuration, Default: "1 min", Doc: "How long an operation is tried again while HDFS does not serve it (failover, restart, safe mode, lost DataNode) before the lane's attempt ends and a new one begins."},
		{Key: keyTransfers, Type: connector.OptInt, Default: "4", Min: 1, Max: 64, Doc: "Files that are sent at the same time, for each cluster and user."},
		{Key: keySpool, Type: connector.OptString, Doc: "Local directory where open files lie until they are sealed and sent. Unset: `$TMPDIR`, else `/tmp`. Nothing in it must survive."},
		{Key: keyHostname, Type: connector.OptBool, Doc: "Connect to DataNodes by name instead of address. Unset: dfs.client.use.datanode.hostname of the Hadoop configuration."},
		{Key: keyPrincipal, Type: connector.OptString, Doc: "Kerberos principal, `user@REALM`." + unproved},
		{Key: keyKeytab, Type: connector.OptString, Doc: "Its keytab file." + unproved},
		{Key: keyKrb5Conf, Type: connector.OptString, Doc: "Kerberos configuration. Unset: `$KRB5_CONFIG`, else `/etc/krb5.conf`." + unproved},
		{Key: keyService, Type: connector.OptString, Doc: "The NameNodes' principal, as `nn/_HOST`. Unset: dfs.namenode.kerberos.principal of the Hadoop configuration." + unproved},
		{Key: keyProtection, Type: connector.OptEnum, Enum: []string{"authentication", "integrity", "privacy"},
			Doc: "SASL protection of the data transfer. Unset: dfs.data.transfer.protection of the Hadoop configuration." + unproved},
	}
}

func checkNameNodes(s string) error {
	for a := range strings.SplitSeq(s, ";") {
		if _, _, err := net.SplitHostPort(strings.TrimSpace(a)); err != nil {
			return fmt.Errorf("%q is not of the form host:port", strings.TrimSpace(a))
		}
	}
	return nil
}

func checkBlock(s string) error {
	n, err := connector.ParseBytes(s)
	if err == nil && (n <= 0 || n%512 != 0) {
		err = fmt.Errorf("a block of %d bytes is no multiple of 512, the length that a checksum covers", n)
	}
	return err
}

func notZero(s string) error {
	d, err := connector.ParseDuration(s)
	if err == nil && d <= 0 {
		err = errors.New("the time must be longer than 0")
	}
	return err
}

// splitURL takes "hdfs://authority/dir" apart.
func splitURL(s string) (authority, dir string, err error) {
	u, err := url.Parse(s)
	if err != nil {
		// Directory names may hold what URLs escape.
		rest, ok := strings.CutPrefix(s, "hdfs://")
		if !ok {
			return "", "", err
		}
		authority, dir, _ = strings.Cut(rest, "/")
		dir = "/" + dir
	} else {
		authority = u.Host
		// As written: '%' is part of names, as in Hive's table partitions.
		_, dir, _ = strings.Cut(strings.TrimPrefix(s, "hdfs://"), "/")
		dir = "/" + dir
		if u.User != nil {
			return "", "", fmt.Errorf("a user goes into option '%s', not into the path", keyUser)
		}
	}
	if dir == "/" {
		return "", "", errors.New("the path names no directory: hdfs://host:8020/dir")
	}
	return authority, dir, nil
}
