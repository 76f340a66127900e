package ledger

import (
	"testing"

	"github.com/millrace/millrace/runtime/connector"
)

// TestLastMoveCounts: a partition was moved twice, and what became of the first move was
// written down after the second one. A process that starts over a compacted ledger sees
// the last move, as the one that wrote it does.
func TestLastMoveCounts(t *testing.T) {
	store := NewMemStore()
	scope := Scope{Job: connector.UUID{9}}
	table := connector.UUID{1}
	k := CloseKey{table, "dt=1"}
	open := func() *Book {
		t.Helper()
		led, err := OpenLedger(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		return led.Book(scope)
	}
	add := func(b *Book, facts ...Fact) {
		t.Helper()
		if err := b.Append(t.Context(), facts...); err != nil {
			t.Fatal(err)
		}
	}
	b := open()
	add(b, &Table{Name: "t", ID: table})
	add(b, &Switch{Table: table, Number: 1, To: connector.StandbyHome}, &Moved{Table: table, TablePartition: "dt=1", Number: 1, To: connector.StandbyHome})
	add(b, &Switch{Table: table, Number: 2, To: connector.MainHome}, &Moved{Table: table, TablePartition: "dt=1", Number: 2, To: connector.MainHome})
	add(b, &Moved{Table: table, TablePartition: "dt=1", Number: 1, To: connector.StandbyHome, Retracted: true})
	// New partitions begin elsewhere, so that only the partition's own home says main.
	add(b, &Switch{Table: table, Number: 3, To: connector.StandbyHome, Edge: true})
	check := func(what string, b *Book) {
		t.Helper()
		if h := b.HomeOf(k); h != connector.MainHome {
			t.Errorf("%s: its home is %s", what, connector.HomeName(h))
		}
		moves := b.Moves(table, nil)
		if len(moves) != 1 || moves[0].To != connector.MainHome {
			t.Errorf("%s: its moves are %+v", what, moves)
		}
		if list := b.Moved(table); len(list) != 2 || list[0].Number != 1 || !list[0].Retracted || list[1].Number != 2 {
			t.Errorf("%s: moves in order: %+v", what, list)
		}
	}
	check("written", b)
	store.Compact()
	check("read again", open())
}

// TestLateRowsMoveThePartition: rows that come late for a partition which is announced at
// the home that is away go to the active one, and so does what comes while it is closed
// anew.
func TestLateRowsMoveThePartition(t *testing.T) {
	led, err := OpenLedger(t.Context(), NewMemStore())
	if err != nil {
		t.Fatal(err)
	}
	b := led.Book(Scope{Job: connector.UUID{9}})
	table, lane := connector.UUID{1}, connector.LaneID{Topic: connector.UUID{2}}
	k := CloseKey{table, "dt=1"}
	add := func(facts ...Fact) {
		t.Helper()
		if err := b.Append(t.Context(), facts...); err != nil {
			t.Fatal(err)
		}
	}
	intend := func(home uint8, sequence uint64) {
		t.Helper()
		id := connector.ArtifactID{Job: connector.UUID{9}, Table: table, Lane: lane, Epoch: 1, Sequence: sequence}
		add(&Intent{Writer: Writer{Lane: lane, Epoch: 1}, Artifacts: []connector.Artifact{{Home: home, Header: connector.Header{ID: id, TablePartition: "dt=1", Rows: 1}}}})
	}
	close := func(version uint32, step CloseStep) {
		t.Helper()
		add(&Close{Table: table, TablePartition: "dt=1", Version: version, Step: step})
	}
	add(&Table{Name: "t", ID: table}, &Open{Lane: lane, Epoch: 1})
	intend(connector.MainHome, 1)
	close(1, Closed)
	close(1, Announced)
	add(&Switch{Table: table, Number: 1, To: connector.StandbyHome, Edge: true})
	intend(connector.StandbyHome, 2)
	close(2, Closing)
	if h := b.HomeOf(k); h != connector.StandbyHome {
		t.Errorf("while it is closed anew its home is %s", connector.HomeName(h))
	}
}
