package hdfs

import (
	"testing"
	"time"

	"github.com/millrace/millrace/storage/vfs"
)

// TestStandbyOptions: the table at its second home has the options of the first but
// for what names the place.
func TestStandbyOptions(t *testing.T) {
	s := NewScheme(vfs.NewMem(), func(string) string { return "" })
	v := values(t, map[string]string{"path": "hdfs://one/t", keyNameNodes: "a:1;b:1", keyUser: "u", keyStandby: "hdfs://two/t", keyStandbySwitch: "auto", keyStandbyAfter: "7 s"})
	if err := s.Validate(v); err != nil {
		t.Fatal(err)
	}
	p, ok := s.Standby(v)
	if !ok || !p.Auto || p.After != 7*time.Second || p.Option != keyStandby {
		t.Fatalf("the rule is %+v", p)
	}
	if o := p.Options; o.String("path") != "hdfs://two/t" || o.String(keyUser) != "u" || o.Has(keyNameNodes) || o.Has(keyStandby) || o.Has(keyStandbySwitch) {
		t.Errorf("options of the second home: path %s, %v", o.String("path"), o.Family("hdfs."))
	}
	if _, again := s.Standby(p.Options); again {
		t.Error("the second home has a second home")
	}
	if v.String("path") != "hdfs://one/t" || !v.Has(keyNameNodes) {
		t.Error("the options of the first home have changed")
	}
	for _, wrong := range []map[string]string{
		{"path": "hdfs://one/t", keyStandbySwitch: "auto"},
		{"path": "hdfs://one/t", keyStandby: "hdfs://one/t"},
		{"path": "hdfs://one/t", keyStandby: "hdfs://two/t", keyStandbyAfter: "7 s"},
	} {
		if s.Validate(values(t, wrong)) == nil {
			t.Errorf("%v is taken", wrong)
		}
	}
}
