// Package endpoint is how to reach a store: serializable addresses, and the client that fits them. It is all of a topology
// that a worker needs, so it imports neither providers nor proxies.
package endpoint

// PasswordVariable is the variable of the environment that holds an external store's password: it is never a flag, where other
// users could read it.
const PasswordVariable = "FENCEPOST_PASSWORD"

// Set is what a subject may talk to, by store name ("valkey", "aws", "postgres"). It travels to workers over the plane.
type Set map[string]Endpoint

// Endpoint is one store, however many nodes it has.
type Endpoint struct {
	Kind      string   `json:"kind"`                // "standalone", "sentinel", "cluster", "independent", …
	Addresses []string `json:"addresses"`           // host:port, in node order
	Master    string   `json:"master,omitempty"`    // the name Sentinel knows it by
	Username  string   `json:"username,omitempty"`  // ACL user
	Password  string   `json:"password,omitempty"`  // sent over the plane only: never written to a file or shown
	TLS       *TLS     `json:"tls,omitempty"`       // nil: plain
	Namespace string   `json:"namespace,omitempty"` // prefix of every key that this run may touch
	// Sources gives each worker the loopback address that it dials from, for topologies whose links are per pair.
	Sources map[string]string `json:"sources,omitempty"`
}

// TLS says how to trust a server. The zero value trusts the system's roots.
type TLS struct {
	CAFile     string `json:"ca_file,omitempty"`
	CertFile   string `json:"cert_file,omitempty"`
	KeyFile    string `json:"key_file,omitempty"`
	ServerName string `json:"server_name,omitempty"`
	Insecure   bool   `json:"insecure,omitempty"`
}
