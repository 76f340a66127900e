package kafkaproto

// DescribeUserScramCredentials (50), version 0: users with the SCRAM mechanisms
// they can log in by; never their keys.
//
//   - No users asked for means all. One that is not there, or has no SCRAM
//     credential, is error 91; one that is asked for twice, error 92.

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/access"
	"github.com/millrace/millrace/storage/authn"
)

func serveDescribeUserSCRAMCredentials(c *call, req *kmsg.DescribeUserSCRAMCredentialsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeUserSCRAMCredentialsResponse)
	store := c.s.opts.Security.Access
	if store == nil {
		resp.ErrorCode, resp.ErrorMessage = codeSecurityDisabled, message(errNoAccess)
		return resp
	}
	if len(req.Users) == 0 {
		for _, u := range store.Users() {
			if r := scramUser(u); len(r.CredentialInfos) > 0 {
				resp.Results = append(resp.Results, r)
			}
		}
		return resp
	}
	times := map[string]int{}
	for _, u := range req.Users {
		times[u.Name]++
	}
	for _, asked := range req.Users {
		n := times[asked.Name]
		if n == 0 {
			continue // answered with its first mention
		}
		times[asked.Name] = 0
		u, _ := store.User(asked.Name)
		r := scramUser(u)
		r.User = asked.Name
		var err error
		switch {
		case n > 1:
			err = coded(codeDuplicateResource, "user %s is asked for %d times", asked.Name, n)
		case len(r.CredentialInfos) == 0:
			err = coded(codeResourceNotFound, "user %s has no SCRAM credentials", asked.Name)
		}
		if err != nil {
			r.CredentialInfos, r.ErrorCode, r.ErrorMessage = nil, adminCode(err), message(err)
		}
		resp.Results = append(resp.Results, r)
	}
	return resp
}

func scramUser(u access.User) kmsg.DescribeUserSCRAMCredentialsResponseResult {
	r := kmsg.NewDescribeUserSCRAMCredentialsResponseResult()
	r.User = u.Name
	for _, x := range u.Credentials {
		if x.Mechanism != authn.Plain {
			info := kmsg.NewDescribeUserSCRAMCredentialsResponseResultCredentialInfo()
			info.Mechanism, info.Iterations = int8(x.Mechanism), int32(x.Iterations)
			r.CredentialInfos = append(r.CredentialInfos, info)
		}
	}
	return r
}
