//go:build !linux

package plane

import "time"

// identity is unknown here: what proves a shared clock was worked out for Linux only. So offsets are measured.
func identity() Identity { return Identity{} }

var processStart = time.Now()

// rawMonotonic means nothing outside this process where identities are unknown.
func rawMonotonic() int64 { return int64(time.Since(processStart)) }
