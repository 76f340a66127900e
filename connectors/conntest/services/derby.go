package services

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
)

// derbyVersion is that of the metastore's own jars.
const derbyVersion = "10.14.2.0"

// Derby is a database server, which the metastores of one installation share.
type Derby struct {
	*Process
	port int
	jars string
}

// StartDerby starts a server whose data and log lie in dir.
func StartDerby(ctx context.Context, dir string) (*Derby, error) {
	java, err := JavaPath()
	if err != nil {
		return nil, err
	}
	d := &Derby{}
	d.jars, err = Jars(ctx, "derby",
		Jar{Group: "org.apache.derby", Artifact: "derbynet", Version: derbyVersion},
		Jar{Group: "org.apache.derby", Artifact: "derbyclient", Version: derbyVersion})
	if err != nil {
		return nil, err
	}
	ports, err := Ports(1)
	if err != nil {
		return nil, err
	}
	d.port = ports[0]
	args := append(SmallJVM(128), "-Dderby.system.home="+dir, "-cp", d.jars+"/*", "org.apache.derby.drda.NetworkServerControl",
		"start", "-h", "127.0.0.1", "-p", strconv.Itoa(d.port), "-noSecurityManager")
	d.Process, err = Launch(ctx, Command{Name: "derby", Dir: dir, Path: java, Args: args, Ready: AcceptsTCP(fmt.Sprintf("127.0.0.1:%d", d.port))})
	return d, err
}

// connection is how a metastore finds its database there.
func (d *Derby) connection() (url, driver string) {
	return fmt.Sprintf("jdbc:derby://127.0.0.1:%d/metastore;create=true", d.port), "org.apache.derby.jdbc.ClientDriver"
}

// embedded is a database of a metastore's own, in its directory.
func embedded(dir string) (url, driver string) {
	return "jdbc:derby:;databaseName=" + filepath.Join(dir, "db") + ";create=true", "org.apache.derby.jdbc.EmbeddedDriver"
}
