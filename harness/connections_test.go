package harness

import (
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/topology/endpoint"
)

// As many clients as a worker has connections fit; one more is refused, with what to do.
func TestClientsBeyondAWorkersConnectionsAreRefused(t *testing.T) {
	if err := connectionsFit(endpoint.PoolSize); err != nil {
		t.Errorf("a connection for each client: %v", err)
	}
	err := connectionsFit(endpoint.PoolSize + 1)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d connections", endpoint.PoolSize)) || !strings.Contains(err.Error(), "more --workers") {
		t.Errorf("one client more: %v", err)
	}
}
