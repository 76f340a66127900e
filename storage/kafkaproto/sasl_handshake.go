package kafkaproto

// SaslHandshake (17), versions 0 to 1: names the mechanism of the login that
// follows.
//
//   - A mechanism that is not offered is error 33 with those that are, and ends the
//     connection, as in Kafka.
//   - Where nobody has to log in, or before a login that holds has a lifetime
//     (Security.MaxSession), it is error 34.
//   - After version 0 the login's messages come as bare frames without a header.

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/authn"
)

const apiSASLHandshake int16 = 17

func serveSASLHandshake(c *call, req *kmsg.SASLHandshakeRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.SASLHandshakeResponse)
	sec, p := &c.s.opts.Security, c.peer
	for _, m := range sec.Mechanisms {
		resp.SupportedMechanisms = append(resp.SupportedMechanisms, m.String())
	}
	m, err := authn.ParseMechanism(req.Mechanism)
	switch {
	case len(sec.Mechanisms) == 0 || !p.pending && sec.MaxSession == 0 || p.exchange != nil:
		resp.ErrorCode, c.last = codeIllegalSaslState, p.pending
	case err != nil || !sec.offers(m) || !p.pending && m != p.mechanism:
		resp.ErrorCode, c.last = codeUnsupportedSaslMechanism, true
	default:
		p.mechanism, p.shaken, p.raw = m, true, c.version == 0
	}
	return resp
}
