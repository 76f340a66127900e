package hdfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/colinmarc/hdfs/v2"

	"github.com/millrace/millrace/runtime/connector"
)

// Option keys of a table's second home.
const (
	keyStandby          = "hdfs.standby"
	keyStandbyNameNodes = "hdfs.standby.namenodes"
	keyStandbySwitch    = "hdfs.standby.switch"
	keyStandbyAfter     = "hdfs.standby.after"
)

const switchAuto = "auto"

func standbyOptions() []connector.Option {
	return []connector.Option{
		{Key: keyStandby, Type: connector.OptString, Check: checkURL,
			Doc: "The table's directory on a second cluster, as `hdfs://...`, where it goes on when the first one fails. See [Two clusters](hdfs.md#two-clusters)."},
		{Key: keyStandbyNameNodes, Type: connector.OptList, Check: checkNameNodes, Doc: "`" + keyNameNodes + "` of the second cluster."},
		{Key: keyStandbySwitch, Type: connector.OptEnum, Enum: []string{"manual", switchAuto}, Default: "manual",
			Doc: "Who moves the table to its other cluster: only `millrace tables switch`, or also the job itself."},
		{Key: keyStandbyAfter, Type: connector.OptDuration, Default: "30 s", Check: notZero,
			Doc: "How long the cluster must have failed before the job moves the table."},
	}
}

func checkURL(url string) error {
	_, _, err := splitURL(url)
	return err
}

// validateStandby refuses contradictions between the options of a second home.
func validateStandby(v connector.Values) error {
	if !v.Has(keyStandby) {
		for _, k := range []string{keyStandbyNameNodes, keyStandbySwitch, keyStandbyAfter} {
			if v.Has(k) {
				return &connector.OptionError{Key: k, Message: "'" + k + "' has no effect without '" + keyStandby + "'"}
			}
		}
		return nil
	}
	if v.String(keyStandby) == v.String("path") {
		return &connector.OptionError{Key: keyStandby, OnValue: true, Message: "the second home is the first"}
	}
	if v.Has(keyStandbyAfter) && v.String(keyStandbySwitch) != switchAuto {
		return &connector.OptionError{Key: keyStandbyAfter, Message: "'" + keyStandbyAfter + "' has no effect unless '" + keyStandbySwitch + "' = '" + switchAuto + "'"}
	}
	return nil
}

// Standby implements filesystem.StandbyScheme.
func (s *Scheme) Standby(v connector.Values) (connector.StandbyPlace, bool) {
	if !v.Has(keyStandby) {
		return connector.StandbyPlace{}, false
	}
	return connector.StandbyPlace{Option: keyStandby, Auto: v.String(keyStandbySwitch) == switchAuto, After: v.Duration(keyStandbyAfter),
		Options: v.With(map[string]string{"path": v.String(keyStandby), keyNameNodes: v.String(keyStandbyNameNodes),
			keyStandby: "", keyStandbyNameNodes: "", keyStandbySwitch: "", keyStandbyAfter: ""})}, true
}

// Probe looks whether the cluster takes a file under a name, and removes it: nil when
// a NameNode and a DataNode serve. It is tried once, waits for no transfer and takes
// little longer than ctx.
func (f *FS) Probe(ctx context.Context, name string) error {
	content := []byte("probe")
	_, err := f.c.upload(ctx, ctx, name, true, bytes.NewReader(content), int64(len(content)))
	if err == nil {
		err = f.c.once(ctx, func(c *hdfs.Client) error { return c.Remove(name) })
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("probing %s: %w", f.c.url(name), err) // its directory is gone
	}
	return f.c.explain("probing", name, err)
}
