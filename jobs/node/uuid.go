package node

import (
	"github.com/google/uuid"

	"github.com/millrace/millrace/runtime/connector"
)

// newUUID is a random UUID, version 4.
func newUUID() connector.UUID { return connector.UUID(uuid.New()) }

// parseUUID reads the 8-4-4-4-12 form.
func parseUUID(s string) (connector.UUID, error) {
	u, err := uuid.Parse(s)
	return connector.UUID(u), err
}
