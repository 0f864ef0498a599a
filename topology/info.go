package topology

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"fencepost.dev/process"
	"fencepost.dev/topology/endpoint"
)

// info asks a node for a section of what it says about itself.
func info(ctx context.Context, client redis.UniversalClient, section string) (map[string]string, error) {
	text, err := client.Info(ctx, section).Result()
	if err != nil {
		return nil, err
	}
	fields := make(map[string]string)
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if name, value, found := strings.Cut(strings.TrimSpace(lines.Text()), ":"); found {
			fields[name] = value
		}
	}
	return fields, nil
}

// version is what the server at the endpoint is: "valkey 8.0.1". A server that does not let us ask is of unknown version.
func version(ctx context.Context, at endpoint.Endpoint) (string, error) {
	client, err := at.Valkey()
	if err != nil {
		return "", err
	}
	defer client.Close()
	fields, err := info(ctx, client, "server")
	var refused redis.Error
	if errors.As(err, &refused) {
		return "unknown (INFO is refused: " + refused.Error() + ")", nil
	}
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", at.Addresses[0], err)
	}
	// Valkey gives a redis_version too, of the Redis that it is compatible with.
	for _, name := range []string{"valkey", "redis"} {
		if number := fields[name+"_version"]; number != "" {
			return name + " " + number, nil
		}
	}
	return "unknown", nil
}

// listens reports whether it is our process that answers on our port.
func (s *server) listens(ctx context.Context, client redis.UniversalClient, proc *process.Process) bool {
	fields, err := info(ctx, client, "server")
	return err == nil && fields["process_id"] == strconv.Itoa(proc.PID())
}
