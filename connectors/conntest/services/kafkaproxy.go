package services

import (
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
)

// KafkaProxy stands before a broker: it spoils requests by their kind.
type KafkaProxy struct {
	*relay
	spoils []*Spoilt // of mu
}

// Spoilt is a request that a KafkaProxy spoils, once.
type Spoilt struct {
	client string
	key    int16
	how    Wrong
	// answer, where there is one, is given in the broker's place, whoever sent it.
	answer func(request []byte) ([]byte, error)
	came   chan struct{}
}

// Came is closed when the request has come; for one whose reply is concerned, when the
// reply has.
func (s *Spoilt) Came() <-chan struct{} { return s.came }

// newKafkaProxy listens on a free port for the broker at backend.
func newKafkaProxy(backend string) (*KafkaProxy, error) {
	r, err := newRelay("a Kafka broker", backend)
	if err != nil {
		return nil, err
	}
	p := &KafkaProxy{relay: r}
	go p.serve()
	return p, nil
}

// Spoil arms the proxy for the next request with this API key of the client with this
// id. What hangs ends with Mend, or with the broker.
func (p *KafkaProxy) Spoil(client string, key int16, how Wrong) *Spoilt {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &Spoilt{client: client, key: key, how: how, came: make(chan struct{})}
	p.spoils = append(p.spoils, s)
	return s
}

// AnswerFor arms the proxy for the next request with this API key, whoever sends it: it is
// answered in the broker's place and does not arrive. answer gets the request and gives
// the answer, each with its length in front. Brokers' own requests come by the proxy when
// 'inter.broker.listener.name' is PROXIED.
func (p *KafkaProxy) AnswerFor(key int16, answer func(request []byte) ([]byte, error)) *Spoilt {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &Spoilt{key: key, answer: answer, came: make(chan struct{})}
	p.spoils = append(p.spoils, s)
	return s
}

// Mend takes back what has befallen nobody, and ends all connections.
func (p *KafkaProxy) Mend() {
	p.mu.Lock()
	p.spoils = nil
	p.mu.Unlock()
	p.closeAll()
}

func (p *KafkaProxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp4", p.backend)
		if err != nil {
			reset(client)
			continue
		}
		if !p.track(client, server) {
			return
		}
		c := &kafkaConn{p: p, client: client, server: server, replies: map[uint32]*Spoilt{}}
		go c.up()
		go c.down()
	}
}

// hit takes the spoilt request that this one is, if any.
func (p *KafkaProxy) hit(key int16, client string) *Spoilt {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, s := range p.spoils {
		if s.key == key && (s.client == client || s.answer != nil) {
			p.spoils = slices.Delete(p.spoils, i, i+1)
			return s
		}
	}
	return nil
}

// kafkaConn is one connection.
type kafkaConn struct {
	p              *KafkaProxy
	client, server net.Conn

	mu      sync.Mutex
	replies map[uint32]*Spoilt // by correlation id
}

// end resets the client's side; the broker sees an ordinary end.
func (c *kafkaConn) end() {
	reset(c.client)
	c.server.Close()
	c.p.forget(c.client, c.server)
}

// readFrame reads a request or an answer with its length in front. Beginning with it are,
// of a request: key, version, correlation id and client id; of an answer: correlation id.
func readFrame(r io.Reader, buf []byte) ([]byte, error) {
	buf = append(buf[:0], 0, 0, 0, 0)
	if _, err := io.ReadFull(r, buf); err != nil {
		return buf, err
	}
	n := int(binary.BigEndian.Uint32(buf))
	buf = slices.Grow(buf, n)[:4+n]
	_, err := io.ReadFull(r, buf[4:])
	return buf, err
}

// kafkaHeader is the beginning of a request that was read by readFrame.
func kafkaHeader(frame []byte) (key int16, correlation uint32, client string) {
	if len(frame) < 14 {
		return -1, 0, ""
	}
	key, correlation = int16(binary.BigEndian.Uint16(frame[4:])), binary.BigEndian.Uint32(frame[8:])
	if n := int(int16(binary.BigEndian.Uint16(frame[12:]))); n > 0 && 14+n <= len(frame) {
		client = string(frame[14 : 14+n])
	}
	return key, correlation, client
}

func (c *kafkaConn) up() {
	var frame []byte
	var err error
	for {
		if frame, err = readFrame(c.client, frame); err != nil {
			c.end()
			return
		}
		key, correlation, client := kafkaHeader(frame)
		if s := c.p.hit(key, client); s != nil {
			if s.answer != nil {
				answer, err := s.answer(frame)
				if err == nil {
					_, err = c.client.Write(answer)
				}
				close(s.came)
				if err != nil {
					c.end()
					return
				}
				continue
			}
			switch s.how {
			case RequestHangs:
				close(s.came)
				return // down ends the connection, when the broker or Mend does
			case RequestLost, RequestCut:
				if s.how == RequestCut {
					_, _ = c.server.Write(frame[:len(frame)/2]) // it ends anyway
				}
				close(s.came)
				c.end()
				return
			default:
				c.mu.Lock()
				c.replies[correlation] = s
				c.mu.Unlock()
			}
		}
		if _, err = c.server.Write(frame); err != nil {
			c.end()
			return
		}
	}
}

func (c *kafkaConn) down() {
	defer c.end()
	var frame []byte
	var err error
	for {
		if frame, err = readFrame(c.server, frame); err != nil || len(frame) < 8 {
			return
		}
		c.mu.Lock()
		s := c.replies[binary.BigEndian.Uint32(frame[4:])]
		c.mu.Unlock()
		if s != nil {
			close(s.came)
			if s.how == ReplyHangs {
				_, _ = io.Copy(io.Discard, c.server) // until it ends
			}
			return
		}
		if _, err = c.client.Write(frame); err != nil {
			return
		}
	}
}
