package redis

import (
	"context"
	"fmt"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/millrace/millrace/connectors/outbox"
	"github.com/millrace/millrace/connectors/tlsfiles"
	"github.com/millrace/millrace/runtime/connector"
)

// OpenSink implements connector.SinkConnector. A server that does not answer is no
// error: rows are sealed and wait for it.
func (c *Connector) OpenSink(ctx context.Context, t *connector.Table, o connector.Owner) (connector.Sink, error) {
	l, err := newLayout(t)
	if err != nil {
		return nil, err
	}
	client, addr, err := connect(t.Options)
	if err != nil {
		return nil, err
	}
	request, wrong := t.Options.Duration(keyRequest), newWrongKeys(time.Now)
	var s outbox.Sender = &sender{client: client, request: request, wrong: wrong, typ: l.typ}
	if cluster, ok := client.(*goredis.ClusterClient); ok {
		s = &clusterSender{client: cluster, request: request, wrong: wrong, typ: l.typ, tags: slotTags()}
	}
	explain, err := probe(ctx, client, request, addr)
	if err != nil {
		client.Close()
		return nil, err
	}
	sink, err := outbox.Open(outbox.Config{FS: c.fs, Root: c.staging, Kind: c.spec.Name, Table: t, Owner: o,
		Location: addr.String(),
		Roll:     connector.RollPolicy{Bytes: t.Options.Bytes(keyFlushBytes), Age: t.Options.Duration(keyFlushAge)},
		Sender:   s, NewEncoder: func() (outbox.Encoder, error) { return &encoder{layout: l, wrong: wrong}, nil },
		Explain: []string{explain}})
	if err != nil {
		client.Close()
		return nil, err
	}
	return sink, nil
}

// probe looks what the server is and how it keeps its data. A user who may not ask,
// and a server that does not answer, are no error.
func probe(ctx context.Context, client goredis.UniversalClient, request time.Duration, a address) (explain string, err error) {
	ctx, cancel := context.WithTimeout(ctx, request)
	defer cancel()
	name := a.String()
	info, err := client.Info(ctx).Result()
	switch code := codeOf(err); {
	case err == nil:
	case code == "NOPERM":
		return name + ": the user may not ask INFO; what the server is, is not known", nil
	case classOf(err) == classStop || tlsfiles.Refused(err):
		return "", fmt.Errorf("connecting to %s: %w", name, explained(err))
	default:
		return fmt.Sprintf("%s does not answer yet (%v): rows wait for it", name, err), nil
	}
	f := infoFields(info)
	is := f["redis_mode"]
	switch {
	case a.mode == modeCluster && is != "cluster":
		return "", &connector.OptionError{Key: keyNodes, OnValue: true, Message: "the server is no node of a cluster", Hint: "'" + keyMode + "' = '" + modeSingle + "'"}
	case a.mode != modeCluster && is == "cluster":
		return "", &connector.OptionError{Key: keyURL, OnValue: true, Message: "the server is a node of a cluster", Hint: "'" + keyMode + "' = '" + modeCluster + "'"}
	case is == "sentinel":
		return "", &connector.OptionError{Key: keyURL, OnValue: true, Message: "the server is a Sentinel", Hint: "'" + keyMode + "' = '" + modeSentinel + "'"}
	}
	explain = fmt.Sprintf("%s is Redis %s, %s; ", name, f["redis_version"], f["role"])
	if a.mode != modeSingle {
		explain += "rows that a primary has acknowledged are lost when a replica that has not got them takes its place (min-replicas-to-write); "
	}
	if f["aof_enabled"] != "1" {
		return explain + "it has no append-only file: rows that it has acknowledged are lost when it ends without saving (appendonly yes)", nil
	}
	conf, err := client.ConfigGet(ctx, "appendfsync").Result()
	if err != nil && codeOf(err) == "" {
		return explain + "it has an append-only file", nil
	}
	if sync := conf["appendfsync"]; sync != "" && sync != "always" {
		return explain + "its append-only file is synced '" + sync + "': the last rows that it has acknowledged may be lost when its machine fails (appendfsync always)", nil
	}
	return explain + "it has an append-only file", nil
}

// infoFields are the lines `name:value` of INFO.
func infoFields(info string) map[string]string {
	f := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			f[name] = value
		}
	}
	return f
}
