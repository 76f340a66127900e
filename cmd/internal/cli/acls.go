package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/storage/acl"
)

func aclsCommand(e *Env) *cobra.Command {
	var cf clusterFlags
	cmd := &cobra.Command{
		Use:   "acls",
		Short: "who may do what to topics, groups and the log itself",
		Long: `Access rules, as Kafka has them: they allow or deny an operation on a resource to a
principal, and hold where clients log in. A rule that denies wins over all that
allow; without one that allows, nothing is. Read, write, delete and alter imply
describe.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cf.add(cmd)
	cmd.AddCommand(aclsLs(e, &cf), aclsCreate(e, &cf), aclsRm(e, &cf))
	return cmd
}

// resourceFlags name resources.
type resourceFlags struct {
	topics, groups, transactions []string
	cluster                      bool
	pattern                      string
}

func (f *resourceFlags) add(cmd *cobra.Command, pattern, patterns string) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.topics, "topic", nil, "topic `NAME`, * for all; may be repeated")
	fl.StringArrayVar(&f.groups, "group", nil, "consumer group `NAME`, * for all; may be repeated")
	fl.StringArrayVar(&f.transactions, "transactional-id", nil, "transactional id `NAME`, * for all; may be repeated")
	fl.BoolVar(&f.cluster, "cluster", false, "the log itself")
	fl.StringVar(&f.pattern, "pattern", pattern, "names are `HOW`: "+patterns)
}

// list is one ACL for each resource, with type, name and pattern.
func (f *resourceFlags) list() []control.ACL {
	var out []control.ACL
	for _, kind := range []struct {
		t     acl.ResourceType
		names []string
	}{{acl.Topic, f.topics}, {acl.Group, f.groups}, {acl.TransactionalID, f.transactions}} {
		for _, name := range kind.names {
			out = append(out, control.ACL{Type: kind.t.String(), Name: name, Pattern: f.pattern})
		}
	}
	if f.cluster {
		out = append(out, control.ACL{Type: acl.Cluster.String(), Name: acl.ClusterName, Pattern: acl.Literal.String()})
	}
	return out
}

// filterFlags select rules.
type filterFlags struct {
	resourceFlags
	rule control.ACL
}

func (f *filterFlags) add(cmd *cobra.Command) {
	f.resourceFlags.add(cmd, "any", "any, literal, prefixed, or match for every rule that applies to them")
	fl := cmd.Flags()
	fl.StringVar(&f.rule.Principal, "principal", "", "only rules of `PRINCIPAL`: a user's name, or Kind:name")
	fl.StringVar(&f.rule.Host, "host", "", "only rules for `HOST`")
	fl.StringVar(&f.rule.Operation, "operation", "", "only rules about `OPERATION`")
	fl.StringVar(&f.rule.Permission, "permission", "", "only rules that `allow` or deny")
}

// filters are one for each resource, or one for all.
func (f *filterFlags) filters() ([]control.ACL, error) {
	list := f.list()
	if len(list) == 0 {
		list = []control.ACL{{}}
	}
	for i := range list {
		a := &list[i]
		a.Principal, a.Host, a.Operation, a.Permission = control.Principal(f.rule.Principal), f.rule.Host, f.rule.Operation, f.rule.Permission
		if _, err := a.Filter(); err != nil {
			return nil, usage("%v", err)
		}
	}
	return list, nil
}

func writeACLs(r *output.Rows, rules []control.ACL) error {
	for _, a := range rules {
		if err := r.Write(output.Text(a.Principal), output.Text(a.Permission), output.Text(a.Operation), output.Text(a.Type), output.Text(a.Name),
			output.Text(a.Pattern), output.Text(a.Host)); err != nil {
			return err
		}
	}
	return nil
}

func aclColumns() []string {
	return []string{"PRINCIPAL", "PERMISSION", "OPERATION", "TYPE", "NAME", "PATTERN", "HOST"}
}

func aclsLs(e *Env, cf *clusterFlags) *cobra.Command {
	var f filterFlags
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "list access rules",
		Example: "  millrace acls ls\n  millrace acls ls --topic clicks --pattern match",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filters, err := f.filters()
			if err != nil {
				return err
			}
			return e.withAccess(cmd, cf, func(ctx context.Context, a control.Access) error {
				rules := []control.ACL{}
				seen := map[control.ACL]bool{}
				for _, filter := range filters {
					found, err := a.ACLs(ctx, filter)
					if err != nil {
						return err
					}
					for _, x := range found {
						if !seen[x] {
							seen[x] = true
							rules = append(rules, x)
						}
					}
				}
				return e.result(cmd, output.Count(len(rules), "rule"), map[string]any{"acls": rules}, func(r *output.Rows) error { return writeACLs(r, rules) }, aclColumns()...)
			})
		},
	}
	f.add(cmd)
	return cmd
}

func aclsCreate(e *Env, cf *clusterFlags) *cobra.Command {
	var res resourceFlags
	var allow, deny, operations []string
	var host string
	cmd := &cobra.Command{
		Use:   "create (--allow USER | --deny USER) --operation OP RESOURCE...",
		Short: "add access rules",
		Long: `Adds a rule for each principal, operation and resource that is named. Operations:
  topic             read write create delete alter describe describe-configs alter-configs all
  group             read delete describe describe-configs alter-configs all
  transactional-id  write describe two-phase-commit all
  cluster           create alter describe cluster-action describe-configs alter-configs
                    idempotent-write all
A producer needs write on its topics (and on its transactional id), a consumer read
on its topics and its group.`,
		Example: `  millrace acls create --allow ann --operation write --topic clicks
  millrace acls create --allow bob --operation read --topic click --pattern prefixed --group report
  millrace acls create --deny '*' --operation delete --topic '*'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var rules []control.ACL
			for _, who := range []struct {
				names      []string
				permission acl.Permission
			}{{allow, acl.Allow}, {deny, acl.Deny}} {
				for _, name := range who.names {
					for _, op := range operations {
						for _, r := range res.list() {
							r.Principal, r.Host, r.Operation, r.Permission = control.Principal(name), host, op, who.permission.String()
							if _, err := r.Rule(); err != nil {
								return usage("%v", err)
							}
							rules = append(rules, r)
						}
					}
				}
			}
			switch {
			case len(allow)+len(deny) == 0:
				return usage("whom? say --allow USER or --deny USER")
			case len(operations) == 0:
				return usage("what? say --operation, such as --operation read")
			case len(rules) == 0:
				return usage("on what? say --topic, --group, --transactional-id or --cluster")
			}
			return e.withAccess(cmd, cf, func(ctx context.Context, a control.Access) error {
				if err := a.AddACLs(ctx, rules); err != nil {
					return err
				}
				return e.done(cmd, output.Count(len(rules), "rule")+" in force", map[string]any{"acls": rules})
			})
		},
	}
	res.add(cmd, "literal", "literal, or prefixed for all that begin so")
	fl := cmd.Flags()
	fl.StringArrayVar(&allow, "allow", nil, "allow it to `USER`, or to a Kind:name; * for everybody; may be repeated")
	fl.StringArrayVar(&deny, "deny", nil, "deny it to `USER`; may be repeated")
	fl.StringArrayVar(&operations, "operation", nil, "`OP`, see above; may be repeated")
	fl.StringVar(&host, "host", acl.Wildcard, "only from this IP `ADDRESS`")
	return cmd
}

func aclsRm(e *Env, cf *clusterFlags) *cobra.Command {
	var f filterFlags
	var yes, all bool
	cmd := &cobra.Command{
		Use:   "rm FILTER... --yes",
		Short: "remove access rules",
		Long: `Removes the rules that the flags select, as acls ls lists them, and prints them.
Without --yes it only lists them.`,
		Example: "  millrace acls rm --principal ann --topic clicks --yes",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filters, err := f.filters()
			if err != nil {
				return err
			}
			if len(filters) == 1 && filters[0] == (control.ACL{}) && !all {
				return usage("this would be every rule: say which, or --all")
			}
			return e.withAccess(cmd, cf, func(ctx context.Context, a control.Access) error {
				gone := []control.ACL{}
				for _, filter := range filters {
					do := a.ACLs
					if yes {
						do = a.RemoveACLs
					}
					found, err := do(ctx, filter)
					if err != nil {
						return err
					}
					gone = append(gone, found...)
				}
				summary := output.Count(len(gone), "rule") + " removed"
				if !yes {
					summary = output.Count(len(gone), "rule") + " would be removed"
					e.note("%s; say --yes", summary)
				}
				return e.result(cmd, summary, map[string]any{"acls": gone, "removed": yes}, func(r *output.Rows) error { return writeACLs(r, gone) }, aclColumns()...)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "yes, remove them")
	cmd.Flags().BoolVar(&all, "all", false, "every rule")
	return cmd
}
