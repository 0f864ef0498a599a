package reports

import "fencepost.dev/history"

// Fields of locks, leases and the protected resource, by the names that docs/history.md gives them.
var (
	_ = describeFields([]field{
		{"token", (*history.Operation).Token},
		{"ttl_ns", func(o *history.Operation) int64 { return int64(o.TTL()) }},
		{"grant", grantOf},
	}, history.Acquire, history.Extend)

	_ = describeFields([]field{
		{"token", (*history.Operation).Token},
		{"grant", grantOf},
	}, history.Release, history.Lost, history.Expire, history.Read, history.Write)

	_ = describeFields([]field{
		{"generation", (*history.Operation).Generation},
	}, history.Extend, history.Expire)

	_ = describeFields([]field{
		{"validity_ns", validityOf},
	}, history.Acquire)

	_ = describeFields([]field{
		{"version", (*history.Operation).Version},
		{"sequence", (*history.Operation).Sequence},
	}, history.Read, history.Write)
)

func grantOf(o *history.Operation) int64 { return int64(o.Grant()) }

// validityOf is for how long a client was told that it holds, or 0 where that is the time-to-live.
func validityOf(o *history.Operation) int64 {
	if o.Validity() == o.TTL() {
		return 0
	}
	return int64(o.Validity())
}
