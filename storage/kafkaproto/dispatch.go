package kafkaproto

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// APIRange is an API key and the versions of it that are served.
type APIRange struct{ Key, Min, Max int16 }

// api is a row of the dispatch table.
type api struct {
	APIRange
	// flexible is the first version with compact encodings.
	flexible int16
	serve    func(*call) (*reply, error)
}

// apis is the dispatch table. ApiVersions advertises it as it is.
func apis() []api {
	return []api{
		{APIRange{0, 0, 13}, 9, serveProduce},
		{APIRange{1, 4, 18}, 12, serveFetch},
		{APIRange{2, 0, 10}, 6, control(kmsg.NewPtrListOffsetsRequest, serveListOffsets)},
		{APIRange{3, 0, 13}, 9, control(kmsg.NewPtrMetadataRequest, serveMetadata)},
		{APIRange{8, 2, 10}, 8, control(kmsg.NewPtrOffsetCommitRequest, serveOffsetCommit)},
		{APIRange{9, 1, 10}, 6, control(kmsg.NewPtrOffsetFetchRequest, serveOffsetFetch)},
		{APIRange{10, 0, 6}, 3, control(kmsg.NewPtrFindCoordinatorRequest, serveFindCoordinator)},
		{APIRange{11, 0, 9}, 6, control(kmsg.NewPtrJoinGroupRequest, serveJoinGroup)},
		{APIRange{12, 0, 4}, 4, control(kmsg.NewPtrHeartbeatRequest, serveHeartbeat)},
		{APIRange{13, 0, 5}, 4, control(kmsg.NewPtrLeaveGroupRequest, serveLeaveGroup)},
		{APIRange{14, 0, 5}, 4, control(kmsg.NewPtrSyncGroupRequest, serveSyncGroup)},
		{APIRange{15, 0, 6}, 5, control(kmsg.NewPtrDescribeGroupsRequest, serveDescribeGroups)},
		{APIRange{16, 0, 5}, 3, control(kmsg.NewPtrListGroupsRequest, serveListGroups)},
		{APIRange{17, 0, 1}, 2, control(kmsg.NewPtrSASLHandshakeRequest, serveSASLHandshake)},
		{APIRange{18, 0, 4}, 3, control(kmsg.NewPtrApiVersionsRequest, serveApiVersions)},
		{APIRange{19, 0, 7}, 5, control(kmsg.NewPtrCreateTopicsRequest, serveCreateTopics)},
		{APIRange{20, 0, 6}, 4, control(kmsg.NewPtrDeleteTopicsRequest, serveDeleteTopics)},
		{APIRange{21, 0, 2}, 2, control(kmsg.NewPtrDeleteRecordsRequest, serveDeleteRecords)},
		{APIRange{22, 0, 5}, 2, control(kmsg.NewPtrInitProducerIDRequest, serveInitProducerID)},
		{APIRange{23, 2, 4}, 4, control(kmsg.NewPtrOffsetForLeaderEpochRequest, serveOffsetForLeaderEpoch)},
		{APIRange{24, 0, 3}, 3, control(kmsg.NewPtrAddPartitionsToTxnRequest, serveAddPartitionsToTxn)},
		{APIRange{25, 0, 4}, 3, control(kmsg.NewPtrAddOffsetsToTxnRequest, serveAddOffsetsToTxn)},
		{APIRange{26, 0, 5}, 3, control(kmsg.NewPtrEndTxnRequest, serveEndTxn)},
		{APIRange{27, 1, 2}, 1, control(kmsg.NewPtrWriteTxnMarkersRequest, serveWriteTxnMarkers)},
		{APIRange{28, 0, 5}, 3, control(kmsg.NewPtrTxnOffsetCommitRequest, serveTxnOffsetCommit)},
		{APIRange{29, 1, 3}, 2, control(kmsg.NewPtrDescribeACLsRequest, serveDescribeACLs)},
		{APIRange{30, 1, 3}, 2, control(kmsg.NewPtrCreateACLsRequest, serveCreateACLs)},
		{APIRange{31, 1, 3}, 2, control(kmsg.NewPtrDeleteACLsRequest, serveDeleteACLs)},
		{APIRange{32, 1, 4}, 4, control(kmsg.NewPtrDescribeConfigsRequest, serveDescribeConfigs)},
		{APIRange{33, 0, 2}, 2, control(kmsg.NewPtrAlterConfigsRequest, serveAlterConfigs)},
		{APIRange{34, 1, 2}, 2, control(kmsg.NewPtrAlterReplicaLogDirsRequest, serveAlterReplicaLogDirs)},
		{APIRange{35, 1, 4}, 2, control(kmsg.NewPtrDescribeLogDirsRequest, serveDescribeLogDirs)},
		{APIRange{36, 0, 2}, 2, control(kmsg.NewPtrSASLAuthenticateRequest, serveSASLAuthenticate)},
		{APIRange{37, 0, 3}, 2, control(kmsg.NewPtrCreatePartitionsRequest, serveCreatePartitions)},
		{APIRange{42, 0, 2}, 2, control(kmsg.NewPtrDeleteGroupsRequest, serveDeleteGroups)},
		{APIRange{43, 0, 2}, 2, control(kmsg.NewPtrElectLeadersRequest, serveElectLeaders)},
		{APIRange{44, 0, 1}, 1, control(kmsg.NewPtrIncrementalAlterConfigsRequest, serveIncrementalAlterConfigs)},
		{APIRange{45, 0, 1}, 0, control(kmsg.NewPtrAlterPartitionAssignmentsRequest, serveAlterPartitionReassignments)},
		{APIRange{46, 0, 0}, 0, control(kmsg.NewPtrListPartitionReassignmentsRequest, serveListPartitionReassignments)},
		{APIRange{47, 0, 0}, 1, control(kmsg.NewPtrOffsetDeleteRequest, serveOffsetDelete)},
		{APIRange{55, 0, 2}, 0, control(kmsg.NewPtrDescribeQuorumRequest, serveDescribeQuorum)},
		{APIRange{57, 0, 1}, 0, control(kmsg.NewPtrUpdateFeaturesRequest, serveUpdateFeatures)},
		{APIRange{60, 0, 2}, 0, control(kmsg.NewPtrDescribeClusterRequest, serveDescribeCluster)},
		{APIRange{61, 0, 0}, 0, control(kmsg.NewPtrDescribeProducersRequest, serveDescribeProducers)},
		{APIRange{65, 0, 0}, 0, control(kmsg.NewPtrDescribeTransactionsRequest, serveDescribeTransactions)},
		{APIRange{66, 0, 2}, 0, control(kmsg.NewPtrListTransactionsRequest, serveListTransactions)},
		{APIRange{68, 0, 1}, 0, control(kmsg.NewPtrConsumerGroupHeartbeatRequest, serveConsumerGroupHeartbeat)},
		{APIRange{69, 0, 1}, 0, control(kmsg.NewPtrConsumerGroupDescribeRequest, serveConsumerGroupDescribe)},
		{APIRange{74, 0, 1}, 0, control(kmsg.NewPtrListConfigResourcesRequest, serveListConfigResources)},
		{APIRange{75, 0, 0}, 0, control(kmsg.NewPtrDescribeTopicPartitionsRequest, serveDescribeTopicPartitions)},
		{APIRange{48, 0, 1}, 1, control(kmsg.NewPtrDescribeClientQuotasRequest, serveDescribeClientQuotas)},
		{APIRange{49, 0, 1}, 1, control(kmsg.NewPtrAlterClientQuotasRequest, serveAlterClientQuotas)},
		{APIRange{50, 0, 0}, 0, control(kmsg.NewPtrDescribeUserSCRAMCredentialsRequest, serveDescribeUserSCRAMCredentials)},
		{APIRange{51, 0, 0}, 0, control(kmsg.NewPtrAlterUserSCRAMCredentialsRequest, serveAlterUserSCRAMCredentials)},
	}
}

// Supported lists what is served, by key.
func Supported() []APIRange {
	var out []APIRange
	for _, a := range apis() {
		out = append(out, a.APIRange)
	}
	return out
}

// call is a request being handled.
type call struct {
	ctx         context.Context
	s           *Server
	conn        net.Conn
	peer        *peer
	version     int16
	correlation int32
	clientID    string
	flexible    bool
	body        []byte
	// settled gives the request's part of the budget back; a handler that waits
	// for long calls it when it needs the body no more. It may be called again.
	settled func()
	// throttle is how long the client is to wait after this request, by its quotas.
	throttle time.Duration
	// delay is how long the answer is held back; last ends the connection after it.
	delay time.Duration
	last  bool
}

// reply is a response, perhaps not known yet.
type reply struct {
	// wait, if not nil, is closed when build may be called.
	wait <-chan struct{}
	// build encodes the response; nil buffers mean that there is none. An error
	// closes the connection.
	build func() (net.Buffers, error)
	// release, if not nil, is called when the response was sent or given up.
	release func()
	// last: nothing more is read after this.
	last bool
}

// dispatch handles one request; b is the whole frame without its length.
func (s *Server) dispatch(ctx context.Context, conn net.Conn, p *peer, f frame, b []byte, settled func()) (*reply, error) {
	a, ok := s.table[f.key]
	if !ok {
		return nil, fmt.Errorf("%w: API key %d is not served", errMalformed, f.key)
	}
	c := &call{ctx: ctx, s: s, conn: conn, peer: p, version: f.version, correlation: f.correlation, flexible: f.version >= a.flexible, settled: settled}
	if f.version < a.Min || f.version > a.Max {
		if f.key == apiVersions {
			return c.unsupportedApiVersions(), nil
		}
		return nil, fmt.Errorf("%w: API key %d in version %d, served are %d to %d", errMalformed, f.key, f.version, a.Min, a.Max)
	}
	var err error
	if c.clientID, c.body, err = parseHeader(b, c.flexible); err != nil {
		return nil, err
	}
	timer := c.timed()
	r, err := a.serve(c)
	if err != nil {
		return nil, err
	}
	timer()
	p.mutedUntil = later(p.mutedUntil, s.opts.now().Add(c.throttle))
	if r.last = c.last; c.delay > 0 {
		r.wait = after(r.wait, c.delay)
	}
	return r, nil
}

// control makes a handler of a function over messages of kmsg.
func control[R kmsg.Request](fresh func() R, serve func(*call, R) kmsg.Response) func(*call) (*reply, error) {
	return func(c *call) (*reply, error) {
		req := fresh()
		req.SetVersion(c.version)
		if err := req.ReadFrom(c.body); err != nil {
			return nil, fmt.Errorf("%w: API key %d version %d: %w", errMalformed, req.Key(), c.version, err)
		}
		resp, ok := c.ask(req, func() kmsg.Response { return serve(c, req) })
		if !ok {
			return nil, fmt.Errorf("API key %d has no access rule", req.Key())
		}
		return c.answer(resp), nil
	}
}

// answer is a reply with a message of kmsg. The header of an ApiVersions
// response never has tags, so that a client of any version can read it.
func (c *call) answer(resp kmsg.Response) *reply {
	return &reply{build: func() (net.Buffers, error) {
		w := newWriter(c.correlation, false, resp.IsFlexible() && resp.Key() != apiVersions)
		if t, ok := resp.(kmsg.SetThrottleResponse); ok && c.throttle > 0 {
			t.SetThrottle(c.throttleMillis())
		}
		w.cur = resp.AppendTo(w.cur)
		return w.frame(), nil
	}}
}
