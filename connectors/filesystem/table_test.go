package filesystem

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/format/csvfmt"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/connectors/format/parquetfmt"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/offsets"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

func newConnector(fsys vfs.FS) *Connector {
	return New(fsys, nil, jsonfmt.Format{}, csvfmt.Format{})
}

func column(name string, t types.Type) connector.Column {
	return connector.Column{Field: types.Field{Name: name, Type: t}}
}

// textBatch makes a batch of string columns; "\x00" is NULL.
func textBatch(cols []connector.Column, rows ...[]string) *batch.Batch {
	s := &batch.Schema{}
	for _, c := range cols {
		s.Fields = append(s.Fields, c.Field)
	}
	b := new(batch.Batch)
	b.Reset(s)
	for c := range cols {
		v := &b.Cols[c]
		v.Reset(s.Fields[c].Type, len(rows))
		for i, r := range rows {
			if r[c] == "\x00" {
				v.SetNull(i)
			} else {
				v.Data = append(v.Data, r[c]...)
			}
			v.Offsets = append(v.Offsets, int32(len(v.Data)))
		}
	}
	b.Len = len(rows)
	return b
}

// publishBatch writes a batch as one attempt and publishes all of it.
func publishBatch(t testing.TB, c *Connector, table *connector.Table, b *batch.Batch, epoch uint64) []connector.Artifact {
	t.Helper()
	ctx := context.Background()
	s, err := c.OpenSink(ctx, table, conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := connector.ArtifactID{Job: conntest.UUID(1), Table: conntest.UUID(2), Lane: connector.LaneID{Topic: conntest.UUID(3)}, Epoch: epoch}
	w, err := s.OpenWriter(ctx, connector.Attempt{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ids, err := w.Buckets(b, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.Len {
		if err := w.Write(b, batch.Sel{int32(i)}, ids[i]); err != nil {
			t.Fatal(err)
		}
	}
	var reqs []connector.SealRequest
	for i, k := range w.Open() {
		h := connector.Header{ID: id, TablePartition: k.TablePartition, Rows: k.Rows, RowHash: 0xabc, SchemaHash: 0xdef,
			Inputs: []connector.Input{{Topic: conntest.UUID(3), Partition: 2, Offsets: offsets.Of(10, 10+k.Rows)}}}
		h.ID.Sequence = uint64(i)
		reqs = append(reqs, connector.SealRequest{Bucket: k.ID, Header: h})
	}
	as, err := w.Seal(ctx, reqs)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Publish(ctx, as) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return as
}

// TestFooter: a Parquet file names its artefact and the offsets it holds.
func TestFooter(t *testing.T) {
	mem := vfs.NewMem()
	c := newConnector(mem)
	cols := []connector.Column{column("v", types.NewString())}
	table := tableOf(c, cols, nil, map[string]string{"path": "/t", "format": "parquet"})
	as := publishBatch(t, c, table, textBatch(cols, []string{"a"}, []string{"b"}), 4)
	data, err := vfs.ReadFile(mem, as[0].Location)
	if err != nil {
		t.Fatal(err)
	}
	meta, rows, err := parquetfmt.Metadata(bytes.NewReader(data), int64(len(data)))
	if err != nil || rows != 2 {
		t.Fatal(rows, err)
	}
	in, err := ParseInputs(meta[footerInputs])
	if err != nil {
		t.Fatal(err)
	}
	if meta[footerArtifact] != as[0].Header.ID.String() || meta[footerRowHash] != "0000000000000abc" || meta[footerVersion] != "1" ||
		len(in) != 1 || in[0].Topic != conntest.UUID(3) || in[0].Partition != 2 || !in[0].Offsets.Equal(offsets.Of(10, 12)) {
		t.Errorf("footer %v", meta)
	}
	if int64(len(data)) != as[0].Bytes || !strings.HasSuffix(as[0].Location, "/t/part-"+as[0].Header.ID.String()+".parquet") {
		t.Errorf("%d bytes at %s", as[0].Bytes, as[0].Location)
	}
}

// TestSuccessFile: the announcement, also of a partition without rows and once
// more after late rows; readers never take it for data.
func TestSuccessFile(t *testing.T) {
	mem := vfs.NewMem()
	c := newConnector(mem)
	cols := []connector.Column{column("v", types.NewString()), column("dt", types.NewString()), column("hr", types.NewString())}
	table := tableOf(c, cols, []int{1, 2}, map[string]string{"path": "/t", "format": "json", keyPolicy: "success-file",
		keyTrigger: "partition-time", keyDelay: "1 h", keyPattern: "$dt $hr:00:00", keyZone: "Asia/Shanghai"})
	publishBatch(t, c, table, textBatch(cols, []string{"a", "2024-05-01", "08"}), 1)
	s, err := c.OpenSink(context.Background(), table, conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	pc := s.(connector.PartitionCommitter)
	for _, p := range []string{"dt=2024-05-01/hr=08", "dt=2024-05-01/hr=09", "dt=2024-05-01/hr=08"} {
		if err := pc.CommitPartition(context.Background(), p); err != nil {
			t.Fatal(err)
		}
		if ok, err := vfs.Exists(mem.CrashClone(vfs.CrashOptions{}), "/t/"+p+"/_SUCCESS"); err != nil || !ok {
			t.Fatalf("%s is not announced durably: %v", p, err)
		}
	}
	if err := pc.CommitPartition(context.Background(), "dt=2024-05-01"); err == nil {
		t.Error("half a partition was announced")
	}
	pol := pc.CommitPolicy()
	ms, err := pol.Time("dt=2024-05-01/hr=08")
	if want := time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC).UnixMilli(); err != nil || ms != want || pol.Delay != time.Hour || pol.Trigger != connector.PartitionTime {
		t.Errorf("time %d want %d, %v, policy %+v", ms, want, err, pol)
	}
	for _, p := range []string{"dt=__HIVE_DEFAULT_PARTITION__/hr=08", "dt=2023-02-29/hr=08", "dt=x/hr=08", "dt=2024-05-01/hr=24"} {
		if ms, err := pol.Time(p); err == nil {
			t.Errorf("%s has time %d", p, ms)
		}
	}
	rows := 0
	for _, b := range readTable(t, c, table, nil) {
		rows += b.Len
	}
	if rows != 1 {
		t.Errorf("%d rows", rows)
	}
}

// TestProcessTimeDelay: announcing by process time does not cut files into one
// a batch.
func TestProcessTimeDelay(t *testing.T) {
	c := newConnector(vfs.NewMem())
	cols := []connector.Column{column("v", types.NewString()), column("dt", types.NewString())}
	for delay, want := range map[string]time.Duration{"": 2 * time.Minute, "1 min": 2 * time.Minute, "1 h": time.Hour} {
		with := map[string]string{"path": "/t", "format": "json", keyPolicy: "success-file", keyRollover: "2 min"}
		if delay != "" {
			with[keyDelay] = delay
		}
		s, err := c.OpenSink(context.Background(), tableOf(c, cols, []int{1}, with), conntest.OwnerOf(1, 1))
		if err != nil {
			t.Fatal(err)
		}
		if p := s.(connector.PartitionCommitter).CommitPolicy(); p.Trigger != connector.ProcessTime || p.Delay != want {
			t.Errorf("delay %q: %+v", delay, p)
		}
	}
}

func TestTimePatterns(t *testing.T) {
	at := func(h, m, s, ms int) int64 {
		return time.Date(2024, 5, 1, h, m, s, ms*1e6, time.UTC).UnixMilli()
	}
	for _, x := range []struct {
		pattern, formatter, partition string
		want                          int64
	}{
		{"", "", "dt=2024-05-01", at(0, 0, 0, 0)},
		{"", "", "dt=2024-5-1 7%3A3%3A2", at(7, 3, 2, 0)},
		{"$year-$month-$day $hour:00:00", "", "year=2024/month=05/day=1/hour=8", at(8, 0, 0, 0)},
		{"$d $dt", "HH yyyyMMdd", "d=07/dt=20240501", at(7, 0, 0, 0)},
		{"$dt", "yyyyMMddHH", "dt=2024050123", at(23, 0, 0, 0)},
		{"$dt", "yyyy-MM-dd'T'HH:mm:ss.SSS", "dt=2024-05-01T01%3A02%3A03.004", at(1, 2, 3, 4)},
	} {
		f, err := timeExtractor(x.pattern, x.formatter, time.UTC, "__HIVE_DEFAULT_PARTITION__")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f(x.partition); err != nil || got != x.want {
			t.Errorf("%+v: %d, %v", x, got, err)
		}
	}
	if _, err := compilePattern("yyyy-MM-dd hh"); err == nil {
		t.Error("hh was accepted")
	}
}

// TestOptions: contradictions and what is not there yet are refused by key.
func TestOptions(t *testing.T) {
	c := newConnector(vfs.NewMem())
	for key, value := range map[string]string{
		keyCompaction: "true", keyCompactionSize: "1MB", keyShuffle: "true", keyInactivity: "1 min", keyPolicy: "metastore",
		keyParallelism: "2", keyPath: "hdfs://nn/x", keyZone: "PST", keySuccessName: "done", "parquet.compression": "lz4",
		keyPathRegex: ".*", keyDefaultName: "a/b", "parquet.utc-timezone": "false", keyFormatter: "yyyy-MM-dd hh",
	} {
		with := map[string]string{"connector": "filesystem", "path": "/t", "format": "parquet", keyPattern: "$dt"}
		with[key] = value
		if _, errs := c.Spec().Resolve(with); len(errs) != 1 || errs[0].Key != key {
			t.Errorf("%s = %s: %v", key, value, errs)
		}
	}
	v, errs := c.Spec().Resolve(map[string]string{"connector": "filesystem", "path": "/t", "format": "parquet", "parquet.compression": "ZSTD"})
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	cols := []connector.Column{column("v", types.NewString()), column("dt", types.NewString())}
	_, err := c.OpenSink(context.Background(), &connector.Table{Columns: cols, PartitionKeys: []int{1}, Options: v}, conntest.OwnerOf(1, 1))
	var oe *connector.OptionError
	if !errors.As(err, &oe) || oe.Key != keyPolicy || !oe.Missing {
		t.Errorf("a partitioned sink without a commit policy: %v", err)
	}
	iv := []connector.Column{column("i", types.Simple(types.IntervalDaySecond))}
	if _, err := c.OpenSink(context.Background(), &connector.Table{Columns: iv, Options: v}, conntest.OwnerOf(1, 1)); !errors.Is(err, parquetfmt.ErrUnsupportedType) {
		t.Errorf("INTERVAL in Parquet: %v", err)
	}
}

// TestManyPartitions: a backlog in random order over more partitions than fit
// stays within the budget: the writer says it is full, and files are sealed.
func TestManyPartitions(t *testing.T) {
	mem := vfs.NewMem()
	c := newConnector(mem)
	cols := []connector.Column{column("v", types.NewString()), column("key", types.NewString())}
	table := tableOf(c, cols, []int{1}, map[string]string{"path": "/t", "format": "parquet", keyPolicy: "success-file"})
	ctx := context.Background()
	s, err := c.OpenSink(ctx, table, conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	id := connector.ArtifactID{Job: conntest.UUID(1), Table: conntest.UUID(2), Lane: connector.LaneID{Topic: conntest.UUID(3)}, Epoch: 1}
	const budget = 4 << 20
	w, err := s.OpenWriter(ctx, connector.Attempt{ID: id, MemoryBytes: budget})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r := rand.New(rand.NewPCG(3, 3))
	highest, full, rows := int64(0), 0, 0
	sealOne := func() {
		open := w.Open()
		slices.SortFunc(open, func(a, b connector.Bucket) int { return int(b.Bytes - a.Bytes) })
		var reqs []connector.SealRequest
		for _, k := range open[:(len(open)+1)/2] {
			id.Sequence++
			reqs = append(reqs, connector.SealRequest{Bucket: k.ID, Header: connector.Header{ID: id, TablePartition: k.TablePartition, Rows: k.Rows}})
		}
		as, err := w.Seal(ctx, reqs)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range s.Publish(ctx, as) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	text := strings.Repeat("x", 8000)
	for range 100 {
		var batchRows [][]string
		for range 50 {
			batchRows = append(batchRows, []string{fmt.Sprint(text, r.Uint64()), fmt.Sprint("k", r.IntN(577))})
		}
		b := textBatch(cols, batchRows...)
		ids, err := w.Buckets(b, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Len {
			for {
				err := w.Write(b, batch.Sel{int32(i)}, ids[i])
				highest = max(highest, w.HeldBytes())
				if err == nil {
					rows++
					break
				}
				if !errors.Is(err, connector.ErrFull) {
					t.Fatal(err)
				}
				full++
				sealOne()
			}
			if n := len(w.Open()); n > maxOpenFiles {
				t.Fatalf("%d files are open", n)
			}
		}
	}
	for len(w.Open()) > 0 {
		sealOne()
	}
	if full == 0 || highest < budget/2 || highest > budget+budget/4 {
		t.Errorf("full %d times, held up to %d bytes of %d", full, highest, budget)
	}
	read := 0
	for _, b := range readTable(t, c, table, nil) {
		read += b.Len
	}
	if read != rows {
		t.Errorf("%d rows read, %d written", read, rows)
	}
	t.Logf("%d rows, full %d times, held up to %d of %d bytes", rows, full, highest, budget)
}

// TestGoldenEncodings: what earlier versions wrote is still read.
func TestGoldenEncodings(t *testing.T) {
	p := payload{staged: ".staging/01000000-0000-0000-0000-00000000000f/0700-l1/3/part-x.parquet", final: "dt=2024-05-01/part-x.parquet", bytes: 123456}
	const want = "01462e73746167696e672f30313030303030302d303030302d303030302d303030302d3030303030303030303030662f303730302d6c312f332f706172742d782e706172717565741c64743d323032342d30352d30312f706172742d782e70617271756574c0c407"
	if got := hex.EncodeToString(p.encode()); got != want {
		t.Errorf("payload\n%s, want\n%s", got, want)
	}
	b, err := os.ReadFile("testdata/payload-v1")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodePayload(b); err != nil || got != p {
		t.Errorf("golden payload %+v %v", got, err)
	}
	for n := range b {
		if got, err := decodePayload(b[:n]); err == nil {
			t.Errorf("%d of %d bytes decode to %+v", n, len(b), got)
		}
	}
	for _, bad := range []payload{{staged: "../x", final: "y"}, {staged: "a", final: "/etc/x"}, {staged: "a/../../b", final: "y"}, {staged: "", final: "y"}} {
		if _, err := decodePayload(bad.encode()); err == nil {
			t.Errorf("%+v leads out of the table", bad)
		}
	}
	record, err := os.ReadFile("testdata/content-v1")
	if err != nil {
		t.Fatal(err)
	}
	content, err := readContent(record, "content-v1")
	if err != nil || content != (contentRecord{Version: 1, Job: conntest.OwnerOf(1, 1).Job.String(), Content: 1<<32 | 3}) {
		t.Errorf("golden content %+v %v", content, err)
	}
	if b, err := content.encode(); err != nil || string(b) != string(record) {
		t.Errorf("content is written as %s: %v", b, err)
	}
	if _, err := readContent([]byte(`{"version":2}`), "x"); err == nil {
		t.Error("a content record of version 2 is read")
	}
	r, err := readOwner(vfs.NewOS(), "testdata/owner-v1")
	if err != nil || r != recordOf(conntest.OwnerOf(1, 3)) {
		t.Errorf("golden owner %+v %v", r, err)
	}
}
