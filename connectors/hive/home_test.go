package hive

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/connectors/hive/metastore"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/home"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/offsets"
	"github.com/millrace/millrace/storage/vfs"
)

// twoScheme is two filesystems in memory, two://main and two://standby, of which each
// can be away.
type twoScheme struct {
	fs   map[string]*vfs.MemFS
	away map[string]bool
}

const keyTwoStandby = "two.standby"

func (*twoScheme) Name() string { return "two" }

func (*twoScheme) Options() []connector.Option {
	return []connector.Option{{Key: keyTwoStandby, Type: connector.OptString}}
}

func (*twoScheme) CheckPath(string) error { return nil }

func (*twoScheme) Validate(connector.Values) error { return nil }

func (s *twoScheme) Mount(_ context.Context, url string, v connector.Values) (vfs.FS, string, string, func() error, error) {
	host, dir, _ := strings.Cut(strings.TrimPrefix(url, "two://"), "/")
	if host == "standby" && v.Has(keyTwoStandby) {
		return nil, "", "", nil, errors.New("the standby is reached by the main home's options")
	}
	if s.away[host] {
		return nil, "", "", nil, errors.New(host + " is away")
	}
	return s.fs[host], "/" + dir, "two://" + host, func() error { return nil }, nil
}

func (*twoScheme) Standby(v connector.Values) (connector.StandbyPlace, bool) {
	if !v.Has(keyTwoStandby) {
		return connector.StandbyPlace{}, false
	}
	return connector.StandbyPlace{Option: keyTwoStandby, Options: v.With(map[string]string{"path": v.String(keyTwoStandby), keyTwoStandby: ""})}, true
}

// homesWorld is a table of a metastore with two homes, and its job's ledger.
type homesWorld struct {
	*world
	t      *testing.T
	scheme *twoScheme
	table  *connector.Table
	book   *ledger.Book
	fact   *ledger.Table
	sink   *home.Sink
	offset int64
	// epoch is the process's, attempt the lane's.
	epoch, attempt uint64
}

func newHomesWorld(t *testing.T) *homesWorld {
	w := &homesWorld{world: newWorld(), t: t, fact: &ledger.Table{Name: "T", ID: conntest.UUID(9)},
		scheme: &twoScheme{fs: map[string]*vfs.MemFS{"main": vfs.NewMem(), "standby": vfs.NewMem()}, away: map[string]bool{}}}
	w.conn = New(filesystem.New(vfs.NewMem(), nil).With(w.scheme))
	w.conn.dial = func(metastore.Options) catalog { return w.fake }
	w.table = w.world.table(map[string]string{keyPath: "two://main/t", keyTwoStandby: "two://standby/t"})
	led, err := ledger.OpenLedger(t.Context(), ledger.NewMemStore())
	noErrors(t, err)
	w.book = led.Book(ledger.Scope{Job: conntest.UUID(1)})
	noErrors(t, w.book.Append(t.Context(), w.fact))
	w.begin()
	return w
}

// begin opens the table as a new process does.
func (w *homesWorld) begin() {
	w.t.Helper()
	sb, err := w.conn.Standby(w.table)
	noErrors(w.t, err)
	places := [connector.Homes]*connector.Table{w.table, sb.Table}
	w.epoch++
	owner := conntest.OwnerOf(1, w.epoch)
	w.sink, err = home.Open(w.t.Context(), home.Config{Book: w.book, Table: w.fact,
		Open: func(ctx context.Context, h uint8) (connector.Sink, error) {
			if w.scheme.away[connector.HomeName(h)] {
				return nil, errors.New("away")
			}
			return w.conn.OpenSink(ctx, places[h], owner)
		}})
	noErrors(w.t, err)
	sink := w.sink
	w.t.Cleanup(func() { sink.Close() })
}

// write commits ten rows of a day and closes it once more.
func (w *homesWorld) write() {
	w.t.Helper()
	w.intend(false)
	w.closed()
}

// closed closes the day, once more if it was.
func (w *homesWorld) closed() {
	w.t.Helper()
	k := ledger.CloseKey{Table: w.fact.ID, TablePartition: day}
	c := ledger.Close{Table: w.fact.ID, TablePartition: day, Version: 1}
	if old := w.book.Close(k); old != nil {
		c.Version = old.Version + 1
	}
	c.Step = ledger.Closed
	noErrors(w.t, w.book.Append(w.t.Context(), &c))
}

func (w *homesWorld) intend(rewrite bool) {
	w.t.Helper()
	ctx := w.t.Context()
	lane := connector.LaneID{Topic: conntest.UUID(7)}
	w.attempt++
	noErrors(w.t, w.book.Append(ctx, &ledger.Open{Lane: lane, Epoch: w.attempt}))
	id := connector.ArtifactID{Job: conntest.UUID(1), Table: w.fact.ID, Lane: lane, Epoch: w.attempt}
	from := w.offset
	if rewrite {
		from = 0
	}
	in := connector.Input{Topic: conntest.UUID(7), Offsets: offsets.Of(from, from+10)}
	out, err := w.sink.OpenWriter(ctx, connector.Attempt{ID: id})
	noErrors(w.t, err)
	defer out.Close()
	b := conntest.OneDay(from, 10)
	ids, err := out.Buckets(b, nil, nil)
	noErrors(w.t, err)
	noErrors(w.t, out.Write(b, nil, ids[0]))
	as, err := out.Seal(ctx, []connector.SealRequest{{Bucket: ids[0], Header: connector.Header{ID: id, TablePartition: day, Rows: 10, Inputs: []connector.Input{in}}}})
	noErrors(w.t, err)
	writer := ledger.Writer{Lane: lane, Epoch: w.attempt}
	intent := &ledger.Intent{Writer: writer, Artifacts: as, Inputs: []ledger.Input{{Topic: in.Topic, Offsets: in.Offsets}}, Rewrite: rewrite}
	noErrors(w.t, w.book.Append(ctx, intent))
	noErrors(w.t, w.sink.Publish(ctx, as)...)
	noErrors(w.t, w.book.Append(ctx, &ledger.Outcome{ID: id, Writer: writer, Result: ledger.Committed}))
	if !rewrite {
		w.offset += 10
	}
}

func (w *homesWorld) announce() error {
	ctx := w.t.Context()
	if err := w.sink.CommitPartition(ctx, day); err != nil {
		return err
	}
	c := *w.book.Close(ledger.CloseKey{Table: w.fact.ID, TablePartition: day})
	c.Step = ledger.Announced
	return w.book.Append(ctx, &c)
}

func (w *homesWorld) switchTo(h uint8, edge bool) {
	w.t.Helper()
	_, err := w.book.Switch(w.t.Context(), ledger.SwitchOptions{Table: w.fact.ID, To: h, Edge: edge, Reason: "test"})
	noErrors(w.t, err)
}

// want compares what readers of the metastore see, and where.
func (w *homesWorld) want(what, host string, ids ...int64) {
	w.t.Helper()
	w.fake.mu.Lock()
	p := w.fake.parts["t"][day].Clone()
	w.fake.mu.Unlock()
	if !strings.HasPrefix(p.Storage.Location, "two://"+host+"/t/") {
		w.t.Fatalf("%s: it lies at %s", what, p.Storage.Location)
	}
	for _, with := range []map[string]string{{keyPath: "two://main/t", keyTwoStandby: "two://standby/t"}, {}} {
		s, err := w.conn.OpenSource(w.t.Context(), w.world.table(with))
		noErrors(w.t, err)
		var got []int64
		for _, b := range readAll(w.t, s, nil) {
			got = append(got, b.Cols[0].I64[:b.Len]...)
		}
		noErrors(w.t, s.Close())
		slices.Sort(got)
		var rows []int64
		for _, first := range ids {
			for i := range int64(10) {
				rows = append(rows, first+i)
			}
		}
		if !slices.Equal(got, rows) || p.Parameters[paramRows] != strconv.Itoa(len(rows)) {
			w.t.Fatalf("%s: readers see %v, numRows is %s, want %v", what, got, p.Parameters[paramRows], rows)
		}
	}
}

// TestPartitionMoves: a partition that is registered, and not announced, moves: its
// entry is pointed to the standby, where its rows were written anew.
func TestPartitionMoves(t *testing.T) {
	w := newHomesWorld(t)
	w.write()
	noErrors(t, w.sink.CommitPartition(t.Context(), day)) // and no more: the process ends here
	w.want("registered", "main", 0)
	w.switchTo(connector.StandbyHome, false)
	w.scheme.away["main"] = true
	w.begin()
	w.intend(true)
	w.closed()
	noErrors(t, w.announce())
	w.want("moved", "standby", 0)
	// It may be announced again, and more rows come.
	w.write()
	noErrors(t, w.announce())
	w.want("with more", "standby", 0, 10)
}

// TestLateRowsJoin: rows that come late for a partition which lies at the home that is
// away are written at the other one; readers see them when both serve, once.
func TestLateRowsJoin(t *testing.T) {
	w := newHomesWorld(t)
	w.write()
	noErrors(t, w.announce())
	w.switchTo(connector.StandbyHome, false)
	w.scheme.away["main"] = true
	w.begin()
	w.write()
	w.write()
	if err := w.announce(); err == nil || !strings.Contains(err.Error(), "was announced at the main home") {
		t.Fatalf("announced without its home: %v", err)
	}
	w.scheme.away["main"] = false
	w.want("before", "main", 0)
	noErrors(t, w.announce())
	w.want("joined", "main", 0, 10, 20)
	// Once more, with nothing new and with more; then back at the main home.
	noErrors(t, w.sink.CommitPartition(t.Context(), day))
	w.write()
	noErrors(t, w.announce())
	w.want("joined again", "main", 0, 10, 20, 30)
	w.switchTo(connector.MainHome, true)
	w.begin()
	w.write()
	noErrors(t, w.announce())
	w.want("back", "main", 0, 10, 20, 30, 40)
}

// TestStandbyOptions: what a table with a standby must have, and how it is opened there.
func TestStandbyOptions(t *testing.T) {
	w := newWorld()
	w.conn = New(filesystem.New(vfs.NewMem(), nil).With(&twoScheme{}))
	with := map[string]string{keyPath: "two://main/t", keyTwoStandby: "two://standby/t"}
	if sb, err := w.conn.Standby(w.table(with)); err != nil || sb.Main != "two://main/t" || sb.Standby != "two://standby/t" || sb.Table.Options.Has(keyTwoStandby) {
		t.Errorf("%+v, %v", sb, err)
	}
	if mode, why := w.conn.ReplaceMode(w.table(with)); mode != connector.ReplaceNever || !strings.Contains(why, "standby") {
		t.Errorf("replaced: %v, %s", mode, why)
	}
	with[keyPolicy] = "success-file"
	if _, err := w.conn.Standby(w.table(with)); err == nil || !strings.Contains(err.Error(), "needs 'metastore'") {
		t.Errorf("without a metastore: %v", err)
	}
	with[keyPolicy] = "metastore"
	if _, err := w.conn.Standby(w.tableOf(conntest.Columns(), nil, with)); err == nil || !strings.Contains(err.Error(), "PARTITIONED BY") {
		t.Errorf("without partitions: %v", err)
	}
	with[keyLate], with[keyLateTable] = "side-table", "late"
	if _, err := w.conn.Standby(w.table(with)); err == nil || !strings.Contains(err.Error(), "not_yet") {
		t.Errorf("with a table of late rows: %v", err)
	}
}
