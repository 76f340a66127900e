package control

import "context"

// Users implements Access.
func (c *Client) Users(ctx context.Context) ([]User, error) {
	return call[[]User](ctx, c, "/v1/users", struct{}{})
}

// SetUser implements Access.
func (c *Client) SetUser(ctx context.Context, req SetUser) (User, error) {
	return call[User](ctx, c, "/v1/user/set", req)
}

// RemoveUser implements Access.
func (c *Client) RemoveUser(ctx context.Context, req RemoveUser) error {
	_, err := call[struct{}](ctx, c, "/v1/user/remove", req)
	return err
}

// ACLs implements Access.
func (c *Client) ACLs(ctx context.Context, filter ACL) ([]ACL, error) {
	return call[[]ACL](ctx, c, "/v1/acls", filter)
}

// AddACLs implements Access.
func (c *Client) AddACLs(ctx context.Context, rules []ACL) error {
	_, err := call[struct{}](ctx, c, "/v1/acls/add", rules)
	return err
}

// RemoveACLs implements Access.
func (c *Client) RemoveACLs(ctx context.Context, filter ACL) ([]ACL, error) {
	return call[[]ACL](ctx, c, "/v1/acls/remove", filter)
}

// Quotas implements Access.
func (c *Client) Quotas(ctx context.Context) ([]Quota, error) {
	return call[[]Quota](ctx, c, "/v1/quotas", struct{}{})
}

// SetQuota implements Access.
func (c *Client) SetQuota(ctx context.Context, req SetQuota) error {
	_, err := call[struct{}](ctx, c, "/v1/quota/set", req)
	return err
}
