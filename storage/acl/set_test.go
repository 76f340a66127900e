package acl

import "testing"

func rule(perm Permission, principal string, op Operation, t ResourceType, p Pattern, name string) Rule {
	return Rule{Type: t, Name: name, Pattern: p, Principal: principal, Host: Wildcard, Operation: op, Permission: perm}
}

// TestRuled: a rule is on a resource whoever and whatever it is about.
func TestRuled(t *testing.T) {
	s := NewSet([]Rule{rule(Allow, "User:ann", Read, Topic, Literal, "a"), rule(Deny, "User:bob", Write, Topic, Prefixed, "lo"), rule(Allow, "User:ann", Read, Group, Literal, "*")})
	for _, c := range []struct {
		typ  ResourceType
		name string
		want bool
	}{{Topic, "a", true}, {Topic, "b", false}, {Topic, "lo", true}, {Topic, "log", true}, {Topic, "l", false}, {Group, "any", true}, {TransactionalID, "a", false}} {
		if got := s.Ruled(c.typ, c.name); got != c.want {
			t.Errorf("%v %s: %v, want %v", c.typ, c.name, got, c.want)
		}
	}
	if s.RuledAll(Topic) || !s.RuledAll(Group) {
		t.Error("rules on all resources: want those of groups, and none of topics")
	}
}

// TestAllowed follows Kafka's documentation of its authorizer.
func TestAllowed(t *testing.T) {
	const ann = "User:ann"
	onHost := rule(Allow, ann, Read, Topic, Literal, "t")
	onHost.Host = "10.0.0.1"
	for name, c := range map[string]struct {
		rules []Rule
		op    Operation
		typ   ResourceType
		on    string
		want  bool
	}{
		"nothing said":                        {nil, Read, Topic, "t", false},
		"literal":                             {[]Rule{rule(Allow, ann, Read, Topic, Literal, "t")}, Read, Topic, "t", true},
		"another name":                        {[]Rule{rule(Allow, ann, Read, Topic, Literal, "t")}, Read, Topic, "t2", false},
		"another type":                        {[]Rule{rule(Allow, ann, Read, Topic, Literal, "t")}, Read, Group, "t", false},
		"another operation":                   {[]Rule{rule(Allow, ann, Read, Topic, Literal, "t")}, Write, Topic, "t", false},
		"another principal":                   {[]Rule{rule(Allow, "User:bob", Read, Topic, Literal, "t")}, Read, Topic, "t", false},
		"a principal's prefix":                {[]Rule{rule(Allow, "User:an", Read, Topic, Literal, "t")}, Read, Topic, "t", false},
		"every user":                          {[]Rule{rule(Allow, Everyone, Read, Topic, Literal, "t")}, Read, Topic, "t", true},
		"wildcard name":                       {[]Rule{rule(Allow, ann, Read, Topic, Literal, "*")}, Read, Topic, "t", true},
		"prefixed":                            {[]Rule{rule(Allow, ann, Read, Topic, Prefixed, "fo")}, Read, Topic, "foo", true},
		"prefix is the name":                  {[]Rule{rule(Allow, ann, Read, Topic, Prefixed, "foo")}, Read, Topic, "foo", true},
		"prefix longer than the name":         {[]Rule{rule(Allow, ann, Read, Topic, Prefixed, "fooo")}, Read, Topic, "foo", false},
		"a prefixed star is a star":           {[]Rule{rule(Allow, ann, Read, Topic, Prefixed, "*")}, Read, Topic, "foo", false},
		"all operations":                      {[]Rule{rule(Allow, ann, All, Topic, Literal, "t")}, AlterConfigs, Topic, "t", true},
		"read implies describe":               {[]Rule{rule(Allow, ann, Read, Topic, Literal, "t")}, Describe, Topic, "t", true},
		"write implies describe":              {[]Rule{rule(Allow, ann, Write, Topic, Literal, "t")}, Describe, Topic, "t", true},
		"delete implies describe":             {[]Rule{rule(Allow, ann, Delete, Topic, Literal, "t")}, Describe, Topic, "t", true},
		"alter implies describe":              {[]Rule{rule(Allow, ann, Alter, Topic, Literal, "t")}, Describe, Topic, "t", true},
		"create does not imply describe":      {[]Rule{rule(Allow, ann, Create, Topic, Literal, "t")}, Describe, Topic, "t", false},
		"alter-configs implies its describe":  {[]Rule{rule(Allow, ann, AlterConfigs, Topic, Literal, "t")}, DescribeConfigs, Topic, "t", true},
		"alter-configs implies no describe":   {[]Rule{rule(Allow, ann, AlterConfigs, Topic, Literal, "t")}, Describe, Topic, "t", false},
		"describe implies nothing":            {[]Rule{rule(Allow, ann, Describe, Topic, Literal, "t")}, Read, Topic, "t", false},
		"deny beats allow":                    {[]Rule{rule(Allow, ann, Read, Topic, Literal, "t"), rule(Deny, ann, Read, Topic, Literal, "t")}, Read, Topic, "t", false},
		"deny beats allow in the other order": {[]Rule{rule(Deny, ann, Read, Topic, Literal, "t"), rule(Allow, ann, Read, Topic, Literal, "t")}, Read, Topic, "t", false},
		"a wide deny beats a narrow allow":    {[]Rule{rule(Allow, ann, Read, Topic, Literal, "t"), rule(Deny, Everyone, All, Topic, Literal, "*")}, Read, Topic, "t", false},
		"a prefixed deny":                     {[]Rule{rule(Allow, ann, Read, Topic, Literal, "*"), rule(Deny, ann, Read, Topic, Prefixed, "t")}, Read, Topic, "tt", false},
		"deny all":                            {[]Rule{rule(Allow, ann, Read, Topic, Literal, "t"), rule(Deny, ann, All, Topic, Literal, "t")}, Read, Topic, "t", false},
		"deny read leaves describe":           {[]Rule{rule(Allow, ann, Write, Topic, Literal, "t"), rule(Deny, ann, Read, Topic, Literal, "t")}, Describe, Topic, "t", true},
		"deny describe beats implied":         {[]Rule{rule(Allow, ann, Read, Topic, Literal, "t"), rule(Deny, ann, Describe, Topic, Literal, "t")}, Describe, Topic, "t", false},
		"deny describe leaves read":           {[]Rule{rule(Allow, ann, Read, Topic, Literal, "t"), rule(Deny, ann, Describe, Topic, Literal, "t")}, Read, Topic, "t", true},
		"another's deny":                      {[]Rule{rule(Allow, ann, Read, Topic, Literal, "t"), rule(Deny, "User:bob", Read, Topic, Literal, "t")}, Read, Topic, "t", true},
		"another host":                        {[]Rule{onHost}, Read, Topic, "t", false},
	} {
		if got := NewSet(c.rules).Allowed(ann, "10.0.0.9", c.op, c.typ, c.on); got != c.want {
			t.Errorf("%s: allowed %v, want %v", name, got, c.want)
		}
	}
	if !NewSet([]Rule{onHost}).Allowed(ann, "10.0.0.1", Read, Topic, "t") {
		t.Error("a rule for a host does not apply there")
	}
}

func TestAllowedAny(t *testing.T) {
	const ann = "User:ann"
	allow := func(p Pattern, name string) Rule { return rule(Allow, ann, Write, Topic, p, name) }
	deny := func(p Pattern, name string) Rule { return rule(Deny, ann, Write, Topic, p, name) }
	for name, c := range map[string]struct {
		rules []Rule
		want  bool
	}{
		"nothing":                          {nil, false},
		"one topic":                        {[]Rule{allow(Literal, "t")}, true},
		"read alone":                       {[]Rule{rule(Allow, ann, Read, Topic, Literal, "t")}, false},
		"that topic denied":                {[]Rule{allow(Literal, "t"), deny(Literal, "t")}, false},
		"another denied":                   {[]Rule{allow(Literal, "t"), deny(Literal, "u")}, true},
		"its prefix denied":                {[]Rule{allow(Literal, "topic"), deny(Prefixed, "to")}, false},
		"all denied":                       {[]Rule{allow(Prefixed, "t"), deny(Literal, "*")}, false},
		"a prefix with one of it denied":   {[]Rule{allow(Prefixed, "t"), deny(Literal, "t")}, true},
		"a prefix under a denied one":      {[]Rule{allow(Prefixed, "topic-"), deny(Prefixed, "topic")}, false},
		"all with a prefix denied":         {[]Rule{allow(Literal, "*"), deny(Prefixed, "t")}, true},
		"a second one that is not covered": {[]Rule{allow(Literal, "t"), deny(Literal, "t"), allow(Literal, "u")}, true},
	} {
		if got := NewSet(c.rules).AllowedAny(ann, "h", Write, Topic); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestOperations(t *testing.T) {
	s := NewSet([]Rule{rule(Allow, "User:ann", Read, Topic, Literal, "t")})
	if got, want := s.Operations("User:ann", "h", Topic, "t"), int32(1<<Read|1<<Describe); got != want {
		t.Errorf("operations %b, want %b", got, want)
	}
	// What Kafka answers for a topic to a super user: 3 4 5 6 7 8 10 11.
	if got := AllOperations(Topic); got != 0b110111111000 {
		t.Errorf("all operations on a topic %b", got)
	}
}

func TestFilter(t *testing.T) {
	r := rule(Allow, "User:ann", Read, Topic, Prefixed, "fo")
	star := rule(Allow, "User:ann", Read, Topic, Literal, "*")
	lit := rule(Deny, "User:bob", Write, Topic, Literal, "foo")
	name := func(s string) *string { return &s }
	all := Filter{Type: AnyType, Pattern: AnyPattern, Operation: AnyOperation, Permission: AnyPermission}
	with := func(f func(*Filter)) Filter { c := all; f(&c); return c }
	for i, c := range []struct {
		f    Filter
		want [3]bool
	}{
		{all, [3]bool{true, true, true}},
		{with(func(f *Filter) { f.Name, f.Pattern = name("foo"), Match }), [3]bool{true, true, true}},
		{with(func(f *Filter) { f.Name, f.Pattern = name("bar"), Match }), [3]bool{false, true, false}},
		{with(func(f *Filter) { f.Name, f.Pattern = name("foo"), Literal }), [3]bool{false, false, true}},
		{with(func(f *Filter) { f.Name = name("fo") }), [3]bool{true, false, false}},
		{with(func(f *Filter) { f.Pattern = Prefixed }), [3]bool{true, false, false}},
		{with(func(f *Filter) { f.Principal = name("User:bob") }), [3]bool{false, false, true}},
		{with(func(f *Filter) { f.Operation = Read }), [3]bool{true, true, false}},
		{with(func(f *Filter) { f.Permission = Deny }), [3]bool{false, false, true}},
		{with(func(f *Filter) { f.Type = Group }), [3]bool{false, false, false}},
	} {
		for j, x := range []Rule{r, star, lit} {
			if got := c.f.Matches(&x); got != c.want[j] {
				t.Errorf("filter %d, rule %d: %v, want %v", i, j, got, c.want[j])
			}
		}
	}
}

func TestValidate(t *testing.T) {
	good := rule(Allow, "User:ann", Read, Topic, Literal, "t")
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Rule){
		"any type": func(r *Rule) { r.Type = AnyType }, "any pattern": func(r *Rule) { r.Pattern = AnyPattern },
		"match": func(r *Rule) { r.Pattern = Match }, "no name": func(r *Rule) { r.Name = "" },
		"a cluster of another name": func(r *Rule) { r.Type, r.Operation = Cluster, Alter },
		"no kind":                   func(r *Rule) { r.Principal = "ann" }, "no host": func(r *Rule) { r.Host = "" },
		"an operation of another type": func(r *Rule) { r.Operation = ClusterAction }, "any permission": func(r *Rule) { r.Permission = AnyPermission },
		"any operation": func(r *Rule) { r.Operation = AnyOperation }, "from the future": func(r *Rule) { r.Operation = 99 },
	} {
		r := good
		change(&r)
		if r.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
