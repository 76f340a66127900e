package hdfs

import (
	"errors"
	"fmt"
	"strings"

	krb "github.com/jcmturner/gokrb5/v8/client"
	krbconf "github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"

	"github.com/millrace/millrace/runtime/connector"
)

// Kerberos is how to log in; the zero value is no Kerberos. It is written to the
// library's interface and has not met a KDC.
type Kerberos struct {
	Principal, Keytab, Conf string
	// Service is the NameNodes' principal without its realm, as "nn/_HOST".
	Service string
}

func (k Kerberos) on() bool { return k.Principal != "" }

// kerberos reads the options, and refuses to go on without Kerberos where the
// site demands it.
func kerberos(v connector.Values, s site, env func(string) string) (Kerberos, error) {
	k := Kerberos{Principal: v.String(keyPrincipal), Keytab: v.String(keyKeytab), Conf: v.String(keyKrb5Conf), Service: v.String(keyService)}
	if !k.on() {
		if strings.EqualFold(s["hadoop.security.authentication"], "kerberos") {
			return k, &connector.OptionError{Key: keyPrincipal, Missing: true, Message: "the Hadoop configuration demands Kerberos; option '" + keyPrincipal + "' is missing"}
		}
		return k, nil
	}
	if k.Service == "" {
		k.Service, _, _ = strings.Cut(s["dfs.namenode.kerberos.principal"], "@")
	}
	if k.Service == "" {
		return k, &connector.OptionError{Key: keyService, Missing: true, Message: "Kerberos needs option '" + keyService + "', the NameNodes' principal"}
	}
	if k.Conf == "" {
		k.Conf = env("KRB5_CONFIG")
	}
	if k.Conf == "" {
		k.Conf = "/etc/krb5.conf"
	}
	return k, nil
}

// client makes the library's Kerberos client, which logs in by itself.
func (k Kerberos) client() (*krb.Client, error) {
	conf, err := krbconf.Load(k.Conf)
	if err != nil {
		return nil, fmt.Errorf("reading Kerberos configuration: %w", err)
	}
	tab, err := keytab.Load(k.Keytab)
	if err != nil {
		return nil, fmt.Errorf("reading keytab: %w", err)
	}
	name, realm, ok := strings.Cut(k.Principal, "@")
	if !ok {
		realm = conf.LibDefaults.DefaultRealm
	}
	return krb.NewWithKeytab(name, realm, tab, conf), nil
}

// validateKerberos refuses options of Kerberos that do nothing.
func validateKerberos(v connector.Values) error {
	if v.Has(keyPrincipal) != v.Has(keyKeytab) {
		return errors.New("'" + keyPrincipal + "' and '" + keyKeytab + "' go together")
	}
	for _, k := range []string{keyKrb5Conf, keyService} {
		if v.Has(k) && !v.Has(keyPrincipal) {
			return &connector.OptionError{Key: k, Message: "'" + k + "' has no effect without '" + keyPrincipal + "'"}
		}
	}
	return nil
}
