package scenarios

// Vocabulary is what scenarios may name: what subjects, workloads, faults, checks and stores there are. Whoever loads a
// scenario builds it from the registries, and the loader holds every name against it.
type Vocabulary struct {
	Subjects  []KnownSubject
	Workloads []KnownWorkload
	Faults    []KnownFault
	Checks    []KnownCheck
	Stores    []KnownStore
	Counters  []string // of coverage: "granted", "writes-after-expiry", …
	// Metric judges the expression of a threshold ("errors", "acquire p99") and gives its unit. Nil: thresholds are refused.
	Metric func(expression string) (Unit, error)
}

// KnownSubject is one subject. A Name that ends in a colon ("exec:") stands for all names that begin with it.
type KnownSubject struct {
	Name      string
	Primitive string   // "lock"; empty: whatever the workload drives
	Points    []string // its own points, beside the workload's
	Stores    []string // what it needs of the topology: "valkey"
	Options   []string // names of its options; one whose Name ends in a colon takes any
}

// KnownWorkload is one kind of workload.
type KnownWorkload struct {
	Name       string
	Primitives []string // of the subjects it can drive
	Points     []string
	// Parameters gives a pointer to a fresh struct with defaults. Its yaml tags are the fields; if it has a method
	// Validate() error, that judges them. Nil: the workload has none.
	Parameters func() any
}

// KnownFault is one fault.
type KnownFault struct {
	Name    string
	Workers bool       // it can be done to workers
	Stores  bool       // it can be done to stores
	Options func() any // as Parameters
}

// KnownCheck is one check.
type KnownCheck struct {
	Name       string
	Primitives []string
	Severities []string // what an expectation may add after a colon: "safety", "availability"
}

// KnownStore is a store that a topology can have, and how it can be run. The first kind is the default, and so is a kind's
// first provider.
type KnownStore struct {
	Name  string
	Kinds []KnownKind
}

// KnownKind is one way to run a store.
type KnownKind struct {
	Name      string
	Providers []string
}

// Unit is what a metric is measured in.
type Unit string

const (
	Share     Unit = "share" // written 1% or 0.01
	Seconds   Unit = "s"     // written 50ms
	PerSecond Unit = "per_s" // written 1000
)
