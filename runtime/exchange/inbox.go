package exchange

import (
	"context"
	"errors"
	"sync"

	"github.com/millrace/millrace/runtime/batch"
)

// Kind is the kind of a message.
type Kind uint8

const (
	// Data are rows.
	Data Kind = iota
	// Watermark moves event time.
	Watermark
	// Barrier begins a checkpoint.
	Barrier
	// Tick says that it is time to look at the clock; see Inbox.Tick.
	Tick
)

// Message is what goes through a channel.
type Message struct {
	Kind Kind
	Rows *Rows
	// Time is a watermark in milliseconds.
	Time int64
	// Checkpoint is the barrier's number.
	Checkpoint uint64
}

// Rows are rows for one task. They are read only: tasks share the batch.
type Rows struct {
	// Input is the node that the rows come out of, as the stage numbers them.
	Input int
	Batch *batch.Batch
	// Sel is never nil.
	Sel batch.Sel
	// Hashes are the key hashes by row of the batch.
	Hashes []uint64
	// Origin says what the batch's Runs are of; nil behind another stage.
	Origin *Origin
	// Bytes is what the rows count for in the channel.
	Bytes int64
}

// Origin is the lane that rows come from.
type Origin struct {
	Topic string
	// Partitions are the ids by batch.Run.Partition.
	Partitions []int32
}

// ErrClosed ends a reader or writer of an Inbox that was closed.
var ErrClosed = errors.New("the stage has ended")

// Inbox is the entrance of a task. The messages of one channel come out in order;
// of several channels, a barrier comes out once, when it has come on all of them,
// and nothing behind it before; watermarks come out as their minimum, when that
// rises.
type Inbox struct {
	limit int64

	mu       sync.Mutex
	channels []channel
	next     int // the channel to look at first
	out      int64
	ready    chan struct{} // has a token when there may be something
	ticked   bool
	closed   bool
}

type channel struct {
	queue   []Message
	bytes   int64
	time    int64
	barrier uint64        // waits for the others; 0: none
	room    chan struct{} // closed when room was made; nil: nobody waits
}

// NewInbox returns an inbox of a number of channels, each for about limit bytes
// of rows. watermark is what it has given out before (a restored stage).
func NewInbox(channels int, limit int64, watermark int64) *Inbox {
	in := &Inbox{limit: limit, channels: make([]channel, channels), out: watermark, ready: make(chan struct{}, 1)}
	for i := range in.channels {
		in.channels[i].time = batch.NoWatermark
	}
	return in
}

func (in *Inbox) signal() {
	select {
	case in.ready <- struct{}{}:
	default:
	}
}

// room gives nil when a channel takes rows now, else what is closed when it may.
func (in *Inbox) room(ch int) (<-chan struct{}, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return nil, ErrClosed
	}
	c := &in.channels[ch]
	if c.bytes < in.limit {
		return nil, nil
	}
	if c.room == nil {
		c.room = make(chan struct{})
	}
	return c.room, nil
}

// put appends a message whatever the room.
func (in *Inbox) put(ch int, m Message) {
	in.mu.Lock()
	if !in.closed {
		c := &in.channels[ch]
		c.queue = append(c.queue, m)
		if m.Kind == Data {
			c.bytes += m.Rows.Bytes
		}
	}
	in.mu.Unlock()
	in.signal()
}

// Tick lets Recv return a message of that kind, of no channel and before all others;
// from any goroutine.
func (in *Inbox) Tick() {
	in.mu.Lock()
	in.ticked = true
	in.mu.Unlock()
	in.signal()
}

// Send puts a message into a channel, waiting for room if it has rows. Only one
// goroutine may send into a channel.
func (in *Inbox) Send(ctx context.Context, ch int, m Message) error {
	for m.Kind == Data {
		wait, err := in.room(ch)
		if err != nil {
			return err
		}
		if wait == nil {
			break
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	in.put(ch, m)
	return nil
}

// Recv gives the next message, waiting for one.
func (in *Inbox) Recv(ctx context.Context) (Message, error) {
	for {
		m, ok, err := in.take()
		if ok || err != nil {
			return m, err
		}
		select {
		case <-in.ready:
		case <-ctx.Done():
			return Message{}, ctx.Err()
		}
	}
}

func (in *Inbox) take() (Message, bool, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for {
		if in.closed {
			return Message{}, false, ErrClosed
		}
		if in.ticked {
			in.ticked = false
			return Message{Kind: Tick}, true, nil
		}
		ch := in.pick()
		if ch < 0 {
			return Message{}, false, nil
		}
		c := &in.channels[ch]
		m := c.queue[0]
		c.queue[0] = Message{}
		c.queue = c.queue[1:]
		switch m.Kind {
		case Data:
			c.bytes -= m.Rows.Bytes
			if c.room != nil && c.bytes < in.limit {
				close(c.room)
				c.room = nil
			}
			return m, true, nil
		case Watermark:
			c.time = max(c.time, m.Time)
			if t := in.minimum(); t > in.out {
				in.out = t
				return Message{Kind: Watermark, Time: t}, true, nil
			}
		case Barrier:
			c.barrier = m.Checkpoint
			if in.aligned() {
				return m, true, nil
			}
		}
	}
}

// pick gives a channel that has a message and does not wait for a barrier, -1:
// there is none.
func (in *Inbox) pick() int {
	n := len(in.channels)
	for i := range n {
		ch := (in.next + i) % n
		if c := &in.channels[ch]; c.barrier == 0 && len(c.queue) > 0 {
			in.next = (ch + 1) % n
			return ch
		}
	}
	return -1
}

func (in *Inbox) minimum() int64 {
	t := batch.MaxWatermark
	for i := range in.channels {
		t = min(t, in.channels[i].time)
	}
	return t
}

// aligned reports that the barrier has come on all channels, and opens them.
func (in *Inbox) aligned() bool {
	for i := range in.channels {
		if in.channels[i].barrier == 0 {
			return false
		}
	}
	for i := range in.channels {
		in.channels[i].barrier = 0
	}
	return true
}

// Close ends readers and writers with ErrClosed; what was in it is dropped.
func (in *Inbox) Close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return
	}
	in.closed = true
	for i := range in.channels {
		c := &in.channels[i]
		c.queue = nil
		if c.room != nil {
			close(c.room)
			c.room = nil
		}
	}
	in.signal()
}

// Queued is the bytes of rows that wait.
func (in *Inbox) Queued() int64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	var n int64
	for i := range in.channels {
		n += in.channels[i].bytes
	}
	return n
}
