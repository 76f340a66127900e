package services

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/millrace/millrace/connectors/hive/metastore"
)

// MetastoreOptions say what a Hive Metastore is to be like.
type MetastoreOptions struct {
	// Dir holds its database (Derby), configuration and log.
	Dir string
	// Warehouse is the location of tables that name none: "file:///lake" or
	// "hdfs://host:port/lake". Empty: a directory in Dir.
	Warehouse string
	// DefaultFS is Hadoop's fs.defaultFS, "file:///" by default.
	DefaultFS string
	// Database is what it shares with other metastores; nil: it has one of its own.
	Database *Derby
	// Old starts version 2.3.9, which Spark 3.5 speaks to, in place of 4.0.1.
	Old bool
	// Authorizes: an old one allows what users have the rights for on directories.
	Authorizes bool
}

// Metastore is a Hive Metastore. Its address and data stay over Kill and Start.
type Metastore struct {
	*Process
	// Address is host:port, URI the same as thrift://host:port.
	Address, URI string
	// Warehouse is where tables that name no location lie.
	Warehouse string
}

//go:embed LoopbackMetastore.java
var loopbackMetastore string

// StartMetastore starts a metastore and waits until it answers.
func StartMetastore(ctx context.Context, o MetastoreOptions) (*Metastore, error) {
	java, err := JavaPath()
	if err != nil {
		return nil, err
	}
	ports, err := Ports(1)
	if err != nil {
		return nil, err
	}
	if o.Warehouse == "" {
		o.Warehouse = "file://" + filepath.Join(o.Dir, "warehouse")
	}
	if o.DefaultFS == "" {
		o.DefaultFS = "file:///"
	}
	m := &Metastore{Address: fmt.Sprintf("127.0.0.1:%d", ports[0]), Warehouse: o.Warehouse}
	m.URI = "thrift://" + m.Address
	conf, args := filepath.Join(o.Dir, "conf"), SmallJVM(384)
	args = append(args, "-Djava.net.preferIPv4Stack=true", "-Dderby.system.home="+o.Dir)
	url, driver := embedded(o.Dir)
	classes := conf
	if o.Database != nil {
		url, driver = o.Database.connection()
		classes += ":" + o.Database.jars + "/*"
	}
	properties := map[string]string{
		"javax.jdo.option.ConnectionURL":        url,
		"javax.jdo.option.ConnectionDriverName": driver,
		"datanucleus.schema.autoCreateAll":      "true",
	}
	port := strconv.Itoa(ports[0])
	if o.Old {
		var packages string
		if packages, err = SparkPackages(ctx); err != nil {
			return nil, err
		}
		launcher := filepath.Join(o.Dir, "LoopbackMetastore.java")
		if err := writeFiles(map[string]string{launcher: loopbackMetastore}); err != nil {
			return nil, err
		}
		properties["hive.metastore.schema.verification"] = "false"
		properties["hive.metastore.warehouse.dir"] = o.Warehouse
		properties["hive.async.log.enabled"] = "false"
		if o.Authorizes {
			const security = "org.apache.hadoop.hive.ql.security."
			properties["hive.metastore.pre.event.listeners"] = security + "authorization.AuthorizationPreEventListener"
			properties["hive.security.metastore.authorization.manager"] = security + "authorization.StorageBasedAuthorizationProvider"
			properties["hive.security.metastore.authenticator.manager"] = security + "HadoopDefaultMetastoreAuthenticator"
		}
		// What authorizes looks into a class of Java's own.
		args = append(args, "--add-opens=java.base/java.net=ALL-UNNAMED", "-cp", classes+":"+filepath.Join(packages, "pyspark", "jars")+"/*", launcher, port)
	} else {
		var jars string
		if jars, err = metastoreJars(ctx); err != nil {
			return nil, err
		}
		properties["metastore.schema.verification"] = "false"
		properties["metastore.thrift.bind.host"] = "127.0.0.1"
		properties["metastore.event.db.notification.api.auth"] = "false"
		if o.Database != nil {
			// Its own SQL fails over Derby's protocol, and then its transaction.
			properties["metastore.try.direct.sql"] = "false"
			properties["metastore.try.direct.sql.ddl"] = "false"
		}
		// An external table may not lie where managed ones do.
		properties["metastore.warehouse.dir"] = "file://" + filepath.Join(o.Dir, "managed")
		properties["metastore.warehouse.external.dir"] = o.Warehouse
		args = append(args, "-cp", classes+":"+jars+"/*", "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", port)
	}
	site := hadoopXML(properties)
	err = writeFiles(map[string]string{
		filepath.Join(conf, "core-site.xml"):      hadoopXML(map[string]string{"fs.defaultFS": o.DefaultFS}),
		filepath.Join(conf, "metastore-site.xml"): site,
		filepath.Join(conf, "hive-site.xml"):      site,
	})
	if err != nil {
		return nil, err
	}
	m.Process, err = Launch(ctx, Command{Name: "metastore", Dir: o.Dir, Path: java, Args: args, Ready: m.answers})
	return m, err
}

// answers is a real call: the port is open before the database is made.
func (m *Metastore) answers(ctx context.Context) error {
	c := metastore.New(metastore.Options{Addresses: []string{m.Address}})
	defer c.Close()
	_, err := c.Database(ctx, "default")
	return err
}

// metastoreJars is version 4.0.1 with the Hadoop that it needs.
func metastoreJars(ctx context.Context) (string, error) {
	const hadoop = "org.apache.hadoop"
	dir, err := Jars(ctx, "metastore",
		Jar{Group: "org.apache.hive", Artifact: "hive-standalone-metastore-server", Version: "4.0.1", Exclusions: []string{
			"jdk.tools:jdk.tools", hadoop + ":hadoop-common", hadoop + ":hadoop-auth", hadoop + ":hadoop-annotations", hadoop + ":hadoop-client-api",
			// Two backends of one logging front end; with this one it hung.
			"org.slf4j:slf4j-reload4j", "ch.qos.reload4j:reload4j"}},
		Jar{Group: hadoop, Artifact: "hadoop-common", Version: "3.4.1", Exclusions: []string{"org.slf4j:slf4j-reload4j", "ch.qos.reload4j:reload4j"}},
		Jar{Group: hadoop, Artifact: "hadoop-hdfs-client", Version: "3.4.1", Exclusions: []string{"org.slf4j:slf4j-reload4j", "ch.qos.reload4j:reload4j"}},
		Jar{Group: hadoop, Artifact: "hadoop-hdfs", Version: "3.4.1", Exclusions: []string{"org.slf4j:slf4j-reload4j", "ch.qos.reload4j:reload4j"}})
	return dir, err
}

// hadoopXML is a configuration file of Hadoop's kind.
func hadoopXML(properties map[string]string) string {
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\"?>\n<configuration>\n")
	for k, v := range properties {
		fmt.Fprintf(&b, "<property><name>%s</name><value>%s</value></property>\n", escape.Replace(k), escape.Replace(v))
	}
	b.WriteString("</configuration>\n")
	return b.String()
}

// writeFiles writes files by path, with their directories.
func writeFiles(files map[string]string) error {
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}
