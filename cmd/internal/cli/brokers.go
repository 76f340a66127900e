package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/connectors/kafka"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/storage/acl"
	"github.com/millrace/millrace/storage/authn"
	"github.com/millrace/millrace/storage/quota"
)

// clusterFlags point a verb at a Kafka cluster.
type clusterFlags struct{ brokers, config string }

// add puts the flags on a noun, for all of its verbs.
func (f *clusterFlags) add(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&f.brokers, "brokers", "", "ask the Kafka cluster at `HOST:PORT,...` in place of the data directory's owner")
	cmd.PersistentFlags().StringVar(&f.config, "command-config", "", "with --brokers: `FILE` of properties, such as security.protocol, sasl.mechanism, sasl.username")
}

// withAccess runs f with who keeps users, rules and quotas: the owner of the data
// directory, or a cluster.
func (e *Env) withAccess(cmd *cobra.Command, cf *clusterFlags, f func(context.Context, control.Access) error) error {
	if cf.brokers == "" {
		if cf.config != "" {
			return usage("--command-config goes with --brokers")
		}
		return e.withAPI(cmd, func(ctx context.Context, api control.API) error { return f(ctx, api) })
	}
	props, err := readProperties(cf.config)
	if err != nil {
		return err
	}
	admin, err := kafka.NewAdmin(cf.brokers, props)
	var option *connector.OptionError
	if errors.As(err, &option) {
		err = fmt.Errorf("%s: %w", cmp.Or(cf.config, "--brokers"), err)
		if near, ok := diag.Nearest(option.Key, clusterKeys()); ok && option.Unknown {
			err = fmt.Errorf("%w; did you mean %q?", err, near)
		}
	}
	if err != nil {
		return exitcode.With(exitcode.Input, err)
	}
	defer admin.Close()
	err = f(cmd.Context(), cluster{admin})
	var failed *kafka.Error
	switch {
	case errors.Is(err, kafka.ErrNoUser):
		return exitcode.With(exitcode.Input, err)
	case kafka.Refused(err):
		return exitcode.With(exitcode.Failed, err)
	case errors.As(err, &failed):
		return exitcode.With(exitcode.Environment, err)
	}
	return err
}

// clusterKeys are the properties of who asks a cluster.
func clusterKeys() []string {
	return []string{"security.protocol", "sasl.mechanism", "sasl.jaas.config", "sasl.username", "sasl.password", "ssl.truststore.type",
		"ssl.truststore.location", "ssl.truststore.certificates", "ssl.endpoint.identification.algorithm", "client.id"}
}

// readProperties reads KEY=VALUE lines; those that begin with # are comments.
// Errors name lines and keys, never values: they may be passwords.
func readProperties(file string) (map[string]string, error) {
	props := map[string]string{}
	if file == "" {
		return props, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, exitcode.With(exitcode.Input, err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for line := 1; s.Scan(); line++ {
		text := strings.TrimSpace(s.Text())
		if text == "" || strings.HasPrefix(text, "#") || strings.HasPrefix(text, "!") {
			continue
		}
		k, v, ok := strings.Cut(text, "=")
		if k = strings.TrimSpace(k); !ok || k == "" {
			return nil, usage("%s:%d: write KEY=VALUE", file, line)
		}
		if _, twice := props[k]; twice {
			return nil, usage("%s:%d: %s is given twice", file, line, k)
		}
		props[k] = strings.TrimSpace(v)
	}
	return props, exitcode.With(exitcode.Input, s.Err())
}

// cluster is a Kafka cluster as control.Access.
type cluster struct{ admin *kafka.Admin }

// Users implements control.Access.
func (c cluster) Users(ctx context.Context) ([]control.User, error) {
	users, err := c.admin.Users(ctx)
	if err != nil {
		return nil, err
	}
	out := []control.User{}
	for _, u := range users {
		cu := control.User{Name: u.Name, Mechanisms: []control.UserMechanism{}}
		for _, m := range authn.Mechanisms() {
			if n, ok := u.Mechanisms[m]; ok {
				cu.Mechanisms = append(cu.Mechanisms, control.UserMechanism{Mechanism: m.String(), Iterations: n})
			}
		}
		out = append(out, cu)
	}
	return out, nil
}

// user finds one.
func (c cluster) user(ctx context.Context, name string) (control.User, bool, error) {
	users, err := c.Users(ctx)
	if err != nil {
		return control.User{}, false, err
	}
	for _, u := range users {
		if u.Name == name {
			return u, true, nil
		}
	}
	return control.User{}, false, nil
}

// mechanisms reads names of SCRAM mechanisms.
func mechanisms(names []string) ([]authn.Mechanism, error) {
	var out []authn.Mechanism
	for _, name := range names {
		m, err := authn.ParseMechanism(name)
		if err != nil {
			return nil, usage("%v", err)
		}
		if m == authn.Plain {
			return nil, usage("a Kafka cluster has no command for users of PLAIN: they are in its brokers' configuration")
		}
		out = append(out, m)
	}
	return out, nil
}

func namesOf(u control.User) []string {
	var names []string
	for _, m := range u.Mechanisms {
		names = append(names, m.Mechanism)
	}
	return names
}

// SetUser implements control.Access.
func (c cluster) SetUser(ctx context.Context, req control.SetUser) (control.User, error) {
	u, there, err := c.user(ctx, req.Name)
	switch {
	case err != nil:
		return u, err
	case req.New && there:
		return u, usage("user %s is there already; users alter sets its password", req.Name)
	case !req.New && !there:
		return u, fmt.Errorf("%w: %s", kafka.ErrNoUser, req.Name)
	case len(req.Mechanisms) == 0:
		req.Mechanisms = namesOf(u)
	}
	ms, err := mechanisms(req.Mechanisms)
	if err != nil {
		return u, err
	}
	if err := c.admin.SetUser(ctx, req.Name, string(req.Password), ms, cmp.Or(req.Iterations, authn.DefaultIterations)); err != nil {
		return u, err
	}
	u, _, err = c.user(ctx, req.Name)
	return u, err
}

// RemoveUser implements control.Access.
func (c cluster) RemoveUser(ctx context.Context, req control.RemoveUser) error {
	names := []string{req.Mechanism}
	if req.Mechanism == "" {
		u, there, err := c.user(ctx, req.Name)
		if err != nil {
			return err
		}
		if !there {
			return fmt.Errorf("%w: %s", kafka.ErrNoUser, req.Name)
		}
		names = namesOf(u)
	}
	ms, err := mechanisms(names)
	if err != nil {
		return err
	}
	return c.admin.RemoveUser(ctx, req.Name, ms)
}

func aclsOf(rules []acl.Rule) []control.ACL {
	out := []control.ACL{}
	for _, r := range rules {
		out = append(out, control.ACLOf(r))
	}
	return out
}

// ACLs implements control.Access.
func (c cluster) ACLs(ctx context.Context, filter control.ACL) ([]control.ACL, error) {
	f, err := filter.Filter()
	if err != nil {
		return nil, exitcode.With(exitcode.Input, err)
	}
	rules, err := c.admin.Rules(ctx, f)
	return aclsOf(rules), err
}

// AddACLs implements control.Access.
func (c cluster) AddACLs(ctx context.Context, rules []control.ACL) error {
	list := make([]acl.Rule, len(rules))
	for i, r := range rules {
		var err error
		if list[i], err = r.Rule(); err != nil {
			return exitcode.With(exitcode.Input, err)
		}
	}
	return c.admin.AddRules(ctx, list)
}

// RemoveACLs implements control.Access.
func (c cluster) RemoveACLs(ctx context.Context, filter control.ACL) ([]control.ACL, error) {
	f, err := filter.Filter()
	if err != nil {
		return nil, exitcode.With(exitcode.Input, err)
	}
	rules, err := c.admin.RemoveRules(ctx, f)
	return aclsOf(rules), err
}

// Quotas implements control.Access.
func (c cluster) Quotas(ctx context.Context) ([]control.Quota, error) {
	quotas, err := c.admin.Quotas(ctx)
	out := []control.Quota{}
	for _, q := range quotas {
		out = append(out, control.Quota{Entity: control.Entity(q.Entity), Limits: q.Limits})
	}
	return out, err
}

// SetQuota implements control.Access.
func (c cluster) SetQuota(ctx context.Context, req control.SetQuota) error {
	return c.admin.SetQuota(ctx, quota.Entity(req.Entity), req.Set)
}
