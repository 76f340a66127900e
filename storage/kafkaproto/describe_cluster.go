package kafkaproto

// DescribeCluster (60), versions 0 to 2: the cluster's id and its nodes.
//
//   - This node is the cluster, and its own controller.
//   - 1 asks for brokers or controllers: there is no endpoint of controllers alone
//     (error 114). 2 adds fenced brokers, of which there are none.

import (
	"encoding/base64"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const endpointBrokers int8 = 1

// clusterID is the store's id as Kafka writes ids.
func (s *Server) clusterID() string {
	id := s.opts.Store.ID()
	return base64.RawURLEncoding.EncodeToString(id[:])
}

func serveDescribeCluster(c *call, req *kmsg.DescribeClusterRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeClusterResponse)
	resp.EndpointType = endpointBrokers
	if c.version >= 1 && req.EndpointType != endpointBrokers {
		resp.ErrorCode = codeMismatchedEndpointType
		resp.ErrorMessage = message(coded(resp.ErrorCode, "this is an endpoint of brokers"))
		return resp
	}
	resp.ClusterID, resp.ControllerID = c.s.clusterID(), c.s.opts.NodeID
	b := kmsg.NewDescribeClusterResponseBroker()
	b.NodeID = c.s.opts.NodeID
	b.Host, b.Port = c.s.address(c.conn)
	resp.Brokers = append(resp.Brokers, b)
	return resp
}
