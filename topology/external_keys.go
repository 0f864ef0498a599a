package topology

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"fencepost.dev/topology/endpoint"
)

const keysKind = "remove-keys"

// keysEntry is the data of a journal entry for the keys of a run in a store that isn't ours.
type keysEntry struct {
	Nodes     []endpoint.Endpoint `json:"nodes"`     // each node alone, without its password
	Namespace string              `json:"namespace"` // what our keys begin with
}

// onDisk is an endpoint as the journal may hold it, for whoever reads it in another directory.
func onDisk(at endpoint.Endpoint) endpoint.Endpoint {
	at.Password = ""
	if at.TLS != nil {
		named := *at.TLS
		for _, file := range []*string{&named.CAFile, &named.CertFile, &named.KeyFile} {
			if path, err := filepath.Abs(*file); err == nil && *file != "" {
				*file = path
			}
		}
		at.TLS = &named
	}
	return at
}

// Credentials are what the journal doesn't hold, for the undoing of what is in stores that others run.
type Credentials struct {
	Password string
	Patience time.Duration // how long the removal of keys may take; 0: as long as it does
}

// undoKeys removes the keys. A server that can't be used (it is gone, it wants another password) keeps its entry.
func (c Credentials) undoKeys(entry keysEntry) error {
	// A namespace that says whose run it was, since all that begins with it is removed.
	if run, ours := strings.CutPrefix(entry.Namespace, namespacePrefix+":"); !ours || len(run) < 2 || !strings.HasSuffix(run, ":") {
		return fmt.Errorf("topology: %q is no namespace of a run: its keys stay", entry.Namespace)
	}
	ctx := context.Background()
	if c.Patience > 0 {
		bounded, cancel := context.WithTimeout(ctx, c.Patience)
		defer cancel()
		ctx = bounded
	}
	var errs []error
	for _, at := range entry.Nodes {
		at.Password = c.Password
		err := reach(ctx, at)
		if err == nil {
			err = removeKeys(ctx, at, entry.Namespace)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func removeKeys(ctx context.Context, at endpoint.Endpoint, namespace string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("removing the keys %s* from %s: %w", namespace, at.Addresses[0], err)
		}
	}()
	client, err := at.Valkey()
	if err != nil {
		return err
	}
	defer client.Close()
	literal := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(namespace)
	for cursor := uint64(0); ; {
		keys, next, err := client.Scan(ctx, cursor, literal+"*", 1000).Result()
		if err != nil {
			return err
		}
		if len(keys) > 0 {
			if err := client.Unlink(ctx, keys...).Err(); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
