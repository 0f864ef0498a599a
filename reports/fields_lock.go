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
		{"validity_ns", func(o *history.Operation) int64 { return o.D }},
	}, history.Acquire)

	_ = describeFields([]field{
		{"version", (*history.Operation).Version},
		{"sequence", (*history.Operation).Sequence},
	}, history.Read, history.Write)
)

func grantOf(o *history.Operation) int64 { return int64(o.Grant()) }
