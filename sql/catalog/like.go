package catalog

import (
	"slices"

	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// likeRules says how each feature of LIKE's source is merged. Flink's
// default: everything is included, options are overwritten.
type likeRules map[syntax.LikeFeature]syntax.LikeMerge

var likeFeatures = []syntax.LikeFeature{syntax.LikeConstraints, syntax.LikeDistribution, syntax.LikeGenerated,
	syntax.LikeMetadata, syntax.LikeOptions, syntax.LikePartitions, syntax.LikeWatermarks}

func rulesOf(l *syntax.Like, diags *diag.List) likeRules {
	r := likeRules{}
	for _, f := range likeFeatures {
		r[f] = syntax.Including
	}
	r[syntax.LikeOptions] = syntax.Overwriting
	all := false
	for _, o := range l.Options {
		if o.Feature == syntax.LikeAll {
			if all {
				diags.Errorf(diag.CodeBadLike, o.Span(), "there are two rules for ALL")
				continue
			}
			all = true
			if o.Merge == syntax.Overwriting {
				diags.Errorf(diag.CodeBadLike, o.Span(), "OVERWRITING ALL is not allowed; name what is overwritten")
				continue
			}
			for _, f := range likeFeatures {
				r[f] = o.Merge
			}
		}
	}
	seen := map[syntax.LikeFeature]bool{}
	for _, o := range l.Options {
		if o.Feature != syntax.LikeAll {
			if seen[o.Feature] {
				diags.Errorf(diag.CodeBadLike, o.Span(), "there are two rules for the same part of the table")
				continue
			}
			seen[o.Feature] = true
			if o.Merge == syntax.Overwriting && (o.Feature == syntax.LikeConstraints || o.Feature == syntax.LikePartitions) {
				diags.Errorf(diag.CodeBadLike, o.Span(), "constraints and partitions can be INCLUDING or EXCLUDING only")
				continue
			}
			r[o.Feature] = o.Merge
		}
	}
	return r
}

// likeParts copies into t what CREATE TABLE ... LIKE takes from its source;
// the table's own parts come on top of it. false: there is no such source.
func (b *Builder) likeParts(t *Table, s *syntax.CreateTable) bool {
	if s.Like == nil {
		return true
	}
	name := s.Like.Source.Last().Name
	o, ok := b.Catalog.Lookup(name)
	if !ok {
		b.Diags.Errorf(diag.CodeUnknownTable, s.Like.Source.Span(), "table %q not found", name).
			WithNearest(name, b.Catalog.Names())
		return false
	}
	src, ok := o.(*Table)
	if !ok {
		if _, broken := o.(*Broken); !broken {
			b.Diags.Errorf(diag.CodeBadLike, s.Like.Source.Span(), "%q is a view; LIKE takes a table", name).
				WithNote(o.Declared(), "declared here")
		}
		return false
	}
	r := rulesOf(s.Like, b.Diags)
	for _, c := range src.Columns {
		if c.Kind == Computed && r[syntax.LikeGenerated] == syntax.Excluding ||
			c.Kind == Metadata && r[syntax.LikeMetadata] == syntax.Excluding {
			continue
		}
		c.Expr = bound(c.Expr, b.Loop)
		if !b.clashes(t, c, s, src) {
			t.Columns = append(t.Columns, c)
		}
	}
	if r[syntax.LikeConstraints] != syntax.Excluding {
		t.PrimaryKey = slices.Clone(src.PrimaryKey)
	}
	if r[syntax.LikePartitions] != syntax.Excluding {
		if s.Partitions != nil && len(src.PartitionKeys) > 0 {
			b.Diags.Errorf(diag.CodeBadLike, s.Partitions.Span(), "the table gets partitions from LIKE as well").
				WithHelp("add EXCLUDING PARTITIONS")
		}
		t.PartitionKeys = slices.Clone(src.PartitionKeys)
	}
	if r[syntax.LikeWatermarks] != syntax.Excluding {
		overwritten := r[syntax.LikeWatermarks] == syntax.Overwriting &&
			slices.ContainsFunc(s.Elements, func(e syntax.TableElement) bool { _, w := e.(*syntax.WatermarkDef); return w })
		if !overwritten {
			t.Watermark = src.Watermark
			if t.Watermark != nil {
				w := *t.Watermark
				w.Expr = bound(w.Expr, b.Loop)
				t.Watermark = &w
			}
		}
	}
	if r[syntax.LikeOptions] != syntax.Excluding {
		t.Options = slices.Clone(src.Options)
		for i, o := range t.Options {
			t.Options[i] = syntax.Substitute(o, b.Loop.Lookup)
		}
	}
	if t.Comment == "" {
		t.Comment = src.Comment
		if d := src.Declaration; d != nil && d.Comment != nil {
			t.Comment = syntax.Substitute(d.Comment, b.Loop.Lookup).Value
		}
	}
	return true
}

// mergeOptions lays own options over those of LIKE.
func mergeOptions(base, own []*syntax.Option, l *syntax.Like, diags *diag.List) []*syntax.Option {
	if l == nil {
		return own
	}
	merge := rulesOf(l, new(diag.List))[syntax.LikeOptions]
	out := slices.Clone(base)
	for _, o := range own {
		at := slices.IndexFunc(out, func(x *syntax.Option) bool { return x.Key.Value == o.Key.Value })
		switch {
		case at < 0:
			out = append(out, o)
		case merge == syntax.Including:
			diags.Errorf(diag.CodeDuplicateOption, o.Key.Span(), "option %q is set in the source of LIKE as well", o.Key.Value).
				WithNote(out[at].Key.Span(), "set here").
				WithHelp("write OVERWRITING OPTIONS")
		default:
			out[at] = o
		}
	}
	return out
}
