package kafkaproto

// AlterUserScramCredentials (51), version 0: gives users SCRAM credentials, made
// of a password that the client has salted, and takes them away.
//
//   - Each user on its own. The same user and mechanism twice is error 92, a
//     mechanism that is not SCRAM error 33, a credential to take away that is not
//     there error 91; an empty name, a bad salt or iterations out of 4096 to 16384
//     are error 93.
//   - Connections that are logged in stay so until their login's lifetime is over.

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/access"
	"github.com/millrace/millrace/storage/authn"
)

// errNoAccess says that the server was started without users and rules.
var errNoAccess = errors.New("the server keeps no users, access rules and quotas")

func serveAlterUserSCRAMCredentials(c *call, req *kmsg.AlterUserSCRAMCredentialsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.AlterUserSCRAMCredentialsResponse)
	type target struct {
		user      string
		mechanism int8
	}
	times := map[target]int{}
	var order []string
	failed := map[string]error{}
	mention := func(user string, mechanism int8) {
		if _, there := failed[user]; !there {
			failed[user] = nil
			order = append(order, user)
		}
		times[target{user, mechanism}]++
		m := authn.Mechanism(mechanism)
		switch {
		case c.s.opts.Security.Access == nil:
			failed[user] = coded(codeSecurityDisabled, "%w", errNoAccess)
		case m != authn.ScramSHA256 && m != authn.ScramSHA512:
			failed[user] = coded(codeUnsupportedSaslMechanism, "mechanism %d is not SCRAM", mechanism)
		case times[target{user, mechanism}] > 1:
			failed[user] = coded(codeDuplicateResource, "user %s is changed twice for %s", user, m)
		}
	}
	for _, d := range req.Deletions {
		mention(d.Name, d.Mechanism)
	}
	made := make([]authn.Credential, len(req.Upsertions))
	for i, u := range req.Upsertions {
		mention(u.Name, u.Mechanism)
		err := authn.CheckUser(u.Name)
		if err == nil {
			made[i], err = authn.FromSalted(authn.Mechanism(u.Mechanism), u.Salt, u.SaltedPassword, int(u.Iterations))
		}
		if err != nil && failed[u.Name] == nil {
			failed[u.Name] = coded(codeUnacceptableCredential, "%w", err)
		}
	}
	store := c.s.opts.Security.Access
	for _, d := range req.Deletions {
		if failed[d.Name] == nil {
			failed[d.Name] = scramError(store.DropCredential(d.Name, authn.Mechanism(d.Mechanism)))
		}
	}
	for i, u := range req.Upsertions {
		if failed[u.Name] == nil {
			failed[u.Name] = scramError(store.SetCredential(u.Name, made[i]))
		}
	}
	for _, user := range order {
		r := kmsg.NewAlterUserSCRAMCredentialsResponseResult()
		r.User, r.ErrorCode, r.ErrorMessage = user, adminCode(failed[user]), message(failed[user])
		resp.Results = append(resp.Results, r)
	}
	return resp
}

// scramError gives an error of the store its code.
func scramError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, access.ErrNoUser):
		return coded(codeResourceNotFound, "%w", err)
	case errors.Is(err, access.ErrInvalid), errors.Is(err, access.ErrTooMany):
		return coded(codeUnacceptableCredential, "%w", err)
	}
	return coded(codeStorageError, "%w", err)
}
