package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/storage/quota"
)

func quotasCommand(e *Env) *cobra.Command {
	var cf clusterFlags
	cmd := &cobra.Command{
		Use:   "quotas",
		Short: "limits of what Kafka clients take",
		Long: `Limits of users and client ids, as Kafka has them:
  producer_byte_rate   bytes a second that are written
  consumer_byte_rate   bytes a second that are read
  request_percentage   time of the server's threads, in percent of one
The most specific one holds: a user's client id, a user, a client id, and each before
its default. All clients that it is about share it. Who takes more is made to wait.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cf.add(cmd)
	cmd.AddCommand(quotasLs(e, &cf), quotasAlter(e, &cf), quotasRm(e, &cf))
	return cmd
}

func entityPart(p quota.Part) string {
	switch {
	case p.Default:
		return "(default)"
	case p.Set:
		return p.Name
	}
	return ""
}

func quotasLs(e *Env, cf *clusterFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "list limits",
		Example: "  millrace quotas ls",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withAccess(cmd, cf, func(ctx context.Context, a control.Access) error {
				quotas, err := a.Quotas(ctx)
				if err != nil {
					return err
				}
				return e.result(cmd, output.Count(len(quotas), "quota"), map[string]any{"quotas": quotas}, func(r *output.Rows) error {
					for _, q := range quotas {
						for _, k := range slices.Sorted(maps.Keys(q.Limits)) {
							if err := r.Write(output.Text(entityPart(q.Entity.User)), output.Text(entityPart(q.Entity.Client)), output.Text(k),
								output.Text(strconv.FormatFloat(q.Limits[k], 'f', -1, 64))); err != nil {
								return err
							}
						}
					}
					return nil
				}, "USER", "CLIENT ID", "LIMIT", "VALUE")
			})
		},
	}
}

// entityFlags name whom a quota is about.
type entityFlags struct {
	user, client               string
	defaultUser, defaultClient bool
}

func (f *entityFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.user, "user", "", "of user `NAME`")
	fl.BoolVar(&f.defaultUser, "default-user", false, "of each user without one of its own")
	fl.StringVar(&f.client, "client-id", "", "of clients that call themselves `ID`")
	fl.BoolVar(&f.defaultClient, "default-client-id", false, "of each client id without one of its own")
}

func (f *entityFlags) entity() (control.Entity, error) {
	var out control.Entity
	for _, p := range []struct {
		flag  string
		name  string
		isDef bool
		to    *quota.Part
	}{{"user", f.user, f.defaultUser, &out.User}, {"client-id", f.client, f.defaultClient, &out.Client}} {
		switch {
		case p.name != "" && p.isDef:
			return out, usage("--%s and --default-%s exclude each other", p.flag, p.flag)
		case p.name != "":
			*p.to = quota.Named(p.name)
		case p.isDef:
			*p.to = quota.Default()
		}
	}
	if out == (control.Entity{}) {
		return out, usage("whose? say --user, --client-id, --default-user or --default-client-id")
	}
	return out, nil
}

func quotasAlter(e *Env, cf *clusterFlags) *cobra.Command {
	var f entityFlags
	var set, unset []string
	cmd := &cobra.Command{
		Use:   "alter (--user NAME | --client-id ID) --set KEY=VALUE",
		Short: "set and remove limits",
		Example: `  millrace quotas alter --user ann --set producer_byte_rate=1048576
  millrace quotas alter --default-client-id --set consumer_byte_rate=10485760 --unset request_percentage`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			entity, err := f.entity()
			if err != nil {
				return err
			}
			given, err := pairs("--set", set)
			if err != nil {
				return err
			}
			req := control.SetQuota{Entity: entity, Set: map[string]float64{}}
			for k, text := range given {
				v, err := strconv.ParseFloat(text, 64)
				if err != nil {
					return usage("--set %s=%s: want a number", k, text)
				}
				kind, err := quota.ParseKind(k)
				if err == nil {
					err = quota.CheckLimit(kind, v)
				} else if cf.brokers != "" {
					err = nil // a cluster may have limits that we do not
				}
				if err != nil {
					return usage("--set: %v", err)
				}
				req.Set[k] = v
			}
			for _, k := range unset {
				if _, both := req.Set[k]; both {
					return usage("--set and --unset %s exclude each other", k)
				}
				if _, err := quota.ParseKind(k); err != nil && cf.brokers == "" {
					return usage("--unset: %v", err)
				}
				req.Set[k] = 0
			}
			if len(req.Set) == 0 {
				return usage("what? say --set KEY=VALUE or --unset KEY")
			}
			return e.withAccess(cmd, cf, func(ctx context.Context, a control.Access) error {
				if err := a.SetQuota(ctx, req); err != nil {
					return err
				}
				return e.done(cmd, fmt.Sprintf("%s of %s changed", output.Count(len(req.Set), "limit"), entity), req)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringArrayVar(&set, "set", nil, "set a limit, `KEY=VALUE`; may be repeated")
	cmd.Flags().StringArrayVar(&unset, "unset", nil, "remove limit `KEY`; may be repeated")
	return cmd
}

func quotasRm(e *Env, cf *clusterFlags) *cobra.Command {
	var f entityFlags
	cmd := &cobra.Command{
		Use:     "rm (--user NAME | --client-id ID)",
		Short:   "remove all limits of a user or a client id",
		Example: "  millrace quotas rm --user ann",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			entity, err := f.entity()
			if err != nil {
				return err
			}
			return e.withAccess(cmd, cf, func(ctx context.Context, a control.Access) error {
				quotas, err := a.Quotas(ctx)
				if err != nil {
					return err
				}
				req := control.SetQuota{Entity: entity, Set: map[string]float64{}}
				for _, q := range quotas {
					if q.Entity == entity {
						for k := range q.Limits {
							req.Set[k] = 0
						}
					}
				}
				if len(req.Set) == 0 {
					return usage("%s has no limits", entity)
				}
				if err := a.SetQuota(ctx, req); err != nil {
					return err
				}
				return e.done(cmd, "the limits of "+entity.String()+" are removed", map[string]any{"entity": entity})
			})
		},
	}
	f.add(cmd)
	return cmd
}
